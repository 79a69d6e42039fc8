// Two-operand loops: arithmetic and comparisons.
#include "backends/cpu/simd/binary.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/power.h"
#include "runtime/core/in_build.h"

extern "C" float fmodf(float, float) noexcept;

namespace librt::cpu::RT_SIMD_ISA {
namespace {

#define RT_TWO_OPERANDS(Name, Out, expression)                                         \
  struct Name {                                                                        \
    using Result = Out;                                                                \
    static RT_INLINE Out of(float a, float b) { return static_cast<Out>(expression); } \
  };
RT_TWO_OPERANDS(Add, float, a + b)
RT_TWO_OPERANDS(Sub, float, a - b)
RT_TWO_OPERANDS(Mul, float, a* b)
RT_TWO_OPERANDS(Div, float, a / b)
RT_TWO_OPERANDS(Minimum, float, minimum(a, b))
RT_TWO_OPERANDS(Maximum, float, maximum(a, b))
RT_TWO_OPERANDS(GeluGrad, float, a* gelu_slope(b))
RT_TWO_OPERANDS(GeluTanhGrad, float, a* gelu_tanh_slope(b))
RT_TWO_OPERANDS(SiluGrad, float, a* silu_slope(b))
RT_TWO_OPERANDS(ReluGrad, float, pick(b > 0.0f, a, 0.0f))
RT_TWO_OPERANDS(Equal, uint8_t, a == b)
RT_TWO_OPERANDS(Less, uint8_t, a < b)
RT_TWO_OPERANDS(LessOrEqual, uint8_t, a <= b)
RT_TWO_OPERANDS(Greater, uint8_t, a > b)
RT_TWO_OPERANDS(GreaterOrEqual, uint8_t, a >= b)

template <class Function, Advance kAdvance>
void loop(const float* a, const float* b, typename Function::Result* y, int64_t n) {
  if constexpr (kAdvance == Advance::Both) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = Function::of(a[i], b[i]);
  } else if constexpr (kAdvance == Advance::First) {
    const float second = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = Function::of(a[i], second);
  } else {
    const float first = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = Function::of(first, b[i]);
  }
}

template <Advance kAdvance>
void power_loop(const float* a, const float* b, float* y, int64_t n) {
  constexpr bool kMoveA = kAdvance != Advance::Second, kMoveB = kAdvance != Advance::First;
  const Narrow first = Narrow{} + (kMoveA ? 0.0f : *a), second = Narrow{} + (kMoveB ? 0.0f : *b);
  int64_t i = 0;
  for (; i + kPairs <= n; i += kPairs)
    store(y + i, power(kMoveA ? load<Narrow>(a + i) : first, kMoveB ? load<Narrow>(b + i) : second));
  if (i == n) return;
  const size_t bytes = static_cast<size_t>(n - i) * sizeof(float);
  Narrow rest_a = first, rest_b = second;
  if (kMoveA) __builtin_memcpy(&rest_a, a + i, bytes);
  if (kMoveB) __builtin_memcpy(&rest_b, b + i, bytes);
  const Narrow rest = power(rest_a, rest_b);
  __builtin_memcpy(y + i, &rest, bytes);
}

/// Common exponents need no logarithm.
void power_of_one(const float* a, const float* b, float* y, int64_t n) {
  const float e = *b;
  if (e == 2.0f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * a[i];
  } else if (e == 3.0f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * a[i] * a[i];
  } else if (e == 1.0f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = a[i];
  } else if (e == -1.0f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = 1.0f / a[i];
  } else if (e == 0.5f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      y[i] = pick(a[i] == -__builtin_inff(), __builtin_inff(), __builtin_sqrtf(a[i] + 0.0f));
  } else {
    power_loop<Advance::First>(a, b, y, n);
  }
}

/// Sign of the divisor, as in Python, unless truncated. A block with a quotient too large for truncated_mod()
/// falls back to the C library.
template <bool kTruncated, Advance kAdvance>
void remainder(const float* a, const float* b, float* y, int64_t n) {
  constexpr int64_t kBlockSize = 256, kMoveA = kAdvance != Advance::Second,
                    kMoveB = kAdvance != Advance::First;
  for (int64_t start = 0; start < n; start += kBlockSize) {
    const int64_t count = n - start < kBlockSize ? n - start : kBlockSize;
    const float *first = a + start * kMoveA, *second = b + start * kMoveB;
    int32_t large = 0;
#pragma omp simd reduction(+ : large)
    for (int64_t i = 0; i < count; ++i)
      large += small_quotient(first[i * kMoveA], second[i * kMoveB]) ? 0 : 1;
    float rest[kBlockSize];
    if (large != 0) {
      for (int64_t i = 0; i < count; ++i) rest[i] = fmodf(first[i * kMoveA], second[i * kMoveB]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) rest[i] = truncated_mod(first[i * kMoveA], second[i * kMoveB]);
    }
    float* to = y + start;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const float r = rest[i], divisor = second[i * kMoveB];
      const bool other_sign = (r != 0.0f) & ((r < 0.0f) != (divisor < 0.0f)) & !kTruncated;
      to[i] = other_sign ? r + divisor : r;
    }
  }
}

