// Codes of numbers in a codebook, and back.
#include <bit>

#include "backends/cpu/simd/loops.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

/// As bits, because a NaN is then above all numbers.
float largest_magnitude(const float* x, int64_t n) {
  int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return std::bit_cast<float>(largest);
}

/// Eight halvings of the ascending thresholds, each for some numbers together: one number's loads wait for
/// each other. 4 ns for an element (AVX-512), 15 one by one.
void find_codes(const float* x, const float* thresholds, uint8_t* codes, int64_t n, bool keep_positive) {
  constexpr int64_t kTogether = 64;
  const int32_t least = keep_positive ? 1 : 0;
  for (int64_t first = 0; first < n; first += kTogether) {
    const int64_t count = n - first < kTogether ? n - first : kTogether;
    const float* numbers = x + first;
    int32_t found[kTogether];
    for (int64_t i = 0; i < kTogether; ++i) found[i] = 0;
    for (int32_t half = 128; half > 0; half /= 2)
#pragma omp simd
      for (int64_t i = 0; i < count; ++i)
        found[i] = numbers[i] >= thresholds[found[i] + half] ? found[i] + half : found[i];
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const int32_t positive = numbers[i] > 0 ? least : 0;
      codes[first + i] = static_cast<uint8_t>(found[i] > positive ? found[i] : positive);
    }
  }
}

void numbers_of_codes(const uint8_t* codes, const float* codebook, float scale, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = codebook[codes[i]] * scale;
}

}  // namespace

void fill_blocks(Simd& table) noexcept {
  table.largest_magnitude = &largest_magnitude;
  table.find_codes = &find_codes;
  table.numbers_of_codes = &numbers_of_codes;
}

}  // namespace rt::cpu::RT_SIMD_ISA
