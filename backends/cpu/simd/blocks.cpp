// Codes of numbers in a codebook, and back.
#include "backends/cpu/simd/loops.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

/// Eight halvings of the ascending thresholds.
void find_codes(const float* x, const float* thresholds, uint8_t* codes, int64_t n, bool keep_positive) {
  const int32_t least = keep_positive ? 1 : 0;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    int32_t code = 0;
    for (int32_t half = 128; half > 0; half /= 2) code += x[i] >= thresholds[code + half] ? half : 0;
    const int32_t positive = x[i] > 0 ? least : 0;
    codes[i] = static_cast<uint8_t>(code > positive ? code : positive);
  }
}

void numbers_of_codes(const uint8_t* codes, const float* codebook, float scale, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = codebook[codes[i]] * scale;
}

}  // namespace

void fill_blocks(Simd& table) noexcept {
  table.find_codes = &find_codes;
  table.numbers_of_codes = &numbers_of_codes;
}

}  // namespace rt::cpu::RT_SIMD_ISA
