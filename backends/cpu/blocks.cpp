#include "backends/cpu/blocks.h"

#include <algorithm>
#include <limits>

namespace rt::cpu {

Codebook::Codebook(const float* numbers, int64_t levels) noexcept {
  const auto count = static_cast<size_t>(levels);
  for (size_t i = 0; i < kCodes; ++i) numbers_[i] = numbers[std::min(i, count - 1)];
  tree_[0] = 0;
  for (size_t first = 1; first < kCodes; first *= 2)
    for (size_t i = 0; i < first; ++i) {
      const size_t upper = (2 * i + 1) * (kCodes / 2 / first);
      // x >= NaN is false for every x.
      tree_[first + i] = upper < count ? 0.5f * (numbers[upper - 1] + numbers[upper])
                                       : std::numeric_limits<float>::quiet_NaN();
    }
}

float Codebook::codes_of(const Simd& simd, const float* x, uint8_t* codes, int64_t n,
                         bool keep_positive) const noexcept {
  const float scale = simd.largest_magnitude(x, n);
  simd.find_codes(x, tree_.data(), scale, codes, n, keep_positive);
  return scale;
}

}  // namespace rt::cpu
