// The working memory of one run, as a session will plan it: with the same kernels and the same planner.
//
// Knows: legalizing and planning. Must not know: files; nothing is allocated or run.
#pragma once

#include <map>
#include <string>

#include "runtime/graph/graph.h"

namespace rt::convert {

/// Bytes at the given extents of the symbols (1 for those that are not given), on a backend's first device;
/// what the session's MemoryStats::peak_planned will say.
Result<uint64_t> planned_peak(const Graph& graph, const std::vector<State>& states,
                              const std::map<std::string, int64_t>& extents, const std::string& backend);

}  // namespace rt::convert
