// f32 rows times weights of 8 or 4 bits. Bound by reading the weights: each byte is read once, widened in
// registers and used for up to four rows (two where there are few registers); a group's accumulators are
// scaled at its end. Four columns at a time, for independent accumulators, each a quarter of all columns from
// the next: memory is then read as four sequential streams, which reach 25 GB/s (two threads on two cores of
// a Zen 4), where four columns side by side, each shorter than the hardware looks ahead, reach 14 even with
// the next ones prefetched.
//
// The low half of a byte is the 4-bit weight of the even k: x comes with its even elements first, then the
// odd ones, and a table in a register maps 0..15 to -8..7. For a single row these instructions take longer
// than reading memory, so such a row is first quantized to 16 bits (with a scale for each 32 elements), an
// error of 1.6e-5 of the largest of the 32, and multiplied in integers: split into two bytes each for 8-bit
// dot products, or in words of 16 bits.
#include "backends/cpu/simd/weight_quantized.h"

#include "backends/cpu/simd/codes.h"
#include "backends/cpu/simd/dot_products.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/simd/words.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

RT_INLINE int32_t low_half(uint8_t pair) {
  return static_cast<int32_t>(pair & 15u) - 8;
}
RT_INLINE int32_t high_half(uint8_t pair) {
  return static_cast<int32_t>(pair >> 4) - 8;
}

template <int kBits>
void widen_weights(const WeightMatmul& p, float* y, int64_t begin, int64_t end) {
  const int64_t groups = p.k / p.group;
  for (int64_t column = begin; column < end; ++column) {
    const uint8_t* w = p.weight + column * p.k * kBits / 8;
    float* to = y + column * p.k;
    for (int64_t first = 0; first < p.k; first += p.group) {
      const float scale = p.scale[column * groups + first / p.group];
      if constexpr (kBits == 8) {
        const auto* codes = reinterpret_cast<const int8_t*>(w);
#pragma omp simd
        for (int64_t i = first; i < first + p.group; ++i) to[i] = static_cast<float>(codes[i]) * scale;
      } else if (p.group % 2 == 0) {
#pragma omp simd
        for (int64_t i = first / 2; i < (first + p.group) / 2; ++i) {
          to[2 * i] = static_cast<float>(low_half(w[i])) * scale;
          to[2 * i + 1] = static_cast<float>(high_half(w[i])) * scale;
        }
      } else {
        for (int64_t i = first; i < first + p.group; ++i)
          to[i] = static_cast<float>(i % 2 == 0 ? low_half(w[i / 2]) : high_half(w[i / 2])) * scale;
      }
    }
  }
}

/// One column of one row.
template <int kBits>
float dot_groups(const float* x, const uint8_t* w, const float* scale, int64_t k, int64_t group) {
  float total = 0;
  for (int64_t first = 0; first < k; first += group, ++scale) {
    float sum = 0;
    if constexpr (kBits == 8) {
      const auto* codes = reinterpret_cast<const int8_t*>(w) + first;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < group; ++i) sum += x[first + i] * static_cast<float>(codes[i]);
    } else if (group % 2 == 0) {
      const float *even = x + first / 2, *odd = x + (k + first) / 2;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < group / 2; ++i) {
        const uint8_t pair = w[first / 2 + i];
        sum += even[i] * static_cast<float>(low_half(pair)) + odd[i] * static_cast<float>(high_half(pair));
      }
    } else {
      for (int64_t i = first; i < first + group; ++i)
        sum += x[i / 2 + (i % 2 == 0 ? 0 : k / 2)] *
               static_cast<float>(i % 2 == 0 ? low_half(w[i / 2]) : high_half(w[i / 2]));
    }
    total += sum * *scale;
  }
  return total;
}

using V = Vector<float>;
using Ints = Vector<int32_t>;
constexpr int kLane = kLanes<float>;
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kMostRows = 4;
#else
constexpr int kMostRows = 2;  ///< whose sums stay in registers
#endif

/// As many bytes as V has elements. GCC converts vectors of so few bytes one by one.
RT_INLINE Ints load_bytes(const int8_t* x) {
#if defined(__AVX2__)
  return (Ints)load_code(x);
#elif defined(__SSE2__)
  const __m128i bytes = _mm_loadu_si32(x), words = _mm_unpacklo_epi8(bytes, bytes);
  return (Ints)_mm_srai_epi32(_mm_unpacklo_epi16(words, words), 24);
#elif defined(__aarch64__)
  return vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(load<uint32_t>(x)))));
#else
  Ints ints;
  for (int i = 0; i < kLane; ++i) ints[i] = x[i];
  return ints;
#endif
}
RT_INLINE Ints load_bytes(const uint8_t* x) {
#if defined(__AVX2__)
  return (Ints)load_code(x);
#elif defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128();
  return (Ints)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_loadu_si32(x), zero), zero);
#else
  return load_bytes(reinterpret_cast<const int8_t*>(x)) & 255;
