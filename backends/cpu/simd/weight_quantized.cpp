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
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

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

RT_INLINE float sum_of_lanes(V x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(x);
#else
  float sum = 0;
  for (int i = 0; i < kLane; ++i) sum += x[i];
  return sum;
#endif
}
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
    for (int c = 0; c < kColumns; ++c) y[r * p.n + column + c * apart] = sum_of_lanes(total[r][c]);
}

// --- one row of 4-bit weights, in integer arithmetic
#if defined(__AVX512F__)
// q = 256 high + low: [high of even k, of odd k, low of even k, of odd k].

#define RT_VNNI __attribute__((target("avx512vnni")))

bool split_row(const float* x, int64_t k, const SplitRow& row) {
  constexpr float kMost = 32639;  // 256 * 127 + 127
  bool finite = true;
  for (int64_t at = 0; at < k / 2; at += 16) {
    const __m512 even = _mm512_loadu_ps(x + at), odd = _mm512_loadu_ps(x + k / 2 + at);
    const float most = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(even), _mm512_abs_ps(odd)));
    finite &= (_mm512_cmp_ps_mask(even, odd, _CMP_UNORD_Q)) == 0 && most < __builtin_inff();
    const bool tiny = most < 1e-30f;
    const __m512 factor = _mm512_set1_ps(tiny ? 0.0f : kMost / most);
    const __m512i q[2] = {_mm512_cvtps_epi32(_mm512_mul_ps(even, factor)),
                          _mm512_cvtps_epi32(_mm512_mul_ps(odd, factor))};
    for (int half = 0; half < 2; ++half) {
      const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(q[half], _mm512_set1_epi32(128)), 8);
      int8_t* to = row.values + half * k / 2 + at;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(high));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k), _mm512_cvtepi32_epi8(q[half]));
    }
    __m512i sum = _mm512_add_epi32(q[0], q[1]);
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
    sum = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, 3));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row.start + at / 4),
                     _mm512_castsi512_si128(_mm512_maskz_compress_epi32(0x1111, sum)));
    _mm_storeu_ps(row.scale + at / 4, _mm_set1_ps(most / kMost));
  }
  return finite;
}

/// Columns column, column + apart, ..
template <int kColumns>
RT_VNNI void weight_row_tile(const WeightMatmul& p, const SplitRow& row, int64_t column, int64_t apart,
                             float* y) {
  const __m512i low_bits = _mm512_set1_epi8(15);
  const int64_t bytes = p.k / 2, groups = p.k / p.group;
  const int scales = p.group >= 128 ? 1 : static_cast<int>(128 / p.group);  // in 64 bytes of weights
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i group_of = _mm512_srli_epi32(lanes, scales == 4 ? 2 : scales == 2 ? 3 : 4);
  const auto mask = static_cast<__mmask16>((1 << scales) - 1);
  const int64_t steps_of_group = p.group >= 128 ? p.group / 128 : 1;
  const uint8_t* w = p.weight + column * bytes;
  const float* scale = p.scale + column * groups;
  __m512 total[kColumns];
  for (int c = 0; c < kColumns; ++c) total[c] = _mm512_setzero_ps();
  int64_t left = steps_of_group;
  for (int64_t at = 0; at < bytes; at += 64) {
    const int8_t* values = row.values + at;
    const __m512i even_high = _mm512_loadu_si512(values), odd_high = _mm512_loadu_si512(values + bytes);
    const __m512i even_low = _mm512_loadu_si512(values + 2 * bytes),
                  odd_low = _mm512_loadu_si512(values + 3 * bytes);
    const __m512i start = _mm512_loadu_si512(row.start + at / 4);
    const __m512 x_scale = _mm512_loadu_ps(row.scale + at / 4);
    for (int c = 0; c < kColumns; ++c) {
      const __m512i pairs = _mm512_loadu_si512(w + c * apart * bytes + at);
      const __m512i even = _mm512_and_si512(pairs, low_bits);
      const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low_bits);
      __m512i high = _mm512_dpbusd_epi32(_mm512_setzero_si512(), even, even_high);
      __m512i low = _mm512_dpbusd_epi32(start, even, even_low);
      high = _mm512_dpbusd_epi32(high, odd, odd_high);
      low = _mm512_dpbusd_epi32(low, odd, odd_low);
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
      const __m512 factor =
          _mm512_permutexvar_ps(group_of, _mm512_maskz_loadu_ps(mask, scale + c * apart * groups));
      total[c] = _mm512_fmadd_ps(sum, _mm512_mul_ps(factor, x_scale), total[c]);
    }
    if (--left == 0) {
      scale += scales;
      left = steps_of_group;
    }
  }
  for (int c = 0; c < kColumns; ++c) y[column + c * apart] = _mm512_reduce_add_ps(total[c]);
}

