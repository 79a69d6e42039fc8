// Many f32 rows times weights of 8 or 4 bits, in integer arithmetic.
#include "backends/cpu/simd/weight_quantized_panel.h"

#include "backends/cpu/simd/dot_products.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/simd/words.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

#if RT_DOT_PRODUCTS
using Floats = Vector<float>;
using Integers = Vector<int32_t>;
using Words = Vector<uint32_t>;
constexpr int kLane = kLanes<float>;

/// Tiles of kTileRows rows and kVectors vectors of columns: the sums of high and low bytes stay in registers.
/// Weights of 8 bits are multiplied as u8 where the instruction needs that of one operand.
#if defined(__AVX512F__)
constexpr int kTileRows = 4, kVectors = 2;
constexpr bool kUnsigned = true;
#elif defined(__AVX2__)
constexpr int kTileRows = 2, kVectors = 2;
constexpr bool kUnsigned = true;
#else
constexpr int kTileRows = 2, kVectors = 4;
constexpr bool kUnsigned = false;
#endif
constexpr int64_t kTileColumns = kVectors * kLane;
static_assert(kWeightColumns % kTileColumns == 0);

/// sums + four products of bytes for each lane.
RT_DOT RT_INLINE Integers add_dot(Integers sums, Words weights, Integers x) {
#if defined(__AVX512F__)
  return (Integers)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, (__m512i)x);
#elif defined(__AVX2__)
  return (Integers)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)weights, (__m256i)x);
#else
  return (Integers)vdotq_s32((int32x4_t)sums, (int8x16_t)weights, (int8x16_t)x);
#endif
}

/// The even elements of each 8 bytes first.
RT_INLINE void store_even_first(const int8_t* from, int8_t* to) {
  const auto v = load<Vector<int8_t, 16>>(from);
  store(to, __builtin_shufflevector(v, v, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
}

template <int kBits>
bool split_row(const float* x, const SplitRows& rows, int64_t row) {
  constexpr int32_t kStoredLarger = kBits == 4 ? 8 : kUnsigned ? 128 : 0;
  const int64_t blocks = rows.k / rows.block, n = rows.block;
  int8_t *high = rows.high + row * rows.k, *low = rows.low + row * rows.k;
  float zeros = 0;
  for (int64_t b = 0; b < blocks; ++b, x += n, high += n, low += n) {
    const WordBlock block = quantize_words(x, n, zeros);
    if constexpr (kBits == 4) {
      int8_t upper[WordBlock::kMost], lower[WordBlock::kMost];
      split_bytes(block, n, upper, lower);
      for (int64_t i = 0; i < n; i += 16) {
        store_even_first(upper + i, high + i);
        store_even_first(lower + i, low + i);
      }
    } else {
      split_bytes(block, n, high, low);
    }
    rows.start[row * blocks + b] = -kStoredLarger * sum_words(block.q, n);
    rows.scale[row * blocks + b] = block.scale;
  }
  return zeros == 0;
}

/// Sums of a tile over a block, of the high and of the low bytes.
template <int kRows>
struct BlockSums {
  Integers high[kRows][kVectors], low[kRows][kVectors];
};
/// The products of four weights of each column with four elements of each row.
template <int kRows>
RT_DOT RT_INLINE void add_products(BlockSums<kRows>& sums, const Words (&weights)[kVectors],
                                   const int8_t* high, const int8_t* low, int64_t k) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const Integers x_high = load<int32_t>(high + r * k) - Integers{},
                   x_low = load<int32_t>(low + r * k) - Integers{};
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) {
      sums.high[r][c] = add_dot(sums.high[r][c], weights[c], x_high);
      sums.low[r][c] = add_dot(sums.low[r][c], weights[c], x_low);
    }
  }
}

