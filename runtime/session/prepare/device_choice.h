// Selects the backend and device for a model: as requested, or the one with the shortest predicted time.
//
// Knows: costs of the pages, device profiles. Must not know: plans, kernels of the candidates.
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

/// backend: a name, or "auto" or empty. Auto predicts, for each device, time = sum over nodes of
/// max(flops / throughput, bytes / bandwidth) + launch, plus transfers of inputs and outputs, with unknown
/// extents at their bounds (else 1).
Result<DeviceChoice> choose_device(const Graph& graph, const std::vector<State>& states,
                                   const std::string& backend, const DeviceOptions& options);

}  // namespace librt
