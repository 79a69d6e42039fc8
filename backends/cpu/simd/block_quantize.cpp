// Codebook quantization and dequantization.
#include "backends/cpu/simd/block_quantize.h"

#include <bit>
#include <type_traits>
#include <utility>

#include "backends/cpu/simd/codes.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

/// Compared as bits, because a NaN is then above all numbers.
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

using Numbers = __m512;
using Integers = __m512i;
constexpr int kTable = 16;  ///< vector registers, which hold the whole tree; as many remain free

RT_INLINE Integers ones() {
  return _mm512_set1_epi32(1);
}
RT_INLINE Numbers permute(Numbers table, Integers i) {
  return _mm512_permutexvar_ps(i, table);
}
RT_INLINE Numbers permute(Numbers first, Numbers second, Integers i) {
  return _mm512_permutex2var_ps(first, i, second);
}
/// `b` where i has this bit, else `a`.
template <int kBit>
RT_INLINE Numbers choose(Numbers a, Numbers b, Integers i) {
  return _mm512_mask_blend_ps(_mm512_test_epi32_mask(i, _mm512_set1_epi32(1 << kBit)), a, b);
}
/// 2 i, plus 1 where a >= b.
RT_INLINE Integers descend(Integers i, Numbers a, Numbers b) {
  const Integers twice = _mm512_add_epi32(i, i);
  return _mm512_mask_add_epi32(twice, _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), twice, ones());
}
/// Stores the low bytes, no less than `least` where a > 0.
RT_INLINE void store_codes(uint8_t* codes, Integers i, Numbers a, int least) {
  const __mmask16 positive = _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ);
  i = _mm512_mask_max_epu32(i, positive, i, _mm512_set1_epi32(least));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(i));
}

#elif defined(__AVX2__)

using Numbers = __m256;
using Integers = __m256i;
constexpr int kTable = 8;  ///< vector registers, for six of the tree's eight levels

RT_INLINE Integers ones() {
  return _mm256_set1_epi32(1);
}
RT_INLINE Numbers permute(Numbers table, Integers i) {
  return _mm256_permutevar8x32_ps(table, i);
}
template <int kBit>
RT_INLINE Numbers choose(Numbers a, Numbers b, Integers i) {
  return _mm256_blendv_ps(a, b, _mm256_castsi256_ps(_mm256_slli_epi32(i, 31 - kBit)));
}
RT_INLINE Numbers permute(Numbers first, Numbers second, Integers i) {
  return choose<3>(permute(first, i), permute(second, i), i);
}
RT_INLINE Integers descend(Integers i, Numbers a, Numbers b) {
  const Integers reached = _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GE_OQ));
  return _mm256_sub_epi32(_mm256_add_epi32(i, i), reached);
}
RT_INLINE void store_codes(uint8_t* codes, Integers i, Numbers a, int least) {
  const Integers positive = _mm256_castps_si256(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_GT_OQ));
  i = _mm256_max_epu32(i, _mm256_and_si256(positive, _mm256_set1_epi32(least)));
  const Integers bytes = _mm256_shuffle_epi8(i, _mm256_set1_epi32(0x0c080400));
  const uint64_t low = static_cast<uint32_t>(_mm256_extract_epi32(bytes, 0));
  const uint64_t high = static_cast<uint32_t>(_mm256_extract_epi32(bytes, 4));
  const uint64_t all = high << 32 | low;
  __builtin_memcpy(codes, &all, sizeof all);
}

#endif

#if defined(__AVX2__)

constexpr int kWidth = sizeof(Numbers) / sizeof(float);

/// table[i modulo kWidth kVectors], of a table in registers.
template <int kVectors>
RT_INLINE Numbers pick(const Numbers* table, Integers i) {
  constexpr int kHalf = kVectors / 2;
  if constexpr (kVectors == 1)
    return permute(table[0], i);
  else if constexpr (kVectors == 2)
    return permute(table[0], table[1], i);
  else
    return choose<std::countr_zero(static_cast<unsigned>(kWidth * kHalf))>(pick<kHalf>(table, i),
                                                                           pick<kHalf>(table + kHalf, i), i);
}