#elif defined(__AVX2__)
// A word of 16 bits holds four weights: q is [4][k/4], the four of each word apart, and vpmaddwd adds
// products of two words. Half of the instructions of widening to f32, with which one row took 1.5 times as
// long.

bool split_row(const float* x, int64_t k, const SplitRow& row) {
  constexpr float kMost = 32639;
  constexpr int kBlock = 16;  // of even and of odd elements
  auto* const words = reinterpret_cast<int16_t*>(row.values);
  float not_finite = 0;  // NaN if one is not
  for (int64_t at = 0; at < k / 2; at += kBlock) {
    const float *even = x + at, *odd = x + k / 2 + at;
    float most = 0;
#pragma omp simd reduction(max : most) reduction(+ : not_finite)
    for (int i = 0; i < kBlock; ++i) {
      const float a = absolute(even[i]), b = absolute(odd[i]);
      const float larger = a > b ? a : b;
      most = larger > most ? larger : most;
      not_finite += even[i] * 0.0f + odd[i] * 0.0f;
    }
    const float factor = most < 1e-30f ? 0.0f : kMost / most;
    uint32_t q[2][kBlock];  // wrap where x is not finite
#pragma omp simd
    for (int i = 0; i < kBlock; ++i) {
      q[0][i] = float_to_bits(even[i] * factor + kRounder) - float_to_bits(kRounder);
      q[1][i] = float_to_bits(odd[i] * factor + kRounder) - float_to_bits(kRounder);
    }
    for (int part = 0; part < 4; ++part) {
      int16_t* to = words + (part * k + 2 * at) / 4;
      for (int i = 0; i < kBlock / 2; ++i) to[i] = static_cast<int16_t>(q[part % 2][2 * i + part / 2]);
    }
    for (int lane = 0; lane < 4; ++lane) {
      uint32_t sum = 0;
      for (int i = 4 * lane; i < 4 * lane + 4; ++i) sum += q[0][i] + q[1][i];
      row.start[at / 4 + lane] = static_cast<int32_t>(0u - 8 * sum);
      row.scale[at / 4 + lane] = most / kMost;
    }
  }
  return not_finite == 0;
}

/// Columns column, column + apart, ..
template <int kColumns>
void weight_row_tile(const WeightMatmul& p, const SplitRow& row, int64_t column, int64_t apart, float* y) {
  const __m256i low_bits = _mm256_set1_epi16(15);
  const int64_t bytes = p.k / 2, groups = p.k / p.group;
  const int64_t scales = p.group == 32 ? 2 : 1, steps_of_group = p.group == 32 ? 1 : p.group / 64;
  const uint8_t* w = p.weight + column * bytes;
  const float* scale = p.scale + column * groups;
  __m256 total[kColumns];
  for (int c = 0; c < kColumns; ++c) total[c] = _mm256_setzero_ps();
  int64_t left = steps_of_group;
  for (int64_t at = 0; at < bytes; at += 32) {
    __m256i x[4];
    for (int part = 0; part < 4; ++part) x[part] = load<__m256i>(row.values + part * bytes + at);
    const auto start = load<__m256i>(row.start + at / 4);
    const auto x_scale = load<__m256>(row.scale + at / 4);
    for (int c = 0; c < kColumns; ++c) {
      const auto v = load<__m256i>(w + c * apart * bytes + at);
      const auto weight = [&](int part) __attribute__((always_inline)) {
        return _mm256_and_si256(_mm256_srli_epi16(v, 4 * part), low_bits);
      };
      __m256i sum = _mm256_add_epi32(start, _mm256_madd_epi16(weight(0), x[0]));
      for (int part = 1; part < 4; ++part)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(weight(part), x[part]));
      const float* of = scale + c * apart * groups;
      const __m256 factor = _mm256_set_m128(_mm_set1_ps(of[scales - 1]), _mm_set1_ps(of[0]));
      total[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(factor, x_scale), total[c]);
    }
    if (--left == 0) {
      scale += scales;
      left = steps_of_group;
    }
  }
  for (int c = 0; c < kColumns; ++c) y[column + c * apart] = reduced((V)total[c]);
}
#endif

#if defined(__AVX512F__)
RT_VNNI
#endif
#if defined(__AVX2__)
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
