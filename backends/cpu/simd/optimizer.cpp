// Optimizer steps: every tensor is read and written once. The formulas stand in schema/ops.fbs.
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

void sgd(const float* p, const float* g, const float* v, float* new_p, float* new_v, int64_t n, float rate,
         float momentum, float weight_decay, bool nesterov) {
  if (v == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float gradient = g[i] + weight_decay * p[i];
      new_p[i] = p[i] - rate * gradient;
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] + weight_decay * p[i];
    const float velocity = momentum * v[i] + gradient;
    const float step = nesterov ? gradient + momentum * velocity : velocity;
    new_p[i] = p[i] - rate * step;
    new_v[i] = velocity;
  }
}

void adam(const float* p, const float* g, const float* m, const float* v, float* new_p, float* new_m,
          float* new_v, int64_t n, const AdamNumbers& numbers) {
  const float beta1 = numbers.beta1, beta2 = numbers.beta2, epsilon = numbers.epsilon;
  const float rate = numbers.learning_rate;
  const float coupled = numbers.decoupled ? 0.0f : numbers.weight_decay;
  const float decoupled = numbers.decoupled ? rate * numbers.weight_decay : 0.0f;
  const float correction1 = numbers.correction1, correction2 = numbers.correction2;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] + coupled * p[i];
    const float first = beta1 * m[i] + (1.0f - beta1) * gradient;
    const float second = beta2 * v[i] + (1.0f - beta2) * gradient * gradient;
    const float step = first * correction1 / (__builtin_sqrtf(second * correction2) + epsilon);
    new_p[i] = p[i] - decoupled * p[i] - rate * step;
    new_m[i] = first;
    new_v[i] = second;
  }
}

}  // namespace

void fill_optimizer(Simd& table) noexcept {
  table.sgd = &sgd;
  table.adam = &adam;
}

}  // namespace rt::cpu::RT_SIMD_ISA
