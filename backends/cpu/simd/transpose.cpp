// Transposition of a matrix of 4-byte elements in tiles of 8 x 8, which keep both sides' cache lines whole.
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rt::cpu::RT_SIMD_ISA {
namespace {

constexpr int64_t kTile = 8;

#if defined(__AVX2__)
/// Three rounds of interleaving: pairs, quadruples, halves.
RT_INLINE void transpose_tile(const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(x + i * x_stride);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(y + i * y_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(y + (i + 4) * y_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#else
RT_INLINE void transpose_tile(const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  for (int64_t i = 0; i < kTile; ++i)
    for (int64_t j = 0; j < kTile; ++j) y[j * y_stride + i] = x[i * x_stride + j];
}
#endif

}  // namespace

void transpose(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows / kTile * kTile, whole_columns = columns / kTile * kTile;
  for (int64_t j = 0; j < whole_columns; j += kTile) {
    for (int64_t i = 0; i < whole_rows; i += kTile)
      transpose_tile(x + i * x_stride + j, x_stride, y + j * y_stride + i, y_stride);
    for (int64_t i = whole_rows; i < rows; ++i)
      for (int64_t k = j; k < j + kTile; ++k) y[k * y_stride + i] = x[i * x_stride + k];
  }
  for (int64_t j = whole_columns; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) y[j * y_stride + i] = x[i * x_stride + j];
}

void fill_transpose(Simd& table) noexcept {
  table.transpose = &transpose;
}

}  // namespace rt::cpu::RT_SIMD_ISA
