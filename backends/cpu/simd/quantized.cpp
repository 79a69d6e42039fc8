// Operators that stay in 8 bits between matmuls: sums of two quantized tensors, maxima, table lookups.
#include "backends/cpu/simd/quantized.h"

#include "backends/cpu/simd/codes.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

/// y = round(a factor_a + b factor_b + offset), within [low, high]; the zero points are part of the offset.
template <class A, class B, class Y>
void add_quantized(const void* first, const void* second, void* result, int64_t n, const QuantizedSum& sum) {
  const auto* a = static_cast<const A*>(first);
  const auto* b = static_cast<const B*>(second);
  auto* y = static_cast<Y*>(result);
  int64_t i = 0;
#if defined(__AVX2__)
  const Reals fa = all_of(sum.factor_a), fb = all_of(sum.factor_b), offset = all_of(sum.offset);
  const Reals low = all_of(sum.low), high = all_of(sum.high);
  for (; i + kCodes <= n; i += kCodes) {
    Reals v = multiplied_added(real_of(load_code(a + i)), fa, offset);
    v = multiplied_added(real_of(load_code(b + i)), fb, v);
    store_code(y + i, rounded(clamped(v, low, high)));
  }
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k) {
    float v = static_cast<float>(a[k]) * sum.factor_a + sum.offset;
    v = static_cast<float>(b[k]) * sum.factor_b + v;
    v = v < sum.low ? sum.low : v;
    v = v > sum.high ? sum.high : v;
    y[k] = static_cast<Y>(static_cast<int32_t>((v + kRounder) - kRounder));
  }
}

template <class T>
void quantized_max(T* y, const T* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > y[i] ? x[i] : y[i];
}

#if defined(__AVX2__)
/// (sums - less) scale + bias. The product is rounded before the bias is added, as the composite's steps
/// round it: no fused multiply-add, which GCC would make of them even across intrinsics.
RT_INLINE Reals scaled(const int32_t* sums, const int32_t* less, const float* scale, const float* bias) {
  using U = Vector<uint32_t>;
  Reals product = real_of((Integers)(load<U>(sums) - load<U>(less))) * load_real(scale);
  asm("" : "+v"(product));
  return product + load_real(bias);
}

template <class Y>
void requantize(const int32_t* sums, const int32_t* less, const float* scale, const float* bias,
                const Requantized& last, void* result, int64_t n) {
  auto* y = static_cast<Y*>(result);
  const Reals low = all_of(last.low), high = all_of(last.high), by = all_of(last.scale),
              inverse = all_of(last.inverse);
  const Integers zero = all_of(last.zero);
  const auto quantized = [&](Reals v) __attribute__((always_inline)) {
    v = clamped(v, low, high);
    return sum_of(rounded(corrected_quotient(v * inverse, v, by, inverse)), zero);
  };
  const auto at = [&](int64_t i) __attribute__((always_inline)) {
    return quantized(scaled(sums + i, less + i, scale + i, bias + i));
  };
  int64_t i = 0;
#if !defined(__AVX512F__)
  for (; i + 4 * kCodes <= n; i += 4 * kCodes)
    store_codes(y + i, at(i), at(i + kCodes), at(i + 2 * kCodes), at(i + 3 * kCodes));
#endif
  for (; i + kCodes <= n; i += kCodes) store_code(y + i, at(i));
  if (i == n) return;
  int32_t rest[2][kCodes] = {};
  float factors[2][kCodes] = {};
  Y tail[kCodes];
  for (int64_t k = 0; i + k < n; ++k) {
    rest[0][k] = sums[i + k];
    rest[1][k] = less[i + k];
    factors[0][k] = scale[i + k];
    factors[1][k] = bias[i + k];
  }
  store_code(tail, quantized(scaled(rest[0], rest[1], factors[0], factors[1])));
  for (int64_t k = 0; i + k < n; ++k) y[i + k] = tail[k];
}
#endif

void scale_sums(const int32_t* sums, const int32_t* less, const float* scale, const float* bias, float* y,
                int64_t n) {
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + kCodes <= n; i += kCodes) store(y + i, scaled(sums + i, less + i, scale + i, bias + i));
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k)
    y[k] = static_cast<float>(
               static_cast<int32_t>(static_cast<uint32_t>(sums[k]) - static_cast<uint32_t>(less[k]))) *
           scale[k];
#pragma omp simd
  for (int64_t k = i; k < n; ++k) y[k] += bias[k];
}

template <class T>
void look_up(const uint8_t* x, const void* table, void* result, int64_t n) {
  const auto* from = static_cast<const T*>(table);
  auto* y = static_cast<T*>(result);
  for (int64_t i = 0; i < n; ++i) y[i] = from[x[i]];
}

// Tables of bytes stay in registers. GB/s of one core of a Cascade Lake, in L1: one by one 2.1, AVX2 4.9,
// AVX-512BW
// 10. With VBMI a vector takes two permutes.
#if defined(__AVX512F__)

/// `at` gives the elements for 64 indices.
template <class At>
RT_INLINE void look_up_vectors(const uint8_t* x, uint8_t* y, int64_t n, const At& at) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(y + i, at(_mm512_loadu_si512(x + i)));
  if (i == n) return;
  const __mmask64 rest = ~__mmask64{0} >> (64 - (n - i));
  _mm512_mask_storeu_epi8(y + i, rest, at(_mm512_maskz_loadu_epi8(rest, x + i)));
}

