// The layout of an elementwise kernel's operands.
//
// Knows: kBlocked16, shapes. Must not know: operators.
#pragma once

#include "backends/cpu/kernel.h"

namespace librt::cpu {

/// kBlocked16 where a producer has it and every operand has the result's shape or one element; else dense.
inline Layouts elementwise_layouts(const NodeView& node, Producers producers) noexcept {
  if (!can_block(node.output(0))) return {};
  Layouts layouts{kBlocked16, 0, 1};
  bool comes = false;
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (node.input(i).elements() == 1) continue;
    if (!can_block(node.input(i)) || !(node.shape(i) == node.output(0).shape)) return {};
    layouts.inputs |= 1u << i;
    comes = comes || (i < producers.size() && producers[i] == kBlocked16);
  }
  return comes ? layouts : Layouts{};
}

}  // namespace librt::cpu
