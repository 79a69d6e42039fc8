// y += a b for panels: all of a tile's sums stay in registers while k runs, each step loads one column of a
// and one row of b, and multiplies every element of one with the other.
//
//   NEON      8 x 12   24 of 32 registers hold sums, 3 a row of b, 2 a column of a (fmla by element)
//   AVX-512  14 x 32   28 of 32 hold sums, 2 a row of b; a is broadcast from memory
//   AVX2      6 x 16   12 of 16 hold sums, 2 a row of b
//   SSE2      4 x 8     8 of 16 hold sums, 2 a row of b; products need a register of their own
//
// A step of NEON's loop is 32 instructions for 96 multiply-adds, 24 of them fmla; 8 x 12 loads 20 floats for
// them, 6 x 16 would load 22. By llvm-mca 14 it takes 24.0 cycles on a Cortex-A57 and A72, where nothing but
// fmla is the limit, and 26.0 on an A55, which runs in order.
//
// Debian's oneDNN 2.6 for AArch64, without SVE (instructions counted by qemu, one thread): 2.4 for each
// multiply-add of a matmul of 128 x 128 x 128, and 4.5 of a 3x3 convolution of 32 channels, 14 x 14, where
// this loop has 0.33 before packing. That is why RT_ONEDNN=AUTO leaves it out there.
#include "backends/cpu/simd/gemm.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace librt::cpu::RT_SIMD_ISA {
namespace {

using V = Vector<float>;
constexpr int kLane = kLanes<float>;
#if defined(__AVX512F__)
constexpr int kRows = 14, kVectors = 2;
#elif defined(__AVX2__)
constexpr int kRows = 6, kVectors = 2;
#elif defined(__aarch64__)
constexpr int kRows = 8, kVectors = 3;
#else
constexpr int kRows = 4, kVectors = 2;
#endif
constexpr int kColumns = kVectors * kLane;
static_assert(kRows <= GemmLoops::kMostRows && kColumns <= GemmLoops::kMostColumns);

/// Adds the products of one column of a and one row of b.
RT_INLINE void step(const float* a, const float* b, V (&sums)[kRows][kVectors]) {
  V row[kVectors];
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) row[j] = load<V>(b + j * kLane);
#if defined(__aarch64__)  // GCC takes a lane as the multiplication's operand only where it is asked to
#define RT_ROW(four, lane)                                                          \
  _Pragma("GCC unroll 3") for (int j = 0; j < kVectors; ++j) sums[four + lane][j] = \
      vfmaq_laneq_f32(sums[four + lane][j], row[j], column[four / kLane], lane)
  const float32x4_t column[2] = {vld1q_f32(a), vld1q_f32(a + kLane)};
  RT_ROW(0, 0);
  RT_ROW(0, 1);
  RT_ROW(0, 2);
  RT_ROW(0, 3);
  RT_ROW(4, 0);
  RT_ROW(4, 1);
  RT_ROW(4, 2);
  RT_ROW(4, 3);
#undef RT_ROW
#else
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
    const V element = a[i] - V{};
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) sums[i][j] += row[j] * element;
  }
#endif
}

void tile(const float* a, const float* b, int64_t k, float* y, int64_t stride, int64_t m, int64_t n,
          bool accumulate) {
  V sums[kRows][kVectors];
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  for (int64_t p = 0; p < k; ++p, a += kRows, b += kColumns) step(a, b, sums);
  if (m == kRows && n == kColumns) {
#pragma GCC unroll 14
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) {
        float* to = y + i * stride + j * kLane;
        store(to, accumulate ? sums[i][j] + load<V>(to) : sums[i][j]);
      }
    return;
  }
  float whole[kRows * kColumns];
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) store(whole + i * kColumns + j * kLane, sums[i][j]);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float sum = whole[i * kColumns + j];
      y[i * stride + j] = accumulate ? y[i * stride + j] + sum : sum;
    }
}

/// Four rows of four floats become four columns.
RT_INLINE void gather_square(const float* x0, const float* x1, const float* x2, const float* x3, float* to,
                             int64_t width) {
  using Four = Vector<float, 16>;
  const Four r0 = load<Four>(x0), r1 = load<Four>(x1), r2 = load<Four>(x2), r3 = load<Four>(x3);
  const Four low02 = __builtin_shufflevector(r0, r2, 0, 4, 1, 5),
             low13 = __builtin_shufflevector(r1, r3, 0, 4, 1, 5),
             high02 = __builtin_shufflevector(r0, r2, 2, 6, 3, 7),
             high13 = __builtin_shufflevector(r1, r3, 2, 6, 3, 7);
  store(to, __builtin_shufflevector(low02, low13, 0, 4, 1, 5));
  store(to + width, __builtin_shufflevector(low02, low13, 2, 6, 3, 7));
  store(to + 2 * width, __builtin_shufflevector(high02, high13, 0, 4, 1, 5));
  store(to + 3 * width, __builtin_shufflevector(high02, high13, 2, 6, 3, 7));
}

void gather(const float* const* x, int64_t k, float* to, int64_t width) {
  int64_t j = 0;
  for (; j + 4 <= width; j += 4) {
    const float *x0 = x[j], *x1 = x[j + 1], *x2 = x[j + 2], *x3 = x[j + 3];
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) gather_square(x0 + i, x1 + i, x2 + i, x3 + i, to + i * width + j, width);
    for (; i < k; ++i) {
      float* at = to + i * width + j;
      at[0] = x0[i];
      at[1] = x1[i];
      at[2] = x2[i];
      at[3] = x3[i];
    }
  }
  for (; j < width; ++j)
    for (int64_t i = 0; i < k; ++i) to[i * width + j] = x[j][i];
}

void copy(const float* x, int64_t stride, int64_t count, int64_t k, float* to, int64_t width) {
  for (int64_t i = 0; i < k; ++i, x += stride, to += width) {
    if (count == kColumns) {
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) store(to + j * kLane, load<V>(x + j * kLane));
      continue;
    }
    for (int64_t j = 0; j < count; ++j) to[j] = x[j];
    for (int64_t j = count; j < width; ++j) to[j] = 0;
  }
}

/// kCount vectors of channels from c on.
template <int kCount>
RT_INLINE void depthwise_vectors(const float* const* x, const float* const* weight, int64_t taps, int64_t c,
                                 float* y) {
  V sums[kCount];
  for (int j = 0; j < kCount; ++j) sums[j] = V{};
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int j = 0; j < kCount; ++j)
      sums[j] += load<V>(x[tap] + c + j * kLane) * load<V>(weight[tap] + c + j * kLane);
  for (int j = 0; j < kCount; ++j) store(y + c + j * kLane, sums[j]);
}

void depthwise(const float* const* x, const float* const* weight, int64_t taps, int64_t channels, float* y) {
  int64_t c = 0;
  for (; c + 4 * kLane <= channels; c += 4 * kLane) depthwise_vectors<4>(x, weight, taps, c, y);
  for (; c + kLane <= channels; c += kLane) depthwise_vectors<1>(x, weight, taps, c, y);
  for (; c < channels; ++c) {
    float sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) sum += x[tap][c] * weight[tap][c];
    y[c] = sum;
  }
}

void multiply_add(const float* x, const float* y, float* sums, int64_t channels) {
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) sums[c] += x[c] * y[c];
}

constexpr GemmLoops make_loops() {
  GemmLoops table{};
  table.rows = kRows;
  table.columns = kColumns;
  table.tile = &tile;
  table.gather = &gather;
  table.copy = &copy;
  table.depthwise = &depthwise;
  table.multiply_add = &multiply_add;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(GemmLoops);