template <bool kTruncated, class Slot>
constexpr void fill_remainder(Slot (&slots)[3]) {
  slots[static_cast<int>(Advance::Both)] = &remainder<kTruncated, Advance::Both>;
  slots[static_cast<int>(Advance::First)] = &remainder<kTruncated, Advance::First>;
  slots[static_cast<int>(Advance::Second)] = &remainder<kTruncated, Advance::Second>;
}

template <class Function, class Slot>
constexpr void fill(Slot (&slots)[3]) {
  slots[static_cast<int>(Advance::Both)] = &loop<Function, Advance::Both>;
  slots[static_cast<int>(Advance::First)] = &loop<Function, Advance::First>;
  slots[static_cast<int>(Advance::Second)] = &loop<Function, Advance::Second>;
}

constexpr BinaryLoops make_loops() {
  BinaryLoops table{};
#define RT_BINARY(Name)                         \
  if constexpr (in_build(BinaryFunction::Name)) \
  fill<Name>(table.binary[static_cast<int>(BinaryFunction::Name)])
  RT_BINARY(Add);
  RT_BINARY(Sub);
  RT_BINARY(Mul);
  RT_BINARY(Div);
  RT_BINARY(Minimum);
  RT_BINARY(Maximum);
  RT_BINARY(GeluGrad);
  RT_BINARY(GeluTanhGrad);
  RT_BINARY(SiluGrad);
  RT_BINARY(ReluGrad);
#undef RT_BINARY
  if constexpr (in_build(BinaryFunction::Mod)) {
    fill_remainder<false>(table.binary[static_cast<int>(BinaryFunction::Mod)]);
    fill_remainder<true>(table.binary[static_cast<int>(BinaryFunction::ModTruncated)]);
  }
  if constexpr (in_build(BinaryFunction::Pow)) {
    auto& power = table.binary[static_cast<int>(BinaryFunction::Pow)];
    power[static_cast<int>(Advance::Both)] = &power_loop<Advance::Both>;
    power[static_cast<int>(Advance::First)] = &power_of_one;
    power[static_cast<int>(Advance::Second)] = &power_loop<Advance::Second>;
  }
#define RT_COMPARE(Name)                         \
  if constexpr (in_build(CompareFunction::Name)) \
  fill<Name>(table.compare[static_cast<int>(CompareFunction::Name)])
  RT_COMPARE(Equal);
  RT_COMPARE(Less);
  RT_COMPARE(LessOrEqual);
  RT_COMPARE(Greater);
  RT_COMPARE(GreaterOrEqual);
#undef RT_COMPARE
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(BinaryLoops);
