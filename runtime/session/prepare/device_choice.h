// Selects the backend and device for a model: as requested, or the best one by measured or predicted times.
//
// Knows: the cost model, remembered runs, device profiles. Must not know: plans, kernels of the candidates.
#pragma once

#include <string>

#include "runtime/backend/backend.h"
#include "runtime/graph/graph.h"

namespace librt {

struct DeviceChoice {
  std::string backend;
  std::string device;  ///< for DeviceOptions; empty: as requested by the caller
  std::string reason;  ///< one or more human-readable lines
};

/// What is wanted of a session.
struct DeviceWish {
  const std::string& backend;    ///< a name, or "auto" or empty
  const std::string& prefer;     ///< for auto: "latency" or empty, "throughput", "energy"
  const std::string& precision;  ///< as in rt_session_options
};

/// Auto takes, for each device, the median time of runs of the same work that rtbench has measured, else the
/// cost model's prediction, with unknown extents at their bounds (else 1; for "throughput" leading ones 32),
/// and the device with the least: time, or for "energy" time x power under load.
Result<DeviceChoice> choose_device(const Graph& graph, const std::vector<State>& states,
                                   const DeviceWish& wish, const DeviceOptions& options);

}  // namespace librt
