// Operators that stay in 8 bits between matmuls: sums of two quantized tensors, maxima, table lookups.
#include "backends/cpu/simd/quantized.h"

#include "backends/cpu/simd/codes.h"
#include "backends/cpu/simd/loops.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

/// y = round(a factor_a + b factor_b + offset), within [low, high]; the zero points are part of the offset.
template <class A, class B, class Y>
void add_quantized(const void* first, const void* second, void* result, int64_t n, const QuantizedSum& sum) {
  const auto* a = static_cast<const A*>(first);
  const auto* b = static_cast<const B*>(second);
  auto* y = static_cast<Y*>(result);
  int64_t i = 0;
#if defined(__AVX512F__)
  const __m512 fa = _mm512_set1_ps(sum.factor_a), fb = _mm512_set1_ps(sum.factor_b);
  const __m512 offset = _mm512_set1_ps(sum.offset);
  const __m512 low = _mm512_set1_ps(sum.low), high = _mm512_set1_ps(sum.high);
  for (; i + 16 <= n; i += 16) {
    __m512 v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(load_code(a + i)), fa, offset);
    v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(load_code(b + i)), fb, v);
    store_code(y + i, _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, low), high)));
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

template <class T>
void look_up(const uint8_t* x, const void* table, void* result, int64_t n) {
  const auto* from = static_cast<const T*>(table);
  auto* y = static_cast<T*>(result);
  for (int64_t i = 0; i < n; ++i) y[i] = from[x[i]];
}

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
  table.max_i8 = &quantized_max<int8_t>;
  table.max_u8 = &quantized_max<uint8_t>;
  table.look_up[0] = &look_up<uint8_t>;
  table.look_up[1] = &look_up<uint16_t>;
  table.look_up[2] = &look_up<uint32_t>;
  table.look_up[3] = &look_up<uint64_t>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(QuantizedLoops);
