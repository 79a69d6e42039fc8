// As simd/gemm.cpp: a tile's sums stay in registers while k runs, four or two steps of k at a time.
//
//   AArch64 with dotprod   8 x 12   sdot by element: s8 by s8
//   AVX-512 with VNNI     14 x 32   vpdpbusd with a broadcast: u8 by s8
//   AVX-VNNI               6 x 16   likewise
//   x86-64 without either           vpmaddwd with a broadcast, s16 by s16: 14 x 32, 6 x 16 or 4 x 8
//
// vpmaddwd takes two steps of k, where f32's multiply-add takes one, and an addition of its own. (vpmaddubsw
// takes four, but saturates: 255 * 127 * 2 does not fit its 16 bits.) b stays in bytes, which are widened on
// load.
//
// By llvm-mca 14 the loop of 384 multiply-adds takes 27.0 cycles on a Cortex-A55 and 13.1 on an A76; f32's
// takes 26.0 on an A55 for 96.
//
// The first three are chosen at run time (Simd::dot_products).
#include "backends/cpu/simd/integer_gemm.h"

#include "backends/cpu/simd/dot_products.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

#if defined(__AVX512F__)
using V = __m512i;
constexpr int kRows = 14, kVectors = 2, kRowUnit = 7;
#elif defined(__AVX2__)
using V = __m256i;
constexpr int kRows = 6, kVectors = 2, kRowUnit = 3;
#elif defined(__aarch64__)
using V = int32x4_t;
constexpr int kRows = 8, kVectors = 3, kRowUnit = 4;
#else
#if defined(__SSE2__)
using V = __m128i;
#else
using V = Vector<int32_t>;
#endif
constexpr int kRows = 4, kVectors = 2, kRowUnit = 2;
#endif
constexpr int kLane = sizeof(V) / sizeof(int32_t);
constexpr int kColumns = kVectors * kLane;
static_assert(kRows <= IntegerGemmLoops::kMostRows && kColumns <= IntegerGemmLoops::kMostColumns);

/// The first m rows and n columns of a tile's sums.
template <int kR>
RT_INLINE void write(const V (&sums)[kR][kVectors], int32_t* y, int64_t stride, int64_t m, int64_t n) {
  if (n == kColumns) {
#pragma GCC unroll 14
    for (int i = 0; i < kR; ++i) {
      if (i == m) return;
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) __builtin_memcpy(y + i * stride + j * kLane, &sums[i][j], sizeof(V));
    }
    return;
  }
  int32_t whole[kR][kColumns];
#pragma GCC unroll 14
  for (int i = 0; i < kR; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) __builtin_memcpy(whole[i] + j * kLane, &sums[i][j], sizeof(V));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) y[i * stride + j] = whole[i][j];
}

#if defined(__SSE2__)
RT_INLINE V broadcast(const uint8_t* word) {
  int32_t value;
  __builtin_memcpy(&value, word, sizeof value);
  return (V)(value - Vector<int32_t>{});
}
/// As many integers as V has in 16 bits.
template <class B>
RT_INLINE V words(const uint8_t* b) {
  if constexpr (sizeof(B) == 2) return load<V>(b);
#if defined(__AVX512F__)
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
#elif defined(__AVX2__)
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
#else
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b));
  return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
#endif
}
RT_INLINE V add_pairs(V sum, V a, V b) {
#if defined(__AVX512F__)
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#elif defined(__AVX2__)
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#else
  return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
#endif
}

