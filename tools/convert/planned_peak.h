// The memory of one run, as a session will plan it: with the same kernels and the same planner.
//
// Knows: legalizing and planning. Must not know: files; nothing is allocated or run.
#pragma once

#include <map>
#include <string>

#include "runtime/graph/graph.h"

namespace librt::convert {

/// Memory of a session at the given extents of the symbols (1 where not given), on a backend's first device,
/// without the states.
struct PlannedMemory {
  uint64_t working = 0;    ///< the value that MemoryStats::peak_planned will have
  uint64_t constants = 0;  ///< weights held for the device, and packed ones
  uint64_t staging = 0;    ///< copies of inputs and outputs in host memory
  uint64_t total() const noexcept { return working + constants + staging; }
};
/// For a model read from its file: there constants are aligned and may be used in place.
Result<PlannedMemory> planned_memory(const Graph& graph, const std::vector<State>& states,
                                     const std::map<std::string, int64_t>& extents,
                                     const std::string& backend);

/// The working memory alone, of any graph.
Result<uint64_t> planned_peak(const Graph& graph, const std::vector<State>& states,
                              const std::map<std::string, int64_t>& extents, const std::string& backend);

/// The bytes of a model's states on a backend's first device.
Result<uint64_t> state_bytes(const std::vector<State>& states, const std::string& backend);

}  // namespace librt::convert
