#version 450
#extension GL_GOOGLE_include_directive : require
// The steps of several weights of one form, in place, by one dispatch: an entry of the table says where in the bound
// ranges a weight, its gradient and its states begin. Scalars: optimizer_scalars.comp.
#include "common.glsl"
layout(set = 0, binding = 0, std430) buffer P0 { vec4 p[]; };
layout(set = 0, binding = 1, std430) readonly buffer G { vec4 grad[]; };
layout(set = 0, binding = 2, std430) buffer A0 { vec4 a[]; };
layout(set = 0, binding = 3, std430) buffer B0 { vec4 b[]; };
layout(set = 0, binding = 4, std430) buffer C0 { vec4 c[]; };
layout(set = 0, binding = 5, std430) readonly buffer N { float scalars[]; };
struct Weight {
  uint first_group, count;  // count and offsets in vec4
  uint parameter, grad, a, b, c, unused;
};
layout(set = 0, binding = 6, std430) readonly buffer T { Weight table[]; };
layout(constant_id = 4) const uint kEach = 1;  // vec4 of an invocation
layout(push_constant) uniform P {
  uint weights;
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float epsilon, decay, momentum;
};

#define REAL vec4
#include "optimizer.glsl"

void main() {
  uint group = group_index();
  uint low = 0, high = weights;  // table[low].first_group <= group < table[high].first_group
  while (high - low > 1) {
    uint middle = (low + high) / 2;
    if (table[middle].first_group <= group) low = middle;
    else high = middle;
  }
  Weight weight = table[low];
  load_scalars();
  uint i = (group - weight.first_group) * gl_WorkGroupSize.x * kEach + gl_LocalInvocationID.x;
  for (uint k = 0; k < kEach && i < weight.count; ++k, i += gl_WorkGroupSize.x) {
    vec4 parameter = p[weight.parameter + i];
    vec4 s0 = has(0) ? a[weight.a + i] : vec4(0.0);
    vec4 s1 = has(1) ? b[weight.b + i] : vec4(0.0);
    vec4 s2 = has(2) ? c[weight.c + i] : vec4(0.0);
    step_elements(parameter, grad[weight.grad + i], s0, s1, s2);
    p[weight.parameter + i] = parameter;
    if (has(0)) a[weight.a + i] = s0;
    if (has(1)) b[weight.b + i] = s1;
    if (has(2)) c[weight.c + i] = s2;
  }
}