/// A tile of kR rows of i16 in pairs, row_step bytes apart. b in bytes: a's panel has kRows; b in 16 bits:
/// a's rows are where they are.
template <int kR, class B>
void pairs_of(const uint8_t* a, int64_t a_stride, const uint8_t* b, int64_t pairs, int32_t* y, int64_t stride,
              int64_t m, int64_t n) {
  V sums[kR][kVectors];
#pragma GCC unroll 14
  for (int i = 0; i < kR; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  for (int64_t p = 0; p < pairs; ++p, a += 4, b += 2 * sizeof(B) * kColumns) {
    const V row[kVectors] = {words<B>(b), words<B>(b + 2 * sizeof(B) * kLane)};
#pragma GCC unroll 14
    for (int i = 0; i < kR; ++i) {
      const V element = broadcast(a + i * a_stride);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[i][j] = add_pairs(sums[i][j], element, row[j]);
    }
  }
  write(sums, y, stride, m, n);
}
#else
/// As above. Both steps of a pair are multiplied in 32 bits.
template <int kR, class B>
void pairs_of(const uint8_t* a, int64_t a_stride, const uint8_t* b, int64_t pairs, int32_t* y, int64_t stride,
              int64_t m, int64_t n) {
  using Words = Vector<int16_t>;
  V sums[kR][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kR; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  for (int64_t p = 0; p < pairs; ++p, a += 4, b += 2 * sizeof(B) * kColumns) {
    V first[kVectors], second[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      const auto both = (V) __builtin_convertvector(
          (load<Vector<B, 2 * sizeof(B) * kLane> >(b + 2 * sizeof(B) * kLane * j)), Words);
      second[j] = both >> 16;
      first[j] = (both << 16) >> 16;
    }
#pragma GCC unroll 8
    for (int i = 0; i < kR; ++i) {
      int16_t two[2];
      __builtin_memcpy(two, a + i * a_stride, sizeof two);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) sums[i][j] += first[j] * two[0] + second[j] * two[1];
    }
  }
  write(sums, y, stride, m, n);
}
#endif
template <class B>
void pairs(const uint8_t* a, int64_t a_stride, const uint8_t* b, int64_t count, int32_t* y, int64_t stride,
           int64_t m, int64_t n) {
  (m <= kRowUnit ? pairs_of<kRowUnit, B> : pairs_of<kRows, B>)(a, a_stride, b, count, y, stride, m, n);
}

#if RT_DOT_PRODUCTS
#if defined(__AVX512F__)
RT_DOT RT_INLINE V add_dots(V sum, V a, V b) {
  return _mm512_dpbusd_epi32(sum, a, b);
}
#elif defined(__AVX2__)
RT_DOT RT_INLINE V add_dots(V sum, V a, V b) {
  return _mm256_dpbusd_avx_epi32(sum, a, b);
}
#endif

/// A tile of kR rows; a's panel has kRows.
template <int kR>
RT_DOT void tile_of(const uint8_t* a, const uint8_t* b, int64_t quads, int32_t* y, int64_t stride, int64_t m,
                    int64_t n) {
  V sums[kR][kVectors];
#pragma GCC unroll 14
  for (int i = 0; i < kR; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  for (int64_t q = 0; q < quads; ++q, a += 4 * kRows, b += 4 * kColumns) {
#if defined(__AVX2__)
    V row[kVectors];
    __builtin_memcpy(row, b, sizeof row);
#pragma GCC unroll 14
    for (int i = 0; i < kR; ++i) {
      const V element = broadcast(a + 4 * i);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) sums[i][j] = add_dots(sums[i][j], element, row[j]);
    }
#else
    const auto load = [](const uint8_t* x) RT_DOT { return vreinterpretq_s8_u8(vld1q_u8(x)); };
    const int8x16_t row[kVectors] = {load(b), load(b + 16), load(b + 32)};
#pragma GCC unroll 2
    for (int first = 0; first < kR; first += kLane) {
      const int8x16_t four = load(a + 4 * first);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) {
        sums[first][j] = vdotq_laneq_s32(sums[first][j], row[j], four, 0);
        sums[first + 1][j] = vdotq_laneq_s32(sums[first + 1][j], row[j], four, 1);
        sums[first + 2][j] = vdotq_laneq_s32(sums[first + 2][j], row[j], four, 2);
        sums[first + 3][j] = vdotq_laneq_s32(sums[first + 3][j], row[j], four, 3);
      }
    }
#endif
  }
  write(sums, y, stride, m, n);
}

