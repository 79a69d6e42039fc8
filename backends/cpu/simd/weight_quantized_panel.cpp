// Many f32 rows times weights of 8 or 4 bits, in integer arithmetic.
#include "backends/cpu/simd/weight_quantized_panel.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

#if defined(__AVX512F__)
#define RT_VNNI __attribute__((target("avx512vnni")))

template <int kBits>
bool split_row(const float* x, const SplitRows& rows, int64_t row) {
  constexpr float kMost = 32639;  // 256 * 127 + 127
  constexpr int32_t kStoredLarger = kBits == 4 ? 8 : 128;
  const __m128i even_first = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  const int64_t blocks = rows.k / rows.block;
  int8_t *high = rows.high + row * rows.k, *low = rows.low + row * rows.k;
  bool finite = true;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * rows.block, end = begin + rows.block;
    __m512 most = _mm512_setzero_ps(), zeros = most;  // NaN where x is not finite
    for (int64_t i = begin; i < end; i += 16) {
      const __m512 v = _mm512_loadu_ps(x + i);
      most = _mm512_max_ps(_mm512_abs_ps(v), most);
      zeros = _mm512_fmadd_ps(v, _mm512_setzero_ps(), zeros);
    }
    const float largest = _mm512_reduce_max_ps(most);
    finite &= _mm512_cmp_ps_mask(zeros, zeros, _CMP_UNORD_Q) == 0;
    const __m512 factor = _mm512_set1_ps(largest < 1e-30f ? 0.0f : kMost / largest);
    __m512i sum = _mm512_setzero_si512();
    for (int64_t i = begin; i < end; i += 16) {
      const __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor));
      __m128i upper = _mm512_cvtepi32_epi8(_mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8));
      __m128i lower = _mm512_cvtepi32_epi8(q);
      if constexpr (kBits == 4) {
        upper = _mm_shuffle_epi8(upper, even_first);
        lower = _mm_shuffle_epi8(lower, even_first);
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(high + i), upper);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(low + i), lower);
      sum = _mm512_add_epi32(sum, q);
    }
    rows.start[row * blocks + b] = -kStoredLarger * _mm512_reduce_add_epi32(sum);
    rows.scale[row * blocks + b] = largest / kMost;
  }
  return finite;
}

/// Sums of a tile over a block, of the high and of the low bytes.
template <int kRows>
struct BlockSums {
  __m512i high[kRows][2], low[kRows][2];
};
/// The products of two vectors of four weights each with four elements of each row.
template <int kRows>
RT_VNNI RT_INLINE void add_products(BlockSums<kRows>& sums, const __m512i (&weights)[2], const int8_t* high,
                                    const int8_t* low, int64_t k) {
  for (int r = 0; r < kRows; ++r) {
    const __m512i x_high = _mm512_set1_epi32(load<int32_t>(high + r * k)),
                  x_low = _mm512_set1_epi32(load<int32_t>(low + r * k));
    for (int c = 0; c < 2; ++c) {
      sums.high[r][c] = _mm512_dpbusd_epi32(sums.high[r][c], weights[c], x_high);
      sums.low[r][c] = _mm512_dpbusd_epi32(sums.low[r][c], weights[c], x_low);
    }
  }
}

template <int kBits, int kRows>
RT_VNNI void multiply_tile(const WeightPanel& p, const SplitRows& x, int64_t row, const void* next) {
  const __m512i low_bits = _mm512_set1_epi8(15), sign = _mm512_set1_epi8(-128);
  const int64_t blocks = x.k / x.block, steps = x.block * kBits / 32, blocks_of_group = p.group / x.block;
  const int32_t* weights = p.weights;
  const int8_t *high = x.high + row * x.k, *low = x.low + row * x.k;
  const float* scale = p.scale;
  __m512 total[kRows][2];
  for (auto& each : total) each[0] = each[1] = _mm512_setzero_ps();
  for (int64_t b = 0, left = blocks_of_group; b < blocks; ++b) {
    BlockSums<kRows> sums;
    for (int r = 0; r < kRows; ++r) {
      sums.high[r][0] = sums.high[r][1] = _mm512_setzero_si512();
      sums.low[r][0] = sums.low[r][1] = _mm512_set1_epi32(x.start[(row + r) * blocks + b]);
    }
    for (int64_t i = 0; i < steps; ++i, weights += kWeightColumns) {
      const __m512i v[2] = {_mm512_loadu_si512(weights), _mm512_loadu_si512(weights + 16)};
      if (next != nullptr) {
        const auto* line = static_cast<const std::byte*>(next) +
                           (weights - p.weights) * static_cast<int64_t>(sizeof(int32_t));
        __builtin_prefetch(line);
        __builtin_prefetch(line + kLineBytes);
      }
      if constexpr (kBits == 8) {
        const __m512i raised[2] = {_mm512_xor_si512(v[0], sign), _mm512_xor_si512(v[1], sign)};
        add_products(sums, raised, high, low, x.k);
      } else {
        const __m512i even[2] = {_mm512_and_si512(v[0], low_bits), _mm512_and_si512(v[1], low_bits)};
        add_products(sums, even, high, low, x.k);
        const __m512i odd[2] = {_mm512_and_si512(_mm512_srli_epi16(v[0], 4), low_bits),
                                _mm512_and_si512(_mm512_srli_epi16(v[1], 4), low_bits)};
        add_products(sums, odd, high + 4, low + 4, x.k);
      }
      high += 32 / kBits;
      low += 32 / kBits;
    }
    for (int r = 0; r < kRows; ++r) {
      const __m512 x_scale = _mm512_set1_ps(x.scale[(row + r) * blocks + b]);
      for (int c = 0; c < 2; ++c) {
        const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(sums.high[r][c], 8), sums.low[r][c]);
        const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), x_scale);
        total[r][c] = _mm512_fmadd_ps(scaled, _mm512_loadu_ps(scale + 16 * c), total[r][c]);
      }
    }
    if (--left == 0) {
      scale += kWeightColumns;
      left = blocks_of_group;
    }
  }
  const auto used = static_cast<uint32_t>((uint64_t{1} << p.columns) - 1);
  for (int c = 0; c < 2; ++c) {
    const auto mask = static_cast<__mmask16>(used >> (16 * c));
    const __m512 bias =
        p.bias != nullptr ? _mm512_maskz_loadu_ps(mask, p.bias + 16 * c) : _mm512_setzero_ps();
    for (int r = 0; r < kRows; ++r)
      _mm512_mask_storeu_ps(p.y + (row + r) * p.stride + 16 * c, mask, _mm512_add_ps(total[r][c], bias));
  }
}

template <int kBits>
void multiply(const WeightPanel& panel, const SplitRows& rows, int64_t begin, int64_t end) {
  constexpr int kRows = 4;
  const void* next = panel.next;  // with the first tile
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows, next = nullptr)
    multiply_tile<kBits, kRows>(panel, rows, row, next);
  for (; row < end; ++row, next = nullptr) multiply_tile<kBits, 1>(panel, rows, row, next);
}
#endif

constexpr WeightPanelLoops make_loops() {
  WeightPanelLoops table{};
#if defined(__AVX512F__)
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
