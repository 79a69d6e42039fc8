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
// On x86-64, a broadcast from memory costs nothing beside the multiply-adds, so that rows of a need no
// packing: they are read where they are. Remainders have tiles of their own, in pairs of rows and whole
// vectors. On one core of a Zen 4, whose 512-bit multiply-adds allow some 118 GFLOP/s, products of the zoo
// run at 80 to 117, where oneDNN 2.6 has 83 to 117 (docs/measurements.md, "Without oneDNN").
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

/// Sums of kR rows and kV vectors.
template <int kR, int kV>
struct Sums {
  V of[kR][kV];

  RT_INLINE void clear() {
#pragma GCC unroll 14
    for (int i = 0; i < kR; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < kV; ++j) of[i][j] = V{};
  }
  /// Adds the products of one column of a, whose row i is element(i), and one row of b.
  template <class Element>
  RT_INLINE void step(const float* b, const Element& element) {
    V row[kV];
#pragma GCC unroll 3
    for (int j = 0; j < kV; ++j) row[j] = load<V>(b + j * kLane);
#pragma GCC unroll 14
    for (int i = 0; i < kR; ++i) {
      const V factor = element(i) - V{};
#pragma GCC unroll 3
      for (int j = 0; j < kV; ++j) of[i][j] += row[j] * factor;
    }
  }
#if defined(__aarch64__)
  /// The same for a's rows next to each other. GCC takes a lane as the multiplication's operand only where it
  /// is asked to.
  template <int kLaneOf>
  RT_INLINE void lane_step(const V& four, int first, const V (&row)[kV]) {
#pragma GCC unroll 3
    for (int j = 0; j < kV; ++j)
      of[first + kLaneOf][j] = vfmaq_laneq_f32(of[first + kLaneOf][j], row[j], four, kLaneOf);
  }
  RT_INLINE void step(const float* b, const float* a) {
    V row[kV];
#pragma GCC unroll 3
    for (int j = 0; j < kV; ++j) row[j] = load<V>(b + j * kLane);
#pragma GCC unroll 2
    for (int first = 0; first < kR; first += kLane) {
      const V four = vld1q_f32(a + first);
      lane_step<0>(four, first, row);
      lane_step<1>(four, first, row);
      lane_step<2>(four, first, row);
      lane_step<3>(four, first, row);
    }
  }
#else
  RT_INLINE void step(const float* b, const float* a) {
    step(b, [&](int i) { return a[i]; });
  }
#endif
  /// The first m rows and n columns, n > (kV - 1) kLane.
  RT_INLINE void write(float* y, int64_t stride, int64_t m, int64_t n, bool accumulate) const {
    const int64_t last = n - (kV - 1) * kLane;
    if (last == kLane) {
#pragma GCC unroll 14
      for (int i = 0; i < kR; ++i) {
        if (i == m) break;
        float* const to = y + i * stride;
#pragma GCC unroll 3
        for (int j = 0; j < kV; ++j)
          store(to + j * kLane, accumulate ? of[i][j] + load<V>(to + j * kLane) : of[i][j]);
      }
      return;
    }
#pragma GCC unroll 14
    for (int i = 0; i < kR; ++i) {
      if (i == m) break;
      float* to = y + i * stride;
#pragma GCC unroll 2
      for (int j = 0; j + 1 < kV; ++j, to += kLane) store(to, accumulate ? of[i][j] + load<V>(to) : of[i][j]);
#if defined(__AVX512F__)
      const auto mask = static_cast<__mmask16>((1u << last) - 1);
      const V sum = of[i][kV - 1];
      _mm512_mask_storeu_ps(to, mask, accumulate ? sum + _mm512_maskz_loadu_ps(mask, to) : sum);
#else
      float part[kLane];
      store(part, of[i][kV - 1]);
      for (int64_t c = 0; c < last; ++c) to[c] = accumulate ? to[c] + part[c] : part[c];
#endif
    }
  }
};

