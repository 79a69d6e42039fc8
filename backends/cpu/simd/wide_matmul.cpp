// The sums of a tile stay in registers while k runs, as in gemm.cpp; two vectors of columns, and rows so that
// multiply-adds do not wait for each other.
#include "backends/cpu/simd/wide_matmul.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

using V = Vector<double>;
constexpr int kLane = kLanes<double>, kColumns = 2 * kLane;
#if defined(__AVX512F__)
constexpr int kRows = 8;
#else
constexpr int kRows = 4;
#endif

/// kR rows and kV vectors of columns, n > (kV - 1) kLane.
template <int kR, int kV>
void rows_tile(const double* a, int64_t a_row, int64_t a_step, const double* b, int64_t k, double* y,
               int64_t stride, int64_t n, bool accumulate) {
  V sums[kR][kV]{};
  for (int64_t p = 0; p < k; ++p, a += a_step, b += kColumns) {
    V row[kV];
    for (int j = 0; j < kV; ++j) row[j] = load<V>(b + j * kLane);
#pragma GCC unroll 8
    for (int i = 0; i < kR; ++i) {
      const V factor = a[i * a_row] - V{};
      for (int j = 0; j < kV; ++j) sums[i][j] += factor * row[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kR; ++i, y += stride) {
    double row[kV * kLane];
    if (n == kV * kLane) {
      for (int j = 0; j < kV; ++j)
        store(y + j * kLane, accumulate ? load<V>(y + j * kLane) + sums[i][j] : sums[i][j]);
    } else {
      for (int j = 0; j < kV; ++j) store(row + j * kLane, sums[i][j]);
      for (int64_t j = 0; j < n; ++j) y[j] = accumulate ? y[j] + row[j] : row[j];
    }
  }
}

template <int kV>
void vectors_tile(const double* a, int64_t a_row, int64_t a_step, const double* b, int64_t k, double* y,
                  int64_t stride, int64_t m, int64_t n, bool accumulate) {
  if (m == kRows) return rows_tile<kRows, kV>(a, a_row, a_step, b, k, y, stride, n, accumulate);
  for (; m >= 2; m -= 2, a += 2 * a_row, y += 2 * stride)
    rows_tile<2, kV>(a, a_row, a_step, b, k, y, stride, n, accumulate);
  if (m > 0) rows_tile<1, kV>(a, a_row, a_step, b, k, y, stride, n, accumulate);
}

void tile(const double* a, int64_t a_row, int64_t a_step, const double* b, int64_t k, double* y,
          int64_t stride, int64_t m, int64_t n, bool accumulate) {
  if (n > kLane)
    vectors_tile<2>(a, a_row, a_step, b, k, y, stride, m, n, accumulate);
  else
    vectors_tile<1>(a, a_row, a_step, b, k, y, stride, m, n, accumulate);
}

constexpr WideMatMulLoops make_loops() {
  return {.rows = kRows, .columns = kColumns, .tile = tile};
}

}  // namespace
}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(WideMatMulLoops);
