// Shape rules of nodes whose shape operands are computed from data: what can still be inferred.
//
// Knows: for each operator with shape operands, which extents follow from which entry. Unknown extents are
// ops::kUnknownExtent. Must not know: symbols, probes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/ops/page.h"

namespace librt::compiler {

/// The entries of a shape operand, as far as they are known.
using Entries = std::vector<std::optional<int64_t>>;

/// operands: at concrete shapes, value null where an operand is not known. entries: for each input, if it is
/// such a shape operand. x: the first input's value in the graph, whose static extents hold in any case.
Status infer_with_unknown_operands(const NodeView& node, std::span<const Entries> entries, const Value& x,
                                   std::vector<TensorInfo>& outputs);

}  // namespace librt::compiler
