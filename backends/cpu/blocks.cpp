#include "backends/cpu/blocks.h"

#include <algorithm>
#include <limits>

namespace rt::cpu {

Codebook::Codebook(const float* numbers, int64_t levels) noexcept : levels_(static_cast<size_t>(levels)) {
  for (size_t i = 0; i < kCodes; ++i) numbers_[i] = numbers[std::min(i, levels_ - 1)];
  for (size_t i = 1; i < levels_; ++i) middles_[i] = 0.5f * (numbers[i - 1] + numbers[i]);
}

float Codebook::codes_of(const Simd& simd, const float* x, uint8_t* codes, int64_t n,
                         bool keep_positive) const noexcept {
  const float scale = simd.largest_magnitude(x, n);
  std::array<float, kCodes> thresholds;
  for (size_t i = 1; i < levels_; ++i) thresholds[i] = middles_[i] * scale;
  for (size_t i = levels_; i < kCodes; ++i) thresholds[i] = std::numeric_limits<float>::infinity();
  simd.find_codes(x, thresholds.data(), codes, n, keep_positive);
  return scale;
}

}  // namespace rt::cpu
