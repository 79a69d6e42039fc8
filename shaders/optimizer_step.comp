#version 450
#extension GL_GOOGLE_include_directive : require
// One pass over a parameter, its gradient and up to two states, or three; the scalars shared by all elements come from
// optimizer_scalars.comp. Two are what eight storage buffers allow.
// variants: optimizer_step_{2|3 THIRD}
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer P0 { vec4 p[]; };
layout(set = 0, binding = 1, std430) readonly buffer G { vec4 grad[]; };
layout(set = 0, binding = 2, std430) readonly buffer A0 { vec4 a[]; };
layout(set = 0, binding = 3, std430) readonly buffer B0 { vec4 b[]; };
layout(set = 0, binding = 5, std430) readonly buffer N { float scalars[]; };
layout(set = 0, binding = 6, std430) writeonly buffer P1 { vec4 new_p[]; };
layout(set = 0, binding = 7, std430) writeonly buffer A1 { vec4 new_a[]; };
layout(set = 0, binding = 8, std430) writeonly buffer B1 { vec4 new_b[]; };
#ifdef THIRD
layout(set = 0, binding = 4, std430) readonly buffer C0 { vec4 c[]; };
layout(set = 0, binding = 9, std430) writeonly buffer C1 { vec4 new_c[]; };
#endif
layout(push_constant) uniform P {
  uint count;
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float epsilon, decay, momentum;
};

#define REAL vec4
#include "optimizer.glsl"

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  load_scalars();
  vec4 parameter = p[i];
  vec4 s0 = has(0) ? a[i] : vec4(0.0);
  vec4 s1 = has(1) ? b[i] : vec4(0.0);
  vec4 s2 = vec4(0.0);
#ifdef THIRD
  s2 = c[i];
#endif
  step_elements(parameter, grad[i], s0, s1, s2);
  new_p[i] = parameter;
  if (has(0)) new_a[i] = s0;
  if (has(1)) new_b[i] = s1;
#ifdef THIRD
  new_c[i] = s2;
#endif
}
