// f32 loops over 16-bit floats: blocks are widened into a buffer on the stack, computed, and narrowed.
//
// Knows: f16 and bf16, the size of a block. Must not know: operators.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/cast.h"
#include "backends/cpu/simd/simd.h"
#include "runtime/core/dtype.h"
#include "runtime/core/in_build.h"

namespace librt::cpu {

inline constexpr int64_t kWideBlock = 512;

/// Nothing to do without 16-bit floats in the build.
inline constexpr bool kHalvesInBuild = in_build(DType::F16) || in_build(DType::BF16);

inline void widen_block(const Simd& simd, DType dtype, const uint16_t* x, float* y, int64_t n) noexcept {
  if constexpr (kHalvesInBuild)
    (dtype == DType::F16 ? simd.loops<CastLoops>().f16_to_f32 : simd.loops<CastLoops>().bf16_to_f32)(x, y, n);
}
inline void narrow_block(const Simd& simd, DType dtype, const float* x, uint16_t* y, int64_t n) noexcept {
  if constexpr (kHalvesInBuild)
    (dtype == DType::F16 ? simd.loops<CastLoops>().f32_to_f16 : simd.loops<CastLoops>().f32_to_bf16)(x, y, n);
}

inline constexpr DTypeSet kHalves{DType::F16, DType::BF16};

}  // namespace librt::cpu