#endif
}
RT_INLINE V widened(const int8_t* codes) {
  return __builtin_convertvector(load_bytes(codes), V);
}
/// The weights of a vector of bytes: those of even k, then those of odd ones.
RT_INLINE void widened_pairs(const uint8_t* pairs, V& low, V& high) {
  const Ints both = load_bytes(pairs);
#if defined(__AVX512F__)
  const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  low = _mm512_permutexvar_ps((__m512i)both, table);
  high = _mm512_permutexvar_ps((__m512i)(both >> 4), table);
#else
  low = __builtin_convertvector((both & 15) - 8, V);
  high = __builtin_convertvector((both >> 4) - 8, V);
#endif
}

/// Columns column, column + apart, ..
template <int kBits, int kRows, int kColumns>
RT_INLINE void tile(const WeightMatmul& p, const float* x, int64_t column, int64_t apart, float* y) {
  V total[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) total[r][c] = V{};
  const int64_t bytes = p.k * kBits / 8, groups = p.k / p.group, group_bytes = p.group * kBits / 8;
  const uint8_t* w = p.weight + column * bytes;
  const float* scale = p.scale + column * groups;
  for (int64_t g = 0; g < groups; ++g) {
    V sum[kRows][kColumns];
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) sum[r][c] = V{};
    const int64_t begin = g * group_bytes;
    for (int64_t at = begin; at < begin + group_bytes; at += kLane)
      for (int c = 0; c < kColumns; ++c) {
        const uint8_t* codes = w + c * apart * bytes + at;
        if constexpr (kBits == 8) {
          const V v = widened(reinterpret_cast<const int8_t*>(codes));
          for (int r = 0; r < kRows; ++r) sum[r][c] += v * load<V>(x + r * p.k + at);
        } else {
          V low, high;
          widened_pairs(codes, low, high);
          for (int r = 0; r < kRows; ++r) {
            sum[r][c] += low * load<V>(x + r * p.k + at);
            sum[r][c] += high * load<V>(x + r * p.k + p.k / 2 + at);
          }
        }
      }
    for (int c = 0; c < kColumns; ++c)
      for (int r = 0; r < kRows; ++r) total[r][c] += sum[r][c] * scale[c * apart * groups + g];
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) y[r * p.n + column + c * apart] = reduced(total[r][c]);
}

// --- one row of 4-bit weights, in integer arithmetic

#if defined(__AVX2__)
#if defined(__AVX512F__)
#define RT_ROW RT_DOT

template <int kFirst, class Bytes, int... kI>
RT_INLINE auto every_second(Bytes v, std::integer_sequence<int, kI...>) {
  return __builtin_shufflevector(v, v, (2 * kI + kFirst)...);
}
/// [high bytes of even k, of odd k, low bytes of even k, of odd k], each [k/2].
void store_values(const WordBlock& block, int64_t at, int64_t k, int8_t* values) {
  int8_t bytes[2][WordBlock::kMost];
  split_bytes(block, WordBlock::kMost, bytes[0], bytes[1]);
  for (int part = 0; part < 2; ++part) {
    const auto v = load<Vector<int8_t, WordBlock::kMost>>(bytes[part]);
    int8_t* to = values + part * k + at / 2;
    store(to, every_second<0>(v, Lanes<WordBlock::kMost / 2>{}));
    store(to + k / 2, every_second<1>(v, Lanes<WordBlock::kMost / 2>{}));
  }
}
/// start + the sums of products of eight k for each lane.
RT_ROW RT_INLINE Ints add_products(Ints start, Ints weights, const Ints (&x)[4]) {
  const __m512i low_bits = _mm512_set1_epi8(15), pairs = (__m512i)weights;
  const __m512i even = _mm512_and_si512(pairs, low_bits);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low_bits);
  __m512i high = _mm512_dpbusd_epi32(_mm512_setzero_si512(), even, (__m512i)x[0]);
  __m512i low = _mm512_dpbusd_epi32((__m512i)start, even, (__m512i)x[2]);
  high = _mm512_dpbusd_epi32(high, odd, (__m512i)x[1]);
  low = _mm512_dpbusd_epi32(low, odd, (__m512i)x[3]);
  return (Ints)_mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
}
/// The scales of 1, 2 or 4 groups, each in as many lanes.
RT_INLINE V spread(const float* scale, int64_t scales) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i group_of = _mm512_srli_epi32(lanes, scales == 4 ? 2 : scales == 2 ? 3 : 4);
  const auto mask = static_cast<__mmask16>((1 << scales) - 1);
  return (V)_mm512_permutexvar_ps(group_of, _mm512_maskz_loadu_ps(mask, scale));
}
#else
#define RT_ROW

