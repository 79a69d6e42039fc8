#include "backends/cpu/support/block_quantization.h"
#include "backends/cpu/simd/block_quantize.h"

#include <algorithm>
#include <limits>

namespace librt::cpu {

Codebook::Codebook(const float* values, int64_t levels) noexcept {
  const auto count = static_cast<size_t>(levels);
  for (size_t i = 0; i < kLevels; ++i) values_[i] = values[std::min(i, count - 1)];
  tree_[0] = 0;
  for (size_t first = 1; first < kLevels; first *= 2)
    for (size_t i = 0; i < first; ++i) {
      const size_t upper = (2 * i + 1) * (kLevels / 2 / first);
      // x >= NaN is false for every x.
      tree_[first + i] = upper < count ? 0.5f * (values[upper - 1] + values[upper])
                                       : std::numeric_limits<float>::quiet_NaN();
    }
}

float Codebook::quantize(const Simd& simd, const float* x, uint8_t* codes, int64_t n,
                         bool keep_positive) const noexcept {
  const float scale = simd.loops<BlockQuantizeLoops>().largest_magnitude(x, n);
  simd.loops<BlockQuantizeLoops>().quantize_block(x, tree_.data(), scale, codes, n, keep_positive);
  return scale;
}

}  // namespace librt::cpu
