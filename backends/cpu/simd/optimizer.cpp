// Optimizer steps: every tensor is read and written once. The formulas are in schema/ops.fbs.
#include "backends/cpu/simd/optimizer.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

template <bool kVelocity>
void sgd_loop(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  const float *p = o.p, *g = o.g, *v = o.states[0];
  float *new_p = o.new_p, *new_v = o.new_states[0];
  const StepParameters n = values;
  const float ahead = n.variant ? n.beta1 : 1.0f, now = n.variant ? 1.0f : 0.0f;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    float step = n.gradient_scale * g[i] + n.weight_decay * p[i];
    if constexpr (kVelocity) {
      const float velocity = n.beta1 * v[i] + n.share * step;
      step = now * step + ahead * velocity;
      new_v[i] = velocity;
    }
    new_p[i] = p[i] - n.learning_rate * step;
  }
}

void sgd(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  (o.states[0] != nullptr ? sgd_loop<true> : sgd_loop<false>)(o, begin, end, values);
}

template <bool kLargest>
void adam_loop(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  const float *p = o.p, *g = o.g, *m = o.states[0], *v = o.states[1], *largest = o.states[2];
  float *new_p = o.new_p, *new_m = o.new_states[0], *new_v = o.new_states[1], *new_largest = o.new_states[2];
  const StepParameters n = values;
  const float coupled = n.variant ? 0.0f : n.weight_decay;
  const float decoupled = n.variant ? n.learning_rate * n.weight_decay : 0.0f;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = n.gradient_scale * g[i] + coupled * p[i];
    const float first = n.beta1 * m[i] + (1.0f - n.beta1) * gradient;
    const float second = n.beta2 * v[i] + (1.0f - n.beta2) * gradient * gradient;
    float below = second;
    if constexpr (kLargest) {
      below = maximum(largest[i], second);
      new_largest[i] = below;
    }
    const float step = first * n.correction1 / (__builtin_sqrtf(below * n.correction2) + n.epsilon);
    new_p[i] = p[i] - decoupled * p[i] - n.learning_rate * step;
    new_m[i] = first;
    new_v[i] = second;
  }
}

void adam(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  (o.states[2] != nullptr ? adam_loop<true> : adam_loop<false>)(o, begin, end, values);
}

template <bool kCentered, bool kMomentum>
void rms_prop_loop(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  const float *p = o.p, *g = o.g, *v = o.states[0], *a = o.states[1], *b = o.states[2];
  float *new_p = o.new_p, *new_v = o.new_states[0], *new_a = o.new_states[1], *new_b = o.new_states[2];
  const StepParameters n = values;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = n.gradient_scale * g[i] + n.weight_decay * p[i];
    const float squares = n.beta1 * v[i] + (1.0f - n.beta1) * gradient * gradient;
    float variance = squares;
    if constexpr (kCentered) {
      const float mean = n.beta1 * a[i] + (1.0f - n.beta1) * gradient;
      variance = squares - mean * mean;
      variance = variance < 0.0f ? 0.0f : variance;  // rounding
      new_a[i] = mean;
    }
    float step = gradient / (__builtin_sqrtf(variance) + n.epsilon);
    if constexpr (kMomentum) {
      step = n.momentum * b[i] + step;
      new_b[i] = step;
    }
    new_p[i] = p[i] - n.learning_rate * step;
    new_v[i] = squares;
  }
}

void rms_prop(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  if (o.states[1] != nullptr)
    (o.states[2] != nullptr ? rms_prop_loop<true, true> : rms_prop_loop<true, false>)(o, begin, end, values);
  else
    (o.states[2] != nullptr ? rms_prop_loop<false, true> : rms_prop_loop<false, false>)(o, begin, end,
                                                                                        values);
}

void adagrad(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  const float *p = o.p, *g = o.g, *s = o.states[0];
  float *new_p = o.new_p, *new_s = o.new_states[0];
  const StepParameters n = values;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = n.gradient_scale * g[i] + n.weight_decay * p[i];
    const float sum = s[i] + gradient * gradient;
    new_p[i] = p[i] - n.learning_rate * gradient / (__builtin_sqrtf(sum) + n.epsilon);
    new_s[i] = sum;
  }
}

void adadelta(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  const float *p = o.p, *g = o.g, *v = o.states[0], *u = o.states[1];
  float *new_p = o.new_p, *new_v = o.new_states[0], *new_u = o.new_states[1];
  const StepParameters n = values;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = n.gradient_scale * g[i] + n.weight_decay * p[i];
    const float squares = n.beta1 * v[i] + (1.0f - n.beta1) * gradient * gradient;
    const float delta = __builtin_sqrtf(u[i] + n.epsilon) / __builtin_sqrtf(squares + n.epsilon) * gradient;
    new_p[i] = p[i] - n.learning_rate * delta;
    new_v[i] = squares;
    new_u[i] = n.beta1 * u[i] + (1.0f - n.beta1) * delta * delta;
  }
}

void lamb_direction(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  const float *p = o.p, *g = o.g, *m = o.states[0], *v = o.states[1];
  float *direction = o.new_p, *new_m = o.new_states[0], *new_v = o.new_states[1];
  const StepParameters n = values;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = n.gradient_scale * g[i];
    const float first = n.beta1 * m[i] + (1.0f - n.beta1) * gradient;
    const float second = n.beta2 * v[i] + (1.0f - n.beta2) * gradient * gradient;
    direction[i] =
        first * n.correction1 / (__builtin_sqrtf(second * n.correction2) + n.epsilon) + n.weight_decay * p[i];
    new_m[i] = first;
    new_v[i] = second;
  }
}

void lion(const StepOperands& o, int64_t begin, int64_t end, const StepParameters& values) {
  const float *p = o.p, *g = o.g, *m = o.states[0];
  float *new_p = o.new_p, *new_m = o.new_states[0];
  const StepParameters n = values;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = n.gradient_scale * g[i];
    const float mixed = n.beta1 * m[i] + (1.0f - n.beta1) * gradient;
    const float sign = mixed > 0.0f ? 1.0f : mixed < 0.0f ? -1.0f : mixed;  // 0 and NaN stay
    new_p[i] = p[i] - n.learning_rate * (sign + n.weight_decay * p[i]);
    new_m[i] = n.beta2 * m[i] + (1.0f - n.beta2) * gradient;
  }
}

constexpr OptimizerLoops make_loops() {
  OptimizerLoops table{};
  const auto set = [&](StepFunction function, auto loop) {
    table.optimizer_step[static_cast<int>(function)] = loop;
  };
  set(StepFunction::Sgd, &sgd);
  set(StepFunction::Adam, &adam);
  set(StepFunction::RmsProp, &rms_prop);
  set(StepFunction::Adagrad, &adagrad);
  set(StepFunction::Adadelta, &adadelta);
  set(StepFunction::LambDirection, &lamb_direction);
  set(StepFunction::Lion, &lion);
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(OptimizerLoops);
