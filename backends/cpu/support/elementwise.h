// Shared by elementwise kernels: f32 loops over 16-bit floats (blocks are widened into a buffer on the stack,
// computed, and narrowed), and the choice of layout.
#pragma once

#include <cstdint>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/cast.h"
#include "backends/cpu/simd/simd.h"
#include "runtime/core/dtype.h"

namespace librt::cpu {

inline constexpr int64_t kWideBlock = 512;

inline void widen_block(const Simd& simd, DType dtype, const uint16_t* x, float* y, int64_t n) noexcept {
  (dtype == DType::F16 ? simd.loops<CastLoops>().f16_to_f32 : simd.loops<CastLoops>().bf16_to_f32)(x, y, n);
}
inline void narrow_block(const Simd& simd, DType dtype, const float* x, uint16_t* y, int64_t n) noexcept {
  (dtype == DType::F16 ? simd.loops<CastLoops>().f32_to_f16 : simd.loops<CastLoops>().f32_to_bf16)(x, y, n);
}

inline constexpr DTypeSet kHalves{DType::F16, DType::BF16};

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
