#version 450
#extension GL_GOOGLE_include_directive : require
// The scalars shared by all elements of an optimizer step: learning rate, gradient scale, the bias corrections
// 1 / (1 - beta^step), the gradient's coefficient in Sgd's new velocity, and whether the step is skipped.
// 1 - beta^t is computed as -expm1(t log beta): beta may be close to 1.
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const bool kStep = false;
layout(constant_id = 2) const bool kScale = false;
layout(constant_id = 3) const bool kSkip = false;
layout(set = 0, binding = 0, std430) readonly buffer L { float rate[]; };
layout(set = 0, binding = 1, std430) readonly buffer S { int step[]; };
layout(set = 0, binding = 2, std430) readonly buffer G { float scale[]; };
layout(set = 0, binding = 3, std430) readonly buffer K { uint skip[]; };  // the first byte
layout(set = 0, binding = 4, std430) writeonly buffer N { float scalars[]; };
layout(push_constant) uniform P { float log_beta1, log_beta2, share; };

float one_minus_exp(float y) {
  if (y > -0.3) return -y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y / 720.0)))));
  return 1.0 - exact_exp(y);
}

void main() {
  if (invocation_index() != 0) return;
  float t = kStep ? float(step[0]) : 1.0;
  scalars[0] = rate[0];
  scalars[1] = kScale ? scale[0] : 1.0;
  scalars[2] = 1.0 / one_minus_exp(t * log_beta1);
  scalars[3] = 1.0 / one_minus_exp(t * log_beta2);
  scalars[4] = kStep && step[0] == 1 ? 1.0 : share;
  scalars[5] = kSkip && (skip[0] & 0xffu) != 0 ? 1.0 : 0.0;
}
