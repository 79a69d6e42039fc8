// Reverse-mode differentiation as a graph rewrite.
//
// Knows: how to walk a graph backwards, add contributions, and sum over broadcast axes. What an operator's
// gradient is stands on its page. Must not know: losses, optimizers, entries.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/compiler/builder.h"

namespace rt::compiler {

/// Appends to the builder's graph the gradients of the scalar `loss` with respect to `wanted`; one value per
/// entry of wanted, kNoValue where loss does not depend on it. Nothing is built that only other values would
/// need. Composites on the way must have a gradient rule or have been inlined. Every operator without a
/// gradient on the way is named in one error.
Result<std::vector<ValueId>> differentiate(Builder& builder, ValueId loss, std::span<const ValueId> wanted);

}  // namespace rt::compiler