/// Words, since vpmaddwd adds products of two of them, and one holds four weights: of k = 0, of 1, of 2 and
/// of 3 modulo 4, each [k/4]. Half of the instructions of widening to f32, with which a row took 1.4 times as
/// long.
void store_values(const WordBlock& block, int64_t at, int64_t k, int8_t* values) {
  auto* const words = reinterpret_cast<int16_t*>(values);
  for (int i = 0; i < WordBlock::kMost; ++i) words[i % 4 * (k / 4) + (at + i) / 4] = block.q[i];
}
/// start + the sums of products of eight k for each lane.
RT_INLINE Ints add_products(Ints start, Ints weights, const Ints (&x)[4]) {
  const __m256i low_bits = _mm256_set1_epi16(15);
  auto sum = (__m256i)start;
  for (int part = 0; part < 4; ++part) {
    const __m256i some = _mm256_and_si256(_mm256_srli_epi16((__m256i)weights, 4 * part), low_bits);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(some, (__m256i)x[part]));
  }
  return (Ints)sum;
}
/// The scales of 1 or 2 groups, each in as many lanes.
RT_INLINE V spread(const float* scale, int64_t scales) {
  return (V)_mm256_set_m128(_mm_set1_ps(scale[scales - 1]), _mm_set1_ps(scale[0]));
}
#endif

bool split_row(const float* x, int64_t k, const SplitRow& row) {
  constexpr int64_t kLaneElements = 8;
  float zeros = 0;
  for (int64_t at = 0; at < k; at += WordBlock::kMost) {
    const WordBlock block = quantize_words(x + at, WordBlock::kMost, zeros);
    store_values(block, at, k, row.values);
    for (int64_t i = 0; i < WordBlock::kMost; i += kLaneElements) {
      row.start[(at + i) / kLaneElements] = -8 * sum_words(block.q + i, kLaneElements);
      row.scale[(at + i) / kLaneElements] = block.scale;
    }
  }
  return zeros == 0;
}

/// Columns column, column + apart, ..
template <int kColumns>
RT_ROW void weight_row_tile(const WeightMatmul& p, const SplitRow& row, int64_t column, int64_t apart,
                            float* y) {
  constexpr int64_t kElements = 2 * kVectorBytes;  // of k in a vector of weights
  const int64_t bytes = p.k / 2, groups = p.k / p.group;
  const int64_t scales = p.group >= kElements ? 1 : kElements / p.group;
  const int64_t steps_of_group = p.group >= kElements ? p.group / kElements : 1;
  const uint8_t* w = p.weight + column * bytes;
  const float* scale = p.scale + column * groups;
  V total[kColumns];
  for (int c = 0; c < kColumns; ++c) total[c] = V{};
  int64_t left = steps_of_group;
  for (int64_t at = 0; at < bytes; at += kVectorBytes) {
    Ints x[4];
    for (int part = 0; part < 4; ++part) x[part] = load<Ints>(row.values + part * bytes + at);
    const auto start = load<Ints>(row.start + at / 4);
    const auto x_scale = load<V>(row.scale + at / 4);
    for (int c = 0; c < kColumns; ++c) {
      const Ints sum = add_products(start, load<Ints>(w + c * apart * bytes + at), x);
      const V factor = spread(scale + c * apart * groups, scales) * x_scale;
      total[c] += __builtin_convertvector(sum, V) * factor;
    }
    if (--left == 0) {
      scale += scales;
      left = steps_of_group;
    }
  }
  for (int c = 0; c < kColumns; ++c) y[column + c * apart] = reduced(total[c]);
}

void weight_row(const WeightMatmul& p, const SplitRow& row, float* y, int64_t begin, int64_t end) {
  const int64_t apart = (end - begin) / 4;
  for (int64_t i = 0; i < apart; ++i) weight_row_tile<4>(p, row, begin + i, apart, y);
  for (int64_t column = begin + 4 * apart; column < end; ++column) weight_row_tile<1>(p, row, column, 1, y);
}
#endif

template <int kBits>
void weight_matmul(const WeightMatmul& p, int64_t begin, int64_t end) {
  int64_t column = begin;
  if (p.group * kBits / 8 % kLane == 0) {
    const int64_t apart = (end - begin) / 4;
    for (; column < begin + apart; ++column) {
      int64_t row = 0;
      for (; row + kMostRows <= p.rows; row += kMostRows)
        tile<kBits, kMostRows, 4>(p, p.x + row * p.k, column, apart, p.y + row * p.n);
      for (; row < p.rows; ++row) tile<kBits, 1, 4>(p, p.x + row * p.k, column, apart, p.y + row * p.n);
    }
    column = begin + 4 * apart;
  }
  const int64_t bytes = p.k * kBits / 8, groups = p.k / p.group;
  for (; column < end; ++column)
    for (int64_t row = 0; row < p.rows; ++row)
      p.y[row * p.n + column] = dot_groups<kBits>(p.x + row * p.k, p.weight + column * bytes,
                                                  p.scale + column * groups, p.k, p.group);
}

constexpr WeightQuantizedLoops make_loops() {
  WeightQuantizedLoops table{};
  table.weight_matmul[0] = &weight_matmul<8>;
  table.weight_matmul[1] = &weight_matmul<4>;
  table.widen_weights[0] = &widen_weights<8>;
  table.widen_weights[1] = &widen_weights<4>;
#if defined(__AVX2__)
  table.split_row = &split_row;
  table.weight_row = &weight_row;
#endif
#if defined(__AVX512F__)
  table.row_needs_dot_products = true;
#endif
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(WeightQuantizedLoops);
