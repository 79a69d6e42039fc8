// y = f(x) for every unary function.
#include "backends/cpu/simd/unary.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

extern "C" float sinf(float) noexcept;
extern "C" float cosf(float) noexcept;

namespace librt::cpu::RT_SIMD_ISA {
namespace {

#define RT_UNARY(Name, expression)                                                        \
  void unary_##Name(const float* in, float* out, int64_t n, [[maybe_unused]] float alpha, \
                    [[maybe_unused]] float beta) {                                        \
    _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {                                 \
      const float x = in[i];                                                              \
      out[i] = (expression);                                                              \
    }                                                                                     \
  }

RT_UNARY(Abs, absolute(x))
RT_UNARY(Neg, -x)
RT_UNARY(Exp, exp(x))
RT_UNARY(Log, log(x))
RT_UNARY(Sqrt, __builtin_sqrtf(x))
RT_UNARY(Reciprocal, 1.0f / x)
RT_UNARY(Tanh, tanh(x))
RT_UNARY(Sigmoid, sigmoid(x))
RT_UNARY(Relu, pick(x < 0.0f, 0.0f, x))
RT_UNARY(Erf, erf(x))
RT_UNARY(Floor, __builtin_floorf(x))
RT_UNARY(Ceil, __builtin_ceilf(x))
RT_UNARY(Round, __builtin_rintf(x))
RT_UNARY(Sign, pick(x > 0.0f, 1.0f, pick(x < 0.0f, -1.0f, x)))
RT_UNARY(Softplus, softplus(x))
RT_UNARY(LeakyRelu, pick(x < 0.0f, alpha* x, x))
RT_UNARY(Elu, pick(x < 0.0f, alpha* expm1(x), x))
RT_UNARY(HardSigmoid, clamp_unit(alpha* x + beta))
RT_UNARY(HardSwish, x* clamp_unit(x * 0.16666667f + 0.5f))
RT_UNARY(Clip, pick(pick(x < alpha, alpha, x) > beta, beta, pick(x < alpha, alpha, x)))
RT_UNARY(Gelu, gelu(x))
RT_UNARY(GeluTanh, gelu_tanh(x))
RT_UNARY(Silu, silu(x))
RT_UNARY(Atan, atan(x))

/// The reduction by multiples of pi/2 holds up to kTrigLimit; a block with a larger argument falls back to
/// the C library.
template <int kQuarter>
void trigonometric(const float* in, float* out, int64_t n, float, float) {
  constexpr int64_t kBlockSize = 256;
  for (int64_t start = 0; start < n; start += kBlockSize) {
    const int64_t count = n - start < kBlockSize ? n - start : kBlockSize;
    const float* x = in + start;
    float* y = out + start;
    int large = 0;
#pragma omp simd reduction(+ : large)
    for (int64_t i = 0; i < count; ++i) large += absolute(x[i]) < kTrigLimit ? 0 : 1;
    if (large != 0) {
      for (int64_t i = 0; i < count; ++i) y[i] = kQuarter == 0 ? sinf(x[i]) : cosf(x[i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) y[i] = sine(x[i], kQuarter);
    }
  }
}

constexpr UnaryLoops make_loops() {
  UnaryLoops table{};
#define RT_SET(Name) table.unary[static_cast<int>(UnaryFunction::Name)] = &unary_##Name
  RT_SET(Abs);
  RT_SET(Neg);
  RT_SET(Exp);
  RT_SET(Log);
  RT_SET(Sqrt);
  RT_SET(Reciprocal);
  RT_SET(Tanh);
  RT_SET(Sigmoid);
  RT_SET(Relu);
  RT_SET(Erf);
  RT_SET(Floor);
  RT_SET(Ceil);
  RT_SET(Round);
  RT_SET(Sign);
  RT_SET(Softplus);
  RT_SET(LeakyRelu);
  RT_SET(Elu);
  RT_SET(HardSigmoid);
  RT_SET(HardSwish);
  RT_SET(Clip);
  RT_SET(Gelu);
  RT_SET(GeluTanh);
  RT_SET(Silu);
  RT_SET(Atan);
#undef RT_SET
  table.unary[static_cast<int>(UnaryFunction::Sin)] = &trigonometric<0>;
  table.unary[static_cast<int>(UnaryFunction::Cos)] = &trigonometric<1>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(UnaryLoops);