/// Columns [column, column + kTileColumns) of the panel.
template <int kBits, int kRows>
RT_DOT void multiply_tile(const WeightPanel& p, const SplitRows& x, int64_t row, int64_t column,
                          const void* next) {
  const int64_t blocks = x.k / x.block, steps = x.block * kBits / 32, blocks_of_group = p.group / x.block;
  const int32_t* weights = p.weights + column;
  const int8_t *high = x.high + row * x.k, *low = x.low + row * x.k;
  const float* scale = p.scale + column;
  Floats total[kRows][kVectors];
#pragma GCC unroll 4
  for (auto& row_total : total)
#pragma GCC unroll 4
    for (Floats& each : row_total) each = Floats{};
  for (int64_t b = 0, left = blocks_of_group; b < blocks; ++b) {
    BlockSums<kRows> sums;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kVectors; ++c) {
        sums.high[r][c] = Integers{};
        sums.low[r][c] = x.start[(row + r) * blocks + b] - Integers{};
      }
    }
    for (int64_t i = 0; i < steps; ++i, weights += kWeightColumns) {
      Words v[kVectors], part[kVectors];
      for (int c = 0; c < kVectors; ++c) v[c] = load<Words>(weights + c * kLane);
      if (next != nullptr) {
        const auto* lines = static_cast<const std::byte*>(next) +
                            (weights - p.weights - column) * static_cast<int64_t>(sizeof(int32_t));
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + kLineBytes);
      }
      if constexpr (kBits == 8) {
        for (int c = 0; c < kVectors; ++c) part[c] = kUnsigned ? v[c] ^ 0x80808080u : v[c];
        add_products(sums, part, high, low, x.k);
      } else {
        for (int c = 0; c < kVectors; ++c) part[c] = v[c] & 0x0f0f0f0fu;
        add_products(sums, part, high, low, x.k);
        for (int c = 0; c < kVectors; ++c) part[c] = (v[c] >> 4) & 0x0f0f0f0fu;
        add_products(sums, part, high + 4, low + 4, x.k);
      }
      high += 32 / kBits;
      low += 32 / kBits;
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const float x_scale = x.scale[(row + r) * blocks + b];
#pragma GCC unroll 4
      for (int c = 0; c < kVectors; ++c) {
        const auto sum = (Integers)(((Words)sums.high[r][c] << 8) + (Words)sums.low[r][c]);
        total[r][c] += __builtin_convertvector(sum, Floats) * x_scale * load<Floats>(scale + c * kLane);
      }
    }
    if (--left == 0) {
      scale += kWeightColumns;
      left = blocks_of_group;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    float* y = p.y + (row + r) * p.stride + column;
    const float* bias = p.bias != nullptr ? p.bias + column : nullptr;
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c, y += kLane) {
      const int64_t used = p.columns - column - c * kLane;
      if (used >= kLane) {
        store(y, bias != nullptr ? total[r][c] + load<Floats>(bias + c * kLane) : total[r][c]);
      } else if (used > 0) {
        store_first(y, bias != nullptr ? total[r][c] + load_first(bias + c * kLane, used) : total[r][c],
                    used);
      }
    }
  }
}

template <int kBits>
void multiply(const WeightPanel& panel, const SplitRows& rows, int64_t begin, int64_t end) {
  const void* next = panel.next;  // with the first tile
  for (int64_t column = 0; column < panel.columns; column += kTileColumns) {
    int64_t row = begin;
    for (; row + kTileRows <= end; row += kTileRows, next = nullptr)
      multiply_tile<kBits, kTileRows>(panel, rows, row, column, next);
    for (; row < end; ++row, next = nullptr) multiply_tile<kBits, 1>(panel, rows, row, column, next);
  }
}
#endif

constexpr WeightPanelLoops make_loops() {
  WeightPanelLoops table{};
#if RT_DOT_PRODUCTS
  table.split_row[0] = &split_row<8>;
  table.split_row[1] = &split_row<4>;
  table.multiply[0] = &multiply<8>;
  table.multiply[1] = &multiply<4>;
#endif
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(WeightPanelLoops);