/// Index bits 1 to 6 choose one of 64 words in two registers, bit 7 the half of the table, bit 0 the word's
/// byte.
void look_up_words(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t n) {
  __m512i part[4];
  for (int i = 0; i < 4; ++i) part[i] = _mm512_loadu_si512(table + 64 * i);
  const __m512i eight = _mm512_set1_epi16(8);
  const auto words = [&](__m512i index, __mmask32 upper) __attribute__((always_inline)) {
    return _mm512_mask_blend_epi16(upper, _mm512_permutex2var_epi16(part[0], index, part[1]),
                                   _mm512_permutex2var_epi16(part[2], index, part[3]));
  };
  look_up_vectors(
      x, y, n, [&](__m512i v) __attribute__((always_inline)) {
        const __m512i even = words(_mm512_srli_epi16(v, 1), _mm512_movepi16_mask(_mm512_slli_epi16(v, 8)));
        const __m512i odd = words(_mm512_srli_epi16(v, 9), _mm512_movepi16_mask(v));
        // The byte that is wanted goes to the low half of the word, of an odd index to the high half.
        const __m512i low = _mm512_srlv_epi16(even, _mm512_and_si512(_mm512_slli_epi16(v, 3), eight));
        const __m512i high = _mm512_sllv_epi16(odd, _mm512_andnot_si512(_mm512_srli_epi16(v, 5), eight));
        return _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, low, high);
      });
}

__attribute__((target("avx512vbmi"))) void look_up_bytes(const uint8_t* x, const uint8_t* table, uint8_t* y,
                                                         int64_t n) {
  __m512i part[4];
  for (int i = 0; i < 4; ++i) part[i] = _mm512_loadu_si512(table + 64 * i);
  const auto at = [&](__m512i v) __attribute__((always_inline, target("avx512vbmi"))) {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), _mm512_permutex2var_epi8(part[0], v, part[1]),
                                  _mm512_permutex2var_epi8(part[2], v, part[3]));
  };
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(y + i, at(_mm512_loadu_si512(x + i)));
  if (i == n) return;
  const __mmask64 rest = ~__mmask64{0} >> (64 - (n - i));
  _mm512_mask_storeu_epi8(y + i, rest, at(_mm512_maskz_loadu_epi8(rest, x + i)));
}

void look_up_u8(const uint8_t* x, const void* table, void* y, int64_t n) {
  const auto loop = __builtin_cpu_supports("avx512vbmi") ? &look_up_bytes : &look_up_words;
  loop(x, static_cast<const uint8_t*>(table), static_cast<uint8_t*>(y), n);
}

#elif defined(__AVX2__)

/// A shuffle gives 0 where bit 7 of the index is set, and else uses its low 4 bits. The index loses 16 before
/// each row of 16 elements after the first, and stays negative once it is; rows are combined with those
/// before by XOR, so that the XOR of all is the element of the last row reached. Indices of 128 and more are
/// negative from the start, those below with bit 7 inverted.
void look_up_u8(const uint8_t* x, const void* table, void* result, int64_t n) {
  const auto* from = static_cast<const uint8_t*>(table);
  auto* y = static_cast<uint8_t*>(result);
  __m256i rows[16], last = _mm256_setzero_si256();
  for (int i = 0; i < 16; ++i) {
    const __m256i row =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i)));
    rows[i] = i == 8 ? row : _mm256_xor_si256(row, last);
    last = row;
  }
  const __m256i sixteen = _mm256_set1_epi8(16), sign = _mm256_set1_epi8(-128);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    __m256i high = _mm256_xor_si256(low, sign), sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      sum = _mm256_xor_si256(
          sum, _mm256_xor_si256(_mm256_shuffle_epi8(rows[r], low), _mm256_shuffle_epi8(rows[8 + r], high)));
      low = _mm256_subs_epi8(low, sixteen);
      high = _mm256_subs_epi8(high, sixteen);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), sum);
  }
  look_up<uint8_t>(x + i, table, y + i, n - i);
}

#else

void look_up_u8(const uint8_t* x, const void* table, void* y, int64_t n) {
  look_up<uint8_t>(x, table, y, n);
}

#endif

template <class A, class B>
constexpr void set_add(QuantizedLoops& table, int a, int b) {
  table.add_quantized[a][b][0] = &add_quantized<A, B, int8_t>;
  table.add_quantized[a][b][1] = &add_quantized<A, B, uint8_t>;
}

constexpr QuantizedLoops make_loops() {
  QuantizedLoops table{};
  set_add<int8_t, int8_t>(table, 0, 0);
  set_add<int8_t, uint8_t>(table, 0, 1);
  set_add<uint8_t, int8_t>(table, 1, 0);
  set_add<uint8_t, uint8_t>(table, 1, 1);
  table.scale_sums = &scale_sums;
#if defined(__AVX2__)
  table.requantize[0] = &requantize<int8_t>;
  table.requantize[1] = &requantize<uint8_t>;
#endif
  table.max_i8 = &quantized_max<int8_t>;
  table.max_u8 = &quantized_max<uint8_t>;
  table.look_up[0] = &look_up_u8;
  table.look_up[1] = &look_up<uint16_t>;
  table.look_up[2] = &look_up<uint32_t>;
  table.look_up[3] = &look_up<uint64_t>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(QuantizedLoops);
