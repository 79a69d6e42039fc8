// Conversion between float types in host memory.
//
// Knows: f32, f16 and bf16. Backends have their own vector forms.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/dtype.h"

namespace librt {

/// f32 and the 16-bit floats: types that may replace each other as a node's compute type.
constexpr bool is_exchangeable(DType dtype) noexcept {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

/// The largest finite value of a 16-bit float.
constexpr float largest_finite(DType dtype) noexcept {
  return dtype == DType::F16 ? 65504.0f : 0x1.fep127f;
}

/// Converts n values between exchangeable types, rounding to nearest even. Finite values beyond f16 or
/// bf16 saturate to its largest finite value: masks are often -3.4e38, and an infinity there gives NaN. The
/// ranges may not overlap.
void convert_floats(const void* from, DType from_type, void* to, DType to_type, int64_t n) noexcept;

}  // namespace librt
