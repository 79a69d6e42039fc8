// Reverse-mode differentiation as a graph rewrite.
//
// Knows: how to walk a graph backwards, accumulate contributions, and sum over broadcast axes. Gradient rules
// of operators are on their pages. Must not know: losses, optimizers, entries.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::compiler {

/// Appends to the builder's graph the gradients of the scalar `loss` with respect to `wanted`; one value per
/// entry of wanted, kNoValue where loss does not depend on it. No nodes are built that only gradients
/// of other values need. None flows through values whose name is in `detached`. Composites on the path must
/// have a gradient rule or be inlined already. One error names all operators on the path without a gradient.
Result<std::vector<ValueId>> differentiate(Builder& builder, ValueId loss, std::span<const ValueId> wanted,
                                           const std::set<std::string>& detached = {});

}  // namespace librt::compiler
