// What a graph costs: operators, parameters, floating point operations, bytes.
//
// Knows: the pages' costs at concrete extents. Must not know: devices, files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

struct OpSummary {
  OpKind kind = OpKind::NONE;
  size_t count = 0;
  double flops = 0;
  double bytes = 0;
};

struct GraphReport {
  std::vector<OpSummary> ops;  ///< most flops first, then by count
  size_t nodes = 0;
  uint64_t parameters = 0;       ///< elements of float constants and parameter states of rank 1 and above
  uint64_t parameter_bytes = 0;  ///< as stored
  double flops = 0;
  double bytes = 0;  ///< memory traffic: operands and results of every node
  /// The most bytes of intermediate values alive at once when nodes run in order: a lower bound for any plan.
  uint64_t live_bytes = 0;
  std::map<std::string, int64_t> extents;  ///< assumed for the symbols

  /// Tables for `rtconvert --report`.
  std::string text() const;
};

/// What the nodes compute in, by the type of their first float operand.
struct PrecisionReport {
  size_t f32 = 0, f16 = 0, bf16 = 0;
  size_t casts = 0;  ///< between float types

  /// "54 nodes in bf16, 6 nodes in f32, 9 casts".
  std::string text() const;
};
PrecisionReport precision_of(const Graph& graph);

/// At the given extents of the symbols. Those that are not given are 1, or, away from the batch axis, the
/// smallest of 1, 32, 64, 224 and 512 at which all shapes fit; `extents` of the result lists them.
Result<GraphReport> report_of(const Graph& graph, const std::vector<State>& states,
                              const std::map<std::string, int64_t>& extents);

}  // namespace librt::compiler
