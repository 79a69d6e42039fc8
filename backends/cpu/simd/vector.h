// The vector extensions of GCC and Clang: types, shuffles, loads, stores and non-temporal stores. Only
// included by the sources of this directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
inline constexpr int kLineBytes = 64;  ///< of a cache line

template <class T, int kBytes>
struct VectorType {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T, int kBytes = kVectorBytes>
using Vector = typename VectorType<T, kBytes>::type;
template <class T, int kBytes = kVectorBytes>
inline constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
/// 0, 1, 2, .. as template arguments, for shuffles.
template <int kCount>
using Lanes = std::make_integer_sequence<int, kCount>;

template <class V, class T>
RT_INLINE V load(const T* x) {
  V v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
template <class V, class T>
RT_INLINE void store(T* y, V v) {
  __builtin_memcpy(y, &v, sizeof v);
}

/// The first n floats, at most a vector, and zeros.
RT_INLINE Vector<float> load_first(const float* x, int64_t n) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<float>>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1), x));
#elif defined(__AVX2__)
  alignas(32) static constexpr int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return reinterpret_cast<Vector<float>>(_mm256_maskload_ps(x, load<__m256i>(kMasks + 8 - n)));
#else
  Vector<float> v{};
  for (int64_t i = 0; i < kLanes<float>; ++i)
    if (i < n) v[i] = x[i];
  return v;
#endif
}

/// The first n lanes, fewer than a vector, to y.
RT_INLINE void store_first(float* y, Vector<float> v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(y, static_cast<__mmask16>((1U << n) - 1), reinterpret_cast<__m512>(v));
#elif defined(__AVX2__)
  alignas(32) static constexpr int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  _mm256_maskstore_ps(y, load<__m256i>(kMasks + 8 - n), reinterpret_cast<__m256>(v));
#else
  for (int64_t i = 0; i < kLanes<float>; ++i)
    if (i < n) y[i] = v[i];
#endif
}
template <int... kI>
RT_INLINE Vector<int32_t> lane_numbers(std::integer_sequence<int, kI...>) {
  return Vector<int32_t>{kI...};
}
/// The first n lanes of v, and `fill` in the others.
RT_INLINE Vector<float> first_or(Vector<float> v, int64_t n, float fill) {
  const auto is_first = lane_numbers(Lanes<kLanes<float>>{}) < static_cast<int32_t>(n);
  return is_first ? v : Vector<float>{} + fill;
}

/// What combines two numbers, or the lanes of two vectors.
struct Add {
  template <class V>
  RT_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};
struct Multiply {
  template <class V>
  RT_INLINE V operator()(V a, V b) const {
    return a * b;
  }
};
/// Drops a NaN in a.
struct Larger {
  template <class V>
  RT_INLINE V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};
/// The larger, or the smaller; NaN if either is.
template <bool kMax>
struct Extreme {
  template <class V>
  RT_INLINE V operator()(V a, V b) const {
    return kMax ? maximum(a, b) : minimum(a, b);
  }
};
template <class Wide, class Op, int... kLow>
RT_INLINE auto halves_reduced(Wide v, Op op, std::integer_sequence<int, kLow...>) {
  constexpr int kHalf = sizeof...(kLow);
  return op(__builtin_shufflevector(v, v, kLow...), __builtin_shufflevector(v, v, (kLow + kHalf)...));
}
/// The lanes of a vector of floats reduced to four.
template <class Wide, class Op = Add>
RT_INLINE Vector<float, 16> folded(Wide v, Op op = {}) {
  if constexpr (sizeof v == 16)
    return v;
  else
    return folded(halves_reduced(v, op, Lanes<static_cast<int>(sizeof v / sizeof(float)) / 2>{}), op);
}
/// All lanes reduced to one; their sum, if nothing else is asked for.
template <class Op = Add>
RT_INLINE float reduced(Vector<float> v, Op op = {}) {
  const Vector<float, 16> four = folded(v, op);
  return op(op(four[0], four[1]), op(four[2], four[3]));
}

