// Recomputation: values of the forward pass that the backward pass needs again are computed a second time
// instead of being kept (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost), greedily by bytes
// freed at the peak per added operation.
//
// Knows: lifetimes of values in the nodes' order, and the cost of recomputing them. Must not know: which
// nodes are forward and which backward pass, devices' kernels, budgets. Results do not change: the same nodes
// run on the same operands, and random values are counter-based.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

struct RecomputeReport {
  size_t nodes = 0;  ///< added
  double added_flops = 0;
  double flops = 0;          ///< of the graph before
  uint64_t live_before = 0;  ///< the most bytes of intermediate values at once, at the extents
  uint64_t live_after = 0;
};

/// Adds nodes until at most `live_bytes` are alive at once, or nothing helps any more (live_after reports
/// it), at these extents of the symbols, which must all be given. The graph must be optimized already: common
/// subexpression elimination would undo this.
Result<RecomputeReport> recompute(Graph& graph, const std::vector<State>& states,
                                  const std::map<std::string, int64_t>& extents, uint64_t live_bytes);

}  // namespace librt::compiler
