// The fraction that a number in f32 stands for.
#pragma once

#include <cstdint>

namespace librt::compiler {

struct Ratio {
  int64_t numerator = 0;
  int64_t denominator = 0;  ///< 0: none
};

/// Of a Resize. A run that has scales multiplies an extent in f32 and rounds down.
inline constexpr int64_t kComparedExtents = int64_t{1} << 16;

/// The first convergent of the number's continued fraction that rounds to it: 0.7f is 7/10 and not a bit
/// less, of which 10 elements would give only 6. None outside of [2^-20, 2^20].
Ratio ratio_of(float number) noexcept;

/// ratio_of(scale), if for all extents up to kComparedExtents rounding down what it gives is rounding down
/// the product in f32; else none: 180 times 1.3f is a bit less than 234. Beyond, it is the ratio that was
/// meant, and the product in f32 gets less exact.
Ratio ratio_of_extents(float scale) noexcept;

}  // namespace librt::compiler
