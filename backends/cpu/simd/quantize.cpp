// Quantization and dequantization of 8- and 16-bit integers, and dot products of 8-bit integers.
#include "backends/cpu/simd/quantize.h"

#include "backends/cpu/simd/codes.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

template <class T>
struct Limits;
template <>
struct Limits<int8_t> {
  static constexpr float kLow = -128, kHigh = 127;
};
template <>
struct Limits<uint8_t> {
  static constexpr float kLow = 0, kHigh = 255;
};
template <>
struct Limits<int16_t> {
  static constexpr float kLow = -32768, kHigh = 32767;
};
template <>
struct Limits<uint16_t> {
  static constexpr float kLow = 0, kHigh = 65535;
};

/// Rounds half to even. No zero point brings a value beyond 2^17 back into any range, so that kRounder
/// suffices.
template <class T>
RT_INLINE T quantized(float quotient, float zero) {
  float q = quotient != quotient ? 0.0f : quotient;
  q = q < -131072.0f ? -131072.0f : q;
  q = q > 131072.0f ? 131072.0f : q;
  q = (q + kRounder) - kRounder + zero;
  q = q < Limits<T>::kLow ? Limits<T>::kLow : q;
  q = q > Limits<T>::kHigh ? Limits<T>::kHigh : q;
  return static_cast<T>(static_cast<int32_t>(q));
}

#if defined(__FMA__) || defined(__aarch64__)
/// x / scale with inverse = 1 / scale: one correction makes the quotient that of the division (Markstein
/// 1990). The quotient is clamped first, so that an infinite x stays infinite.
RT_INLINE float divided(float x, float scale, float inverse) {
  float q = x * inverse;
  q = q < -262144.0f ? -262144.0f : q;
  q = q > 262144.0f ? 262144.0f : q;
  return __builtin_fmaf(__builtin_fmaf(-q, scale, x), inverse, q);
}
#endif

#if defined(__AVX2__)
/// divided() and quantized() of the elements that fill whole vectors; returns how many these are. GCC
/// compiles neither clamp to one instruction.
template <class S, class T>
int64_t quantize_vectors(const S* x, const float* scale, const float* inverse, const T* zero, T* y, int64_t n,
                         bool each) {
  const Reals most = all_of(262144.0f), bound = all_of(131072.0f);
  const Reals least = all_of(-262144.0f), low = all_of(-131072.0f);
  Reals s = all_of(*scale), r = all_of(*inverse);
  Integers z = all_of(zero == nullptr ? 0 : static_cast<int32_t>(*zero));
  int64_t i = 0;
  for (; i + kCodes <= n; i += kCodes) {
    if (each) {
      s = load_real(scale + i);
      r = load_real(inverse + i);
      if (zero != nullptr) z = load_code(zero + i);
    }
    const Reals v = load_real(x + i);
    const Reals q = corrected_quotient(clamped(v * r, least, most), v, s, r);
    store_code(y + i, sum_of(rounded(zero_where_nan(clamped(q, low, bound), q)), z));
  }
  return i;
}
#endif

template <class S, class T>
void quantize(const void* source, const float* scale, [[maybe_unused]] const float* inverse,
              const void* zero_point, void* result, int64_t n, bool each) {
  const auto* x = static_cast<const S*>(source);
  const auto* zero = static_cast<const T*>(zero_point);
  T* y = static_cast<T*>(result);
  const float one_scale = *scale, one_zero = zero == nullptr ? 0.0f : static_cast<float>(*zero);
#if defined(__FMA__) || defined(__aarch64__)
  if (inverse != nullptr) {
    const float one_inverse = *inverse;
    int64_t first = 0;
#if defined(__AVX2__)
    first = quantize_vectors(x, scale, inverse, zero, y, n, each);
#endif
    if (!each) {
#pragma omp simd
      for (int64_t i = first; i < n; ++i)
        y[i] = quantized<T>(divided(static_cast<float>(x[i]), one_scale, one_inverse), one_zero);
    } else if (zero == nullptr) {
#pragma omp simd
      for (int64_t i = first; i < n; ++i)
        y[i] = quantized<T>(divided(static_cast<float>(x[i]), scale[i], inverse[i]), 0.0f);
    } else {
#pragma omp simd
      for (int64_t i = first; i < n; ++i)
        y[i] = quantized<T>(divided(static_cast<float>(x[i]), scale[i], inverse[i]),
                            static_cast<float>(zero[i]));
    }
    return;
  }
#endif
  if (!each) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = quantized<T>(static_cast<float>(x[i]) / one_scale, one_zero);
  } else if (zero == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = quantized<T>(static_cast<float>(x[i]) / scale[i], 0.0f);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      y[i] = quantized<T>(static_cast<float>(x[i]) / scale[i], static_cast<float>(zero[i]));
  }
}

/// x minus its zero point: exact, in the widest type that is needed.
template <class T>
RT_INLINE float difference(T x, T zero) {
  if constexpr (sizeof(T) == 4)
    return static_cast<float>(static_cast<int64_t>(x) - static_cast<int64_t>(zero));
  else
    return static_cast<float>(static_cast<int32_t>(x) - static_cast<int32_t>(zero));
}

