// Arithmetic on bounds that may be infinite.
#pragma once

#include <algorithm>
#include <cstdint>

namespace librt::compiler {

/// Larger than any extent and than any product of two.
inline constexpr int64_t kInfinity = int64_t{1} << 62;
/// No tensor has more elements (Shape::checked_elements), so no extent is larger.
inline constexpr int64_t kMostExtent = int64_t{1} << 59;

/// Sums of lower and of upper bounds: an infinite bound stays infinite; beyond 2^61 they are not
/// followed further.
constexpr int64_t add_lower(int64_t a, int64_t b) noexcept {
  if (a <= -kInfinity || b <= -kInfinity) return -kInfinity;
  return std::min(a, kInfinity / 2) + std::min(b, kInfinity / 2);
}
constexpr int64_t add_upper(int64_t a, int64_t b) noexcept {
  if (a >= kInfinity || b >= kInfinity) return kInfinity;
  return std::max(a, -kInfinity / 2) + std::max(b, -kInfinity / 2);
}
constexpr int64_t saturated_multiply(int64_t a, int64_t b) noexcept {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
  return std::clamp(product, -kInfinity, kInfinity);
}

}  // namespace librt::compiler
