// Running f32 loops over 16-bit floats: blocks are widened into a buffer on the stack, computed, and
// narrowed.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/simd.h"
#include "runtime/core/dtype.h"

namespace rt::cpu {

inline constexpr int64_t kWideBlock = 512;

inline void widen_block(const Simd& simd, DType dtype, const uint16_t* x, float* y, int64_t n) noexcept {
  (dtype == DType::F16 ? simd.f16_to_f32 : simd.bf16_to_f32)(x, y, n);
}
inline void narrow_block(const Simd& simd, DType dtype, const float* x, uint16_t* y, int64_t n) noexcept {
  (dtype == DType::F16 ? simd.f32_to_f16 : simd.f32_to_bf16)(x, y, n);
}

inline constexpr DTypeSet kHalves{DType::F16, DType::BF16};

}  // namespace rt::cpu
