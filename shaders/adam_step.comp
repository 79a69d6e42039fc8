#version 450
#extension GL_GOOGLE_include_directive : require
// m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2,
// p' = p - rate (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + epsilon); decay goes into g, or with kDecoupled
// into p first. 1 - beta^t is taken as -expm1(t log beta): beta2 is close to 1.
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const bool kDecoupled = false;
layout(set = 0, binding = 0, std430) readonly buffer P0 { vec4 p[]; };
layout(set = 0, binding = 1, std430) readonly buffer G { vec4 grad[]; };
layout(set = 0, binding = 2, std430) readonly buffer M { vec4 m[]; };
layout(set = 0, binding = 3, std430) readonly buffer V { vec4 v[]; };
layout(set = 0, binding = 4, std430) readonly buffer S { int step[]; };
layout(set = 0, binding = 5, std430) readonly buffer L { float rate[]; };
layout(set = 0, binding = 6, std430) writeonly buffer P1 { vec4 new_p[]; };
layout(set = 0, binding = 7, std430) writeonly buffer M1 { vec4 new_m[]; };
layout(set = 0, binding = 8, std430) writeonly buffer V1 { vec4 new_v[]; };
layout(push_constant) uniform P {
  uint count;
  float beta1, beta2, rest1, rest2;  // rest = 1 - beta
  float log_beta1, log_beta2;
  float epsilon, decay;
};

float one_minus_exp(float y) {
  if (y > -0.3) return -y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y / 720.0)))));
  return 1.0 - exact_exp(y);
}

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  float t = float(step[0]);
  float correction1 = one_minus_exp(t * log_beta1);
  float correction2 = one_minus_exp(t * log_beta2);
  vec4 parameter = p[i];
  vec4 g = grad[i];
  if (kDecoupled) parameter -= rate[0] * decay * parameter;
  else g += decay * parameter;
  vec4 first = beta1 * m[i] + rest1 * g;
  vec4 second = beta2 * v[i] + rest2 * g * g;
  new_p[i] = parameter - rate[0] * (first / correction1) / (sqrt(second / correction2) + epsilon);
  new_m[i] = first;
  new_v[i] = second;
}
