// Recomputation: values of the forward pass that the backward pass needs again are computed a second time
// instead of being kept (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost), greedily by bytes
// that are free at the peak for each operation that is added.
//
// Knows: when values are alive in the nodes' order, and what making them again costs. Must not know: what is
// the forward and what the backward pass, devices' kernels, budgets. Results do not change: the same nodes
// run on the same operands, and random numbers are drawn by counting.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::compiler {

struct RecomputeReport {
  size_t nodes = 0;  ///< added
  double added_flops = 0;
  double flops = 0;          ///< of the graph before
  uint64_t live_before = 0;  ///< the most bytes of intermediate values at once, at the extents
  uint64_t live_after = 0;
};

/// Adds nodes until at most `live_bytes` are alive at once, or nothing helps any more (live_after tells), at
/// these extents of the symbols, which must all be given. The graph must be optimized: finding equal nodes
/// again would undo it.
Result<RecomputeReport> recompute(Graph& graph, const std::vector<State>& states,
                                  const std::map<std::string, int64_t>& extents, uint64_t live_bytes);

}  // namespace rt::compiler