/// One tile: a's rows next to each other, as packed, kRows apart from step to step.
template <int kR, int kV>
void packed_tile(const float* a, const float* b, int64_t k, float* y, int64_t stride, int64_t m, int64_t n,
                 bool accumulate) {
  Sums<kR, kV> sums;
  sums.clear();
  for (int64_t p = 0; p < k; ++p, a += kRows, b += kColumns) sums.step(b, a);
  sums.write(y, stride, m, n, accumulate);
}

/// By the tile's rows, in pairs (NEON: in fours), and vectors: what lies outside of the result is not
/// multiplied.
#if defined(__aarch64__)
constexpr int kRowUnit = 4;
#else
constexpr int kRowUnit = 2;
#endif
constexpr int kRowUnits = kRows / kRowUnit;
using Tile = void (*)(const float*, const float*, int64_t, float*, int64_t, int64_t, int64_t, bool);
struct TileTable {
  Tile of[kRowUnits][kVectors];
};
template <int... kIndex>
constexpr TileTable packed_tiles(std::integer_sequence<int, kIndex...>) {
  TileTable table{};
  ((table.of[kIndex / kVectors][kIndex % kVectors] =
        &packed_tile<(kIndex / kVectors + 1) * kRowUnit, kIndex % kVectors + 1>),
   ...);
  return table;
}
constexpr TileTable kPackedTiles = packed_tiles(Lanes<kRowUnits * kVectors>{});

void tile(const float* a, const float* b, int64_t k, float* y, int64_t stride, int64_t m, int64_t n,
          bool accumulate) {
  kPackedTiles.of[(m + kRowUnit - 1) / kRowUnit - 1][(n + kLane - 1) / kLane - 1](a, b, k, y, stride, m, n,
                                                                                  accumulate);
}

#if defined(__SSE2__)
/// A whole tile's rows in place. Every third row has a pointer of its own; the two after it are reached by
/// the addressing modes, since pointers for all would not fit into registers.
template <int kV>
void tile_in_place(const float* a, int64_t a_stride, const float* b, int64_t k, float* y, int64_t stride,
                   int64_t n, bool accumulate) {
  constexpr int kPointers = (kRows + 2) / 3;
  const float* at[kPointers];
#pragma GCC unroll 5
  for (int i = 0; i < kPointers; ++i) at[i] = a + 3 * i * a_stride;
  Sums<kRows, kV> sums;
  sums.clear();
  for (int64_t p = 0; p < k; ++p, b += kColumns) {
    sums.step(b, [&](int i) { return at[i / 3][i % 3 * a_stride]; });
#pragma GCC unroll 5
    for (int i = 0; i < kPointers; ++i) ++at[i];
  }
  sums.write(y, stride, kRows, n, accumulate);
}
void rows_tile(const float* a, int64_t a_stride, const float* b, int64_t k, float* y, int64_t stride,
               int64_t n, bool accumulate) {
  (n <= kLane ? tile_in_place<1> : tile_in_place<2>)(a, a_stride, b, k, y, stride, n, accumulate);
}
#endif

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
  for (; j + 2 <= width; j += 2) {
    using Four = Vector<float, 16>;
    const float *x0 = x[j], *x1 = x[j + 1];
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
      const Four r0 = load<Four>(x0 + i), r1 = load<Four>(x1 + i);
      const Four low = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),
                 high = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
      float* const at = to + i * width + j;
      __builtin_memcpy(at, &low, 8);
      __builtin_memcpy(at + width, reinterpret_cast<const char*>(&low) + 8, 8);
      __builtin_memcpy(at + 2 * width, &high, 8);
      __builtin_memcpy(at + 3 * width, reinterpret_cast<const char*>(&high) + 8, 8);
    }
    for (; i < k; ++i) {
      to[i * width + j] = x0[i];
      to[i * width + j + 1] = x1[i];
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
#if defined(__SSE2__)
  table.rows_tile = &rows_tile;
#endif
  table.gather = &gather;
  table.copy = &copy;
  table.depthwise = &depthwise;
  table.multiply_add = &multiply_add;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(GemmLoops);
