// GEMV: a vector times a matrix, which is read once, in place. Memory-bound, so nothing is packed: a matrix
// that fits in a cache is processed in columns with accumulators in registers, a larger one in long stretches
// of rows, because jumping from row to row costs more in address translation and prefetching than it saves.
#include "backends/cpu/simd/matmul.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

RT_INLINE Vector load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
RT_INLINE void store(float* to, Vector value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// y[0..4 kLanes) = sum over i of a[i] b[i, ..]: four vector accumulators in registers.
RT_INLINE void four_vectors(const float* a, const float* b, int64_t stride, float* y, int64_t k) {
  Vector s0{}, s1{}, s2{}, s3{};
  for (int64_t i = 0; i < k; ++i, b += stride) {
    const Vector factor = a[i] - Vector{};
    s0 += factor * load(b);
    s1 += factor * load(b + kLanes);
    s2 += factor * load(b + 2 * kLanes);
    s3 += factor * load(b + 3 * kLanes);
  }
  store(y, s0);
  store(y + kLanes, s1);
  store(y + 2 * kLanes, s2);
  store(y + 3 * kLanes, s3);
}
RT_INLINE void one_vector(const float* a, const float* b, int64_t stride, float* y, int64_t k) {
  Vector even{}, odd{};
  int64_t i = 0;
  for (; i + 2 <= k; i += 2, b += 2 * stride) {
    even += (a[i] - Vector{}) * load(b);
    odd += (a[i + 1] - Vector{}) * load(b + stride);
  }
  if (i < k) even += (a[i] - Vector{}) * load(b);
  store(y, even + odd);
}

/// Rows at a time, each a quarter of all rows from the next: where rows are read to their ends, memory is
/// read as four sequential streams, which reach 25 GB/s (two threads on two cores of a Zen 4) where
/// neighbouring rows of 3 KB, each too short for the hardware to look ahead, reach 14.
constexpr int kRows = 4;

/// y[j] += sum over four rows of a[i apart] b[i apart, j].
RT_INLINE void add_rows(const float* a, const float* b, int64_t apart, int64_t stride, float* y, int64_t n) {
  Vector factor[kRows];
  for (int i = 0; i < kRows; ++i) factor[i] = a[i * apart] - Vector{};
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    Vector even = load(y + j), odd{};
    for (int i = 0; i < kRows; i += 2) {
      even += factor[i] * load(b + i * apart * stride + j);
      odd += factor[i + 1] * load(b + (i + 1) * apart * stride + j);
    }
    store(y + j, even + odd);
  }
  for (; j < n; ++j)
    for (int i = 0; i < kRows; ++i) y[j] += a[i * apart] * b[i * apart * stride + j];
}

void vector_rows(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n) {
  for (int64_t j = 0; j < n; ++j) y[j] = 0;
  const int64_t apart = k / kRows;
  for (int64_t i = 0; i < apart; ++i) add_rows(a + i, b + i * stride, apart, stride, y, n);
  for (int64_t i = kRows * apart; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) y[j] += a[i] * b[i * stride + j];
}

void vector_matrix(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n) {
  constexpr int64_t kStretch = MatMulLoops::kStretch;
  if (k * n > MatMulLoops::kCached && n >= 4 * kLanes) {
    for (int64_t first = 0; first < n; first += kStretch)
      vector_rows(a, b + first, stride, y + first, k, n - first < kStretch ? n - first : kStretch);
    return;
  }
  int64_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) four_vectors(a, b + j, stride, y + j, k);
  for (; j + kLanes <= n; j += kLanes) one_vector(a, b + j, stride, y + j, k);
  if (j == n) return;
  if (n >= kLanes) return one_vector(a, b + n - kLanes, stride, y + n - kLanes, k);  // columns overlap
  for (j = 0; j < n; ++j) y[j] = 0;
  for (int64_t i = 0; i < k; ++i)
    for (j = 0; j < n; ++j) y[j] += a[i] * b[i * stride + j];
}

/// Four columns at a time, each a quarter of all columns from the next: sequential streams, as above.
void matrix_vector(const float* b, int64_t stride, const float* a, float* y, int64_t n, int64_t k) {
  const int64_t apart = n / 4, distance = apart * stride;
  for (int64_t j = 0; j < apart; ++j, b += stride) {
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < k; ++i) {
      s0 += a[i] * b[i];
      s1 += a[i] * b[distance + i];
      s2 += a[i] * b[2 * distance + i];
      s3 += a[i] * b[3 * distance + i];
    }
    y[j] = s0;
    y[j + apart] = s1;
    y[j + 2 * apart] = s2;
    y[j + 3 * apart] = s3;
  }
  b += 3 * distance;
  int64_t j = 4 * apart;
  for (; j < n; ++j, b += stride) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < k; ++i) sum += a[i] * b[i];
    y[j] = sum;
  }
}

constexpr MatMulLoops make_loops() {
  MatMulLoops table{};
  table.vector_matrix = &vector_matrix;
  table.vector_rows = &vector_rows;
  table.matrix_vector = &matrix_vector;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(MatMulLoops);
