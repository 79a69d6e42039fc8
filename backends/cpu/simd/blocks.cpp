// Codes of numbers in a codebook, and back.
#include <bit>
#include <type_traits>

#include "backends/cpu/simd/codes.h"
#include "backends/cpu/simd/loops.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

/// As bits, because a NaN is then above all numbers.
float largest_magnitude(const float* x, int64_t n) {
  int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return std::bit_cast<float>(largest);
}

#if defined(__AVX512F__)

template <int kCount>
using Count = std::integral_constant<int, kCount>;

/// table[i modulo 16 kVectors] of a table in registers, without a load.
template <int kVectors>
RT_INLINE __m512 pick(const __m512* table, __m512i i) {
  if constexpr (kVectors == 1) {
    return _mm512_permutexvar_ps(i, table[0]);
  } else if constexpr (kVectors == 2) {
    return _mm512_permutex2var_ps(table[0], i, table[1]);
  } else {
    constexpr int kHalf = kVectors / 2;
    const __mmask16 upper = _mm512_test_epi32_mask(i, _mm512_set1_epi32(16 * kHalf));
    return _mm512_mask_blend_ps(upper, pick<kHalf>(table, i), pick<kHalf>(table + kHalf, i));
  }
}

/// Which of the 16 elements from `first` on lie before n.
RT_INLINE __mmask16 before(int64_t first, int64_t n) {
  return first + 16 <= n ? __mmask16{0xffff}
         : first >= n    ? __mmask16{0}
                         : static_cast<__mmask16>((1u << (n - first)) - 1);
}

/// The whole tree fits into half of the registers. A level takes some vectors together: one vector's steps
/// wait for each other.
void find_codes(const float* x, const float* tree, float scale, uint8_t* codes, int64_t n,
                bool keep_positive) {
  constexpr int kTogether = 4;
  __m512 t[16];
  for (int v = 0; v < 16; ++v) t[v] = _mm512_mul_ps(_mm512_loadu_ps(tree + 16 * v), _mm512_set1_ps(scale));
  const __m512i one = _mm512_set1_epi32(1), least = _mm512_set1_epi32(256 + (keep_positive ? 1 : 0));
  for (int64_t first = 0; first < n; first += 16 * kTogether) {
    __mmask16 valid[kTogether];
    __m512 numbers[kTogether];
    __m512i nodes[kTogether];
    for (int v = 0; v < kTogether; ++v) {
      valid[v] = before(first + 16 * v, n);
      numbers[v] = _mm512_maskz_loadu_ps(valid[v], x + first + 16 * v);
      nodes[v] = one;
    }
    const auto descend = [&](auto vectors, const __m512* level) {
      for (int v = 0; v < kTogether; ++v) {
        const __mmask16 reached =
            _mm512_cmp_ps_mask(numbers[v], pick<vectors()>(level, nodes[v]), _CMP_GE_OQ);
        nodes[v] = _mm512_add_epi32(nodes[v], nodes[v]);
        nodes[v] = _mm512_mask_add_epi32(nodes[v], reached, nodes[v], one);
      }
    };
    for (int level = 0; level < 4; ++level) descend(Count<1>{}, t);
    descend(Count<1>{}, t + 1);
    descend(Count<2>{}, t + 2);
    descend(Count<4>{}, t + 4);
    descend(Count<8>{}, t + 8);
    for (int v = 0; v < kTogether; ++v) {
      const __mmask16 positive = _mm512_cmp_ps_mask(numbers[v], _mm512_setzero_ps(), _CMP_GT_OQ);
      nodes[v] = _mm512_mask_max_epu32(nodes[v], positive, nodes[v], least);
      _mm512_mask_cvtepi32_storeu_epi8(codes + first + 16 * v, valid[v], nodes[v]);
    }
  }
}

void numbers_of_codes(const uint8_t* codes, const float* codebook, float scale, float* y, int64_t n) {
  __m512 t[16];
  for (int v = 0; v < 16; ++v)
    t[v] = _mm512_mul_ps(_mm512_loadu_ps(codebook + 16 * v), _mm512_set1_ps(scale));
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, pick<16>(t, load_code(codes + i)));
  for (; i < n; ++i) y[i] = codebook[codes[i]] * scale;
}

#else

/// A level of the tree for some numbers together: one number's loads wait for each other.
void find_codes(const float* x, const float* tree, float scale, uint8_t* codes, int64_t n,
                bool keep_positive) {
  constexpr int64_t kTogether = 64;
  float thresholds[256];
#pragma omp simd
  for (int i = 0; i < 256; ++i) thresholds[i] = tree[i] * scale;
  const int32_t least = keep_positive ? 1 : 0;
  for (int64_t first = 0; first < n; first += kTogether) {
    const int64_t count = n - first < kTogether ? n - first : kTogether;
    const float* numbers = x + first;
    int32_t nodes[kTogether];
    for (int64_t i = 0; i < kTogether; ++i) nodes[i] = 1;
    for (int level = 0; level < 8; ++level)
#pragma omp simd
      for (int64_t i = 0; i < count; ++i)
        nodes[i] = 2 * nodes[i] + (numbers[i] >= thresholds[nodes[i]] ? 1 : 0);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const int32_t code = nodes[i] - 256, positive = numbers[i] > 0 ? least : 0;
      codes[first + i] = static_cast<uint8_t>(code > positive ? code : positive);
    }
  }
}

void numbers_of_codes(const uint8_t* codes, const float* codebook, float scale, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = codebook[codes[i]] * scale;
}

#endif

}  // namespace

void fill_blocks(Simd& table) noexcept {
  table.largest_magnitude = &largest_magnitude;
  table.find_codes = &find_codes;
  table.numbers_of_codes = &numbers_of_codes;
}

}  // namespace rt::cpu::RT_SIMD_ISA