template <class T>
void dequantize(const void* codes, const float* scale, const void* zero_point, float* y, int64_t n,
                bool each) {
  const auto *x = static_cast<const T*>(codes), *zero = static_cast<const T*>(zero_point);
  if (!each) {
    const float factor = *scale;
    const T offset = zero == nullptr ? T{0} : *zero;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = difference(x[i], offset) * factor;
  } else if (zero == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = difference(x[i], T{0}) * scale[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = difference(x[i], zero[i]) * scale[i];
  }
}

void narrow_float(const float* x, float* y, int64_t n, const FloatFormat& format) {
  const uint32_t least = static_cast<uint32_t>(format.exponent + 127);
  const uint32_t mantissa = static_cast<uint32_t>(format.mantissa);
  const float largest = format.largest, beyond = format.beyond, for_nan = format.nan;
  const uint32_t zero_sign = format.minus_zero ? 0x80000000u : 0u;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = float_to_bits(x[i]);
    uint32_t exponent = (bits & 0x7fffffffu) >> 23;
    exponent = exponent < least ? least : exponent;
    exponent = exponent > 250u ? 250u : exponent;
    // In units of the last place that is kept.
    const float size = bits_to_float(bits & 0x7fffffffu) * bits_to_float((254u + mantissa - exponent) << 23);
    const float whole = (size < 65536.0f ? size : 65536.0f) + kRounder - kRounder;
    float magnitude = whole * bits_to_float((exponent - mantissa) << 23);
    magnitude = magnitude > largest ? beyond : magnitude;
    const uint32_t sign = magnitude == 0.0f ? bits & zero_sign : bits & 0x80000000u;
    const float result = bits_to_float(float_to_bits(magnitude) | sign);
    y[i] = x[i] != x[i] ? for_nan : result;
  }
}

template <class T>
int32_t sum_row(const void* row, int64_t n) {
  const auto* x = static_cast<const T*>(row);
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

template <class T>
void multiply_add(int32_t* y, const void* row, int32_t factor, int64_t n) {
  const auto* x = static_cast<const T*>(row);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<int32_t>(static_cast<uint32_t>(y[i]) + static_cast<uint32_t>(factor * x[i]));
}

template <class T, class U>
int32_t dot(const void* first, const void* second, int32_t first_zero, int32_t second_zero, int64_t n) {
  const auto* x = static_cast<const T*>(first);
  const auto* w = static_cast<const U*>(second);
  uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<uint32_t>((x[i] - first_zero) * (w[i] - second_zero));
  return static_cast<int32_t>(sum);
}

void combine_integers(int32_t* y, const int32_t* a, int32_t factor_a, const int32_t* b, int32_t factor_b,
                      int64_t n) {
  const auto fa = static_cast<uint32_t>(factor_a), fb = static_cast<uint32_t>(factor_b);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<int32_t>(static_cast<uint32_t>(y[i]) + fa * static_cast<uint32_t>(a[i]) +
                                fb * static_cast<uint32_t>(b[i]));
}

template <int kWidth, class T>
void sum_narrow(const T* x, int32_t* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    int32_t sum = 0;
    for (int c = 0; c < kWidth; ++c) sum += x[i * kWidth + c];
    y[i] = sum;
  }
}
template <class T>
void sum_runs(const void* runs, int32_t* y, int64_t n, int64_t width) {
  const auto* x = static_cast<const T*>(runs);
  switch (width) {
    case 1: return sum_narrow<1>(x, y, n);
    case 2: return sum_narrow<2>(x, y, n);
    case 3: return sum_narrow<3>(x, y, n);
    case 4: return sum_narrow<4>(x, y, n);
    case 8: return sum_narrow<8>(x, y, n);
    default: break;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = sum_row<T>(x + i * width, width);
}

/// In unsigned integers, which may wrap.
void add_outer(int32_t* y, const int32_t* a, const int32_t* b, const int32_t* factors, int64_t rows,
               int64_t n) {
  using V = Vector < uint32_t, kVectorBytes<32 ? kVectorBytes : 32>;
  constexpr int64_t kWidth = sizeof(V) / sizeof(uint32_t);
  for (int64_t r = 0; r < rows; ++r, y += n) {
    const auto factor = static_cast<uint32_t>(factors[r]);
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth)
      store(y + i, load<V>(y + i) + load<V>(a + i) + load<V>(b + i) * (V{} + factor));
    for (; i < n; ++i)
      y[i] = static_cast<int32_t>(static_cast<uint32_t>(y[i]) + static_cast<uint32_t>(a[i]) +
                                  static_cast<uint32_t>(b[i]) * factor);
  }
}

void flip_signs(const uint8_t* x, int8_t* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int8_t>(x[i] ^ 0x80u);
}

constexpr QuantizeLoops make_loops() {
  QuantizeLoops table{};
  using Code = IntegerCode;
  const auto set = [&]<class T>(Code code, T) {
    table.quantize[static_cast<int>(code)] = &quantize<float, T>;
    table.quantize_sums[static_cast<int>(code)] = &quantize<int32_t, T>;
    table.dequantize[static_cast<int>(code)] = &dequantize<T>;
  };
  set(Code::I8, int8_t{});
  set(Code::U8, uint8_t{});
  set(Code::I16, int16_t{});
  set(Code::U16, uint16_t{});
  table.dequantize[static_cast<int>(Code::I32)] = &dequantize<int32_t>;
  table.narrow_float = &narrow_float;
  table.sum_row[0] = &sum_row<int8_t>;
  table.sum_row[1] = &sum_row<uint8_t>;
  table.multiply_add[0] = &multiply_add<int8_t>;
  table.multiply_add[1] = &multiply_add<uint8_t>;
  table.dot[0][0] = &dot<int8_t, int8_t>;
  table.dot[0][1] = &dot<int8_t, uint8_t>;
  table.dot[1][0] = &dot<uint8_t, int8_t>;
  table.dot[1][1] = &dot<uint8_t, uint8_t>;
  table.combine_integers = &combine_integers;
  table.sum_runs[0] = &sum_runs<int8_t>;
  table.sum_runs[1] = &sum_runs<uint8_t>;
  table.add_outer = &add_outer;
  table.flip_signs = &flip_signs;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(QuantizeLoops);
