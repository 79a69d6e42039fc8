// GEMV: a vector times a matrix, which is read once, in place. Memory-bound, so nothing is packed: a matrix
// that fits in a cache is processed in columns with accumulators in registers, a larger one in rows, long
// stretches of eight at a time, because jumping from row to row costs more in address translation and
// prefetching than it saves.
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

/// Matrices of up to this many elements are processed in columns.
constexpr int64_t kCached = 1 << 17;
/// Columns whose accumulators stay in L1.
constexpr int64_t kStretch = 2048;
constexpr int kRows = 8;

/// y[j] += sum over eight rows of a[i] b[i, j].
RT_INLINE void add_rows(const float* a, const float* b, int64_t stride, float* y, int64_t n) {
  Vector factor[kRows];
  for (int i = 0; i < kRows; ++i) factor[i] = a[i] - Vector{};
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    Vector even = load(y + j), odd{};
    for (int i = 0; i < kRows; i += 2) {
      even += factor[i] * load(b + i * stride + j);
      odd += factor[i + 1] * load(b + (i + 1) * stride + j);
    }
    store(y + j, even + odd);
  }
  for (; j < n; ++j)
    for (int i = 0; i < kRows; ++i) y[j] += a[i] * b[i * stride + j];
}

void vector_rows(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n) {
  for (int64_t first = 0; first < n; first += kStretch, b += kStretch, y += kStretch) {
    const int64_t count = n - first < kStretch ? n - first : kStretch;
    for (int64_t j = 0; j < count; ++j) y[j] = 0;
    int64_t i = 0;
    for (; i + kRows <= k; i += kRows) add_rows(a + i, b + i * stride, stride, y, count);
    for (; i < k; ++i)
      for (int64_t j = 0; j < count; ++j) y[j] += a[i] * b[i * stride + j];
  }
}

void vector_matrix(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n) {
  if (k * n > kCached && n >= 4 * kLanes) return vector_rows(a, b, stride, y, k, n);
  int64_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) four_vectors(a, b + j, stride, y + j, k);
  for (; j + kLanes <= n; j += kLanes) one_vector(a, b + j, stride, y + j, k);
  if (j == n) return;
  if (n >= kLanes) return one_vector(a, b + n - kLanes, stride, y + n - kLanes, k);  // columns overlap
  for (j = 0; j < n; ++j) y[j] = 0;
  for (int64_t i = 0; i < k; ++i)
    for (j = 0; j < n; ++j) y[j] += a[i] * b[i * stride + j];
}

void matrix_vector(const float* b, int64_t stride, const float* a, float* y, int64_t n, int64_t k) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4, b += 4 * stride) {
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < k; ++i) {
      s0 += a[i] * b[i];
      s1 += a[i] * b[stride + i];
      s2 += a[i] * b[2 * stride + i];
      s3 += a[i] * b[3 * stride + i];
    }
    y[j] = s0;
    y[j + 1] = s1;
    y[j + 2] = s2;
    y[j + 3] = s3;
  }
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
  table.matrix_vector = &matrix_vector;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(MatMulLoops);