/// A vector's place in rows of floats; the last one of a row may hold fewer elements than a vector, and is
/// padded: a compiler computes such ends element by element, for rows of 24 half of the time.
struct WholeVector {
  int64_t first;
  RT_INLINE Vector<float> load(const float* row) const {
    return RT_SIMD_ISA::load<Vector<float>>(row + first);
  }
  RT_INLINE void store(float* row, Vector<float> v) const { RT_SIMD_ISA::store(row + first, v); }
  RT_INLINE Vector<float> padded(Vector<float> v, float) const { return v; }
};
struct PaddedVector {
  int64_t first, count;
  RT_INLINE Vector<float> load(const float* row) const { return load_first(row + first, count); }
  RT_INLINE void store(float* row, Vector<float> v) const { store_first(row + first, v, count); }
  RT_INLINE Vector<float> padded(Vector<float> v, float fill) const { return first_or(v, count, fill); }
};
/// body(at) for the vectors of rows of n elements, one after the other.
template <class Body>
RT_INLINE void for_vectors(int64_t n, Body body) {
  constexpr int64_t kLane = kLanes<float>;
  int64_t i = 0;
  for (; i + kLane <= n; i += kLane) body(WholeVector{i});
  if (i < n) body(PaddedVector{i, n - i});
}
/// term(at) of these vectors, reduced by op to one number; `neutral` pads. The four chains begin with
/// elements of the row: beginning with `neutral` took 10 to 40 % longer for rows of 16 to 96.
template <class Op, class Term>
RT_INLINE float reduce_row(int64_t n, float neutral, Op op, Term term) {
  constexpr int kChains = 4;
  constexpr int64_t kLane = kLanes<float>;
  const auto end = [&](int64_t i) __attribute__((always_inline)) {
    const PaddedVector at{i, n - i};
    return at.padded(term(at), neutral);
  };
  if (n < kLane) return reduced(end(0), op);
  Vector<float> all = term(WholeVector{0});
  int64_t i = kLane;
  if (n >= kChains * kLane) {
    Vector<float> b = term(WholeVector{kLane}), c = term(WholeVector{2 * kLane}),
                  d = term(WholeVector{3 * kLane});
    for (i = kChains * kLane; i + kChains * kLane <= n; i += kChains * kLane) {
      all = op(term(WholeVector{i}), all);
      b = op(term(WholeVector{i + kLane}), b);
      c = op(term(WholeVector{i + 2 * kLane}), c);
      d = op(term(WholeVector{i + 3 * kLane}), d);
    }
    all = op(op(all, b), op(c, d));
  }
  for (; i + kLane <= n; i += kLane) all = op(term(WholeVector{i}), all);
  return reduced(i < n ? op(end(i), all) : all, op);
}
/// The elements of x reduced by op.
template <class Op>
RT_INLINE float reduce_row(const float* x, int64_t n, float neutral, Op op) {
  return reduce_row(
      n, neutral, op, [x](auto at) __attribute__((always_inline)) { return at.load(x); });
}
/// f of each lane, a function of float that the compiler vectorizes.
template <class F>
RT_INLINE Vector<float> map_lanes(Vector<float> v, F f) {
  float lanes[kLanes<float>];
  store(lanes, v);
#pragma omp simd
  for (int k = 0; k < kLanes<float>; ++k) lanes[k] = f(lanes[k]);
  return load<Vector<float>>(lanes);
}

/// Non-temporal store of a vector, which does not read its cache line first; y is aligned to it.
template <class V, class T>
RT_INLINE void stream(T* y, V v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64)
    return _mm512_stream_si512(reinterpret_cast<__m512i*>(y), reinterpret_cast<__m512i>(v));
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32)
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(y), reinterpret_cast<__m256i>(v));
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(V) == 16)
    return _mm_stream_si128(reinterpret_cast<__m128i*>(y), reinterpret_cast<__m128i>(v));
#endif
  store(y, v);
}
/// Copies with non-temporal stores. `to` need not be aligned: the bytes before the first and after the last
/// whole cache line are copied as usual.
RT_INLINE void stream_bytes(const void* from, void* to, int64_t bytes) {
  using V = Vector<uint8_t>;
  const auto* x = static_cast<const uint8_t*>(from);
  auto* y = static_cast<uint8_t*>(to);
  int64_t i = -static_cast<int64_t>(reinterpret_cast<uintptr_t>(y)) & (kLineBytes - 1);
  if (i > bytes) i = bytes;
  __builtin_memcpy(y, x, static_cast<size_t>(i));
  for (; i + kLineBytes <= bytes; i += kLineBytes)
    for (int64_t k = 0; k < kLineBytes; k += kVectorBytes) stream(y + i + k, load<V>(x + i + k));
  __builtin_memcpy(y + i, x + i, static_cast<size_t>(bytes - i));
}
/// Makes non-temporal stores visible to other threads.
RT_INLINE void finish_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace librt::cpu::RT_SIMD_ISA