void tile(const uint8_t* a, int64_t, const uint8_t* b, int64_t quads, int32_t* y, int64_t stride, int64_t m,
          int64_t n) {
  (m <= kRowUnit ? tile_of<kRowUnit> : tile_of<kRows>)(a, b, quads, y, stride, m, n);
}
#endif

template <class T>
void widen(const uint8_t* bytes, int16_t* y, int64_t n) {
  const auto* x = reinterpret_cast<const T*>(bytes);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i];
}

void flip(const uint8_t* x, uint8_t* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<uint8_t>(x[i] ^ 0x80u);
}

template <class X, class W>
void multiply_add(const void* first, const void* second, int32_t x_zero, const int32_t* w_zeros, int32_t* y,
                  int64_t channels) {
  const auto* x = static_cast<const X*>(first);
  const auto* w = static_cast<const W*>(second);
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c)
    y[c] = static_cast<int32_t>(static_cast<uint32_t>(y[c]) +
                                static_cast<uint32_t>((x[c] - x_zero) * (w[c] - w_zeros[c])));
}

#if defined(__SSE2__)
/// kLane bytes of either, in pairs, in 16 bits.
template <class T>
RT_INLINE V paired(const uint8_t* x, const uint8_t* y) {
#if defined(__AVX512F__)
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x)),
                b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(y));
  const __m256i bytes = _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b));
  return T(-1) < 0 ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
#elif defined(__AVX2__)
  const __m128i bytes = _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)),
                                          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(y)));
  return T(-1) < 0 ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
#else
  const __m128i bytes = _mm_unpacklo_epi8(_mm_loadu_si32(x), _mm_loadu_si32(y));
  return T(-1) < 0 ? _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8)
                   : _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
#endif
}
#endif

template <class T>
void sum_taps(const uint8_t* const* x, const int16_t* w, int64_t pairs, int32_t* y, int64_t channels) {
  int64_t c = 0;
#if defined(__SSE2__)
  for (; c + kLane <= channels; c += kLane) {
    V sum{};
    for (int64_t p = 0; p < pairs; ++p) {
      V factors;
      __builtin_memcpy(&factors, w + 2 * (p * channels + c), sizeof factors);
      sum = add_pairs(sum, paired<T>(x[2 * p] + c, x[2 * p + 1] + c), factors);
    }
    __builtin_memcpy(y + c, &sum, sizeof sum);
  }
#endif
  for (int64_t i = c; i < channels; ++i) y[i] = 0;
  for (int64_t t = 0; t < 2 * pairs; ++t) {
    const auto* from = reinterpret_cast<const T*>(x[t]);
    const int16_t* factors = w + t / 2 * 2 * channels + t % 2;
#pragma omp simd
    for (int64_t i = c; i < channels; ++i) y[i] += from[i] * factors[2 * i];
  }
}

constexpr IntegerGemmLoops make_loops() {
  IntegerGemmLoops table{};
#if RT_DOT_PRODUCTS
#if defined(__aarch64__)
  constexpr bool kASigned = true;
#else
  constexpr bool kASigned = false;
#endif
  table.dot = {kRows, kColumns, 4, false, kASigned, &tile};
#endif
  table.pairs = {kRows, kColumns, 2, true, true, &pairs<int8_t>};
  table.wide_pairs = {kRows, kColumns, 2, true, true, &pairs<int16_t>};
  table.widen[0] = &widen<int8_t>;
  table.widen[1] = &widen<uint8_t>;
  table.sum_taps[0] = &sum_taps<int8_t>;
  table.sum_taps[1] = &sum_taps<uint8_t>;
  table.flip = &flip;
  table.multiply_add[0][0] = &multiply_add<int8_t, int8_t>;
  table.multiply_add[0][1] = &multiply_add<int8_t, uint8_t>;
  table.multiply_add[1][0] = &multiply_add<uint8_t, int8_t>;
  table.multiply_add[1][1] = &multiply_add<uint8_t, uint8_t>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(IntegerGemmLoops);
