// Numbers of one float type as another, in host memory.
//
// Knows: f32, f16 and bf16. Backends have their own vector forms.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/dtype.h"

namespace rt {

/// f32 and the 16-bit floats: what a node may be computed in instead of each other.
constexpr bool is_exchangeable(DType dtype) noexcept {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

/// n numbers, both types exchangeable, rounded to nearest even. What is finite but exceeds f16 becomes its
/// largest number: masks are often -3.4e38, and an infinity there gives NaN. The ranges may not overlap.
void convert_floats(const void* from, DType from_type, void* to, DType to_type, int64_t n) noexcept;

}  // namespace rt
