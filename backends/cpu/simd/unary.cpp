// y = f(x) for every Function.
#include "backends/cpu/simd/unary.h"

#include "backends/cpu/simd/functions.h"
#include "backends/cpu/simd/loops.h"
#include "runtime/core/in_build.h"

extern "C" float sinf(float) noexcept;
extern "C" float cosf(float) noexcept;

namespace librt::cpu::RT_SIMD_ISA {
namespace {

/// The reduction by multiples of pi/2 holds up to kTrigLimit; a block with a larger argument falls back to
/// the C library.
template <Function kFunction>
void trigonometric(const float* in, float* out, int64_t n) {
  constexpr int64_t kBlockSize = 256;
  for (int64_t start = 0; start < n; start += kBlockSize) {
    const int64_t count = n - start < kBlockSize ? n - start : kBlockSize;
    const float* x = in + start;
    float* y = out + start;
    int large = 0;
#pragma omp simd reduction(+ : large)
    for (int64_t i = 0; i < count; ++i) large += absolute(x[i]) < kTrigLimit ? 0 : 1;
    if (large != 0) {
      for (int64_t i = 0; i < count; ++i) y[i] = kFunction == Function::Sin ? sinf(x[i]) : cosf(x[i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) y[i] = function_value<kFunction>(x[i], 0.0f, 0.0f);
    }
  }
}

template <Function kFunction>
void loop(const float* in, float* out, int64_t n, [[maybe_unused]] float alpha, [[maybe_unused]] float beta) {
  if constexpr (kFunction == Function::Sin || kFunction == Function::Cos) {
    trigonometric<kFunction>(in, out, n);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = function_value<kFunction>(in[i], alpha, beta);
  }
}

constexpr UnaryLoops make_loops() {
  UnaryLoops table{};
#define RT_FUNCTION(Name, operands)       \
  if constexpr (in_build(Function::Name)) \
    table.unary[static_cast<int>(Function::Name)] = &loop<Function::Name>;
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(UnaryLoops);
