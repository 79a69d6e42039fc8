// The fraction that a number in f32 stands for.
#pragma once

#include <cstdint>

namespace librt::compiler {

struct Ratio {
  int64_t numerator = 0;
  int64_t denominator = 0;  ///< 0: none
};

/// The first convergent of the number's continued fraction that rounds to it: 0.7f is 7/10 and not a bit
/// less, of which 10 elements would give only 6. None outside of [2^-20, 2^20].
Ratio ratio_of(float number) noexcept;

}  // namespace librt::compiler