/// The thresholds of a level's nodes: from the table in registers, or by scalar loads from memory, as gathers
/// are slow on many CPUs.
template <int kLevel>
RT_INLINE Numbers thresholds_of(const Numbers* table, const float* tree, Integers nodes) {
  constexpr int kFirst = (1 << kLevel) / kWidth;
  if constexpr (2 << kLevel > kTable * kWidth) {
    int32_t at[kWidth];
    float found[kWidth];
    store(at, nodes);
    for (int k = 0; k < kWidth; ++k) found[k] = tree[at[k]];
    return load<Numbers>(found);
  } else {
    return pick<(kFirst > 1 ? kFirst : 1)>(table + kFirst, nodes);
  }
}

/// Several vectors per level, to hide latency: the steps of one vector depend on each other.
void quantize_block(const float* x, const float* tree, float scale, uint8_t* codes, int64_t n,
                    bool keep_positive) {
  constexpr int kTogether = 4;
  constexpr int64_t kChunk = kTogether * kWidth;
  float thresholds[256];
  for (int i = 0; i < 256; ++i) thresholds[i] = tree[i] * scale;
  Numbers table[kTable];
  for (int v = 0; v < kTable; ++v) table[v] = load<Numbers>(thresholds + kWidth * v);
  const auto find = [&](const float* from, uint8_t* to) {
    Numbers values[kTogether];
    Integers nodes[kTogether];
    for (int v = 0; v < kTogether; ++v) {
      values[v] = load<Numbers>(from + kWidth * v);
      nodes[v] = ones();
    }
    const auto level = [&]<int kLevel>(std::integral_constant<int, kLevel>) {
      for (int v = 0; v < kTogether; ++v)
        nodes[v] = descend(nodes[v], values[v], thresholds_of<kLevel>(table, thresholds, nodes[v]));
    };
    [&]<int... kLevels>(std::integer_sequence<int, kLevels...>) {
      (level(std::integral_constant<int, kLevels>{}), ...);
    }
    (Lanes<8>{});
    for (int v = 0; v < kTogether; ++v)
      store_codes(to + kWidth * v, nodes[v], values[v], 256 + (keep_positive ? 1 : 0));
  };
  int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) find(x + i, codes + i);
  if (i == n) return;
  float rest[kChunk] = {};
  uint8_t found[kChunk];
  __builtin_memcpy(rest, x + i, static_cast<size_t>(n - i) * sizeof(float));
  find(rest, found);
  __builtin_memcpy(codes + i, found, static_cast<size_t>(n - i));
}

#else

/// Several values per level of the tree, to hide latency: the loads of one value depend on each other.
void quantize_block(const float* x, const float* tree, float scale, uint8_t* codes, int64_t n,
                    bool keep_positive) {
  constexpr int64_t kTogether = 64;
  float thresholds[256];
#pragma omp simd
  for (int i = 0; i < 256; ++i) thresholds[i] = tree[i] * scale;
  const int32_t least = keep_positive ? 1 : 0;
  for (int64_t first = 0; first < n; first += kTogether) {
    const int64_t count = n - first < kTogether ? n - first : kTogether;
    const float* values = x + first;
    int32_t nodes[kTogether];
    for (int64_t i = 0; i < kTogether; ++i) nodes[i] = 1;
    for (int level = 0; level < 8; ++level)
#pragma omp simd
      for (int64_t i = 0; i < count; ++i)
        nodes[i] = 2 * nodes[i] + (values[i] >= thresholds[nodes[i]] ? 1 : 0);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const int32_t code = nodes[i] - 256, positive = values[i] > 0 ? least : 0;
      codes[first + i] = static_cast<uint8_t>(code > positive ? code : positive);
    }
  }
}

#endif

void dequantize_block(const uint8_t* codes, const float* codebook, float scale, float* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  Numbers table[kTable];
  for (int v = 0; v < kTable; ++v)
    table[v] = _mm512_mul_ps(load<Numbers>(codebook + 16 * v), _mm512_set1_ps(scale));
  for (; i + 16 <= n; i += 16) store(y + i, pick<kTable>(table, load_code(codes + i)));
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k) y[k] = codebook[codes[k]] * scale;
}

constexpr BlockQuantizeLoops make_loops() {
  BlockQuantizeLoops table{};
  table.largest_magnitude = &largest_magnitude;
  table.quantize_block = &quantize_block;
  table.dequantize_block = &dequantize_block;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(BlockQuantizeLoops);
