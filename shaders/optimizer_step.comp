#version 450
#extension GL_GOOGLE_include_directive : require
// One pass over a parameter, its gradient and up to three states; the formulas stand in schema/ops.fbs, the numbers that are
// the same for all elements come from optimizer_numbers.comp.
#include "common.glsl"
layout(constant_id = 1) const uint kStep = 0;
layout(constant_id = 2) const uint kStates = 0;       // bit i: state i is there
layout(constant_id = 3) const bool kVariant = false;  // Sgd: Nesterov; Adam: decoupled weight decay
const uint kSgd = 0, kAdam = 1, kRmsProp = 2, kAdagrad = 3, kAdadelta = 4, kLion = 6;
layout(set = 0, binding = 0, std430) readonly buffer P0 { vec4 p[]; };
layout(set = 0, binding = 1, std430) readonly buffer G { vec4 grad[]; };
layout(set = 0, binding = 2, std430) readonly buffer A0 { vec4 a[]; };
layout(set = 0, binding = 3, std430) readonly buffer B0 { vec4 b[]; };
layout(set = 0, binding = 4, std430) readonly buffer C0 { vec4 c[]; };
layout(set = 0, binding = 5, std430) readonly buffer N { float numbers[]; };
layout(set = 0, binding = 6, std430) writeonly buffer P1 { vec4 new_p[]; };
layout(set = 0, binding = 7, std430) writeonly buffer A1 { vec4 new_a[]; };
layout(set = 0, binding = 8, std430) writeonly buffer B1 { vec4 new_b[]; };
layout(set = 0, binding = 9, std430) writeonly buffer C1 { vec4 new_c[]; };
layout(push_constant) uniform P {
  uint count;
  float keep1, keep2, rest1, rest2;  // rest = 1 - keep
  float epsilon, decay, momentum;
};

bool has(uint state) { return (kStates >> state & 1u) != 0; }

// The direction of the step; states become their next values.
vec4 direction(vec4 parameter, vec4 g, inout vec4 s0, inout vec4 s1, inout vec4 s2) {
  if (kStep == kSgd) {
    if (!has(0)) return g;
    s0 = keep1 * s0 + numbers[4] * g;
    return kVariant ? g + keep1 * s0 : s0;
  }
  if (kStep == kAdam) {
    s0 = keep1 * s0 + rest1 * g;
    s1 = keep2 * s1 + rest2 * g * g;
    if (has(2)) s2 = max(s2, s1);
    return s0 * numbers[2] / (sqrt((has(2) ? s2 : s1) * numbers[3]) + epsilon);
  }
  if (kStep == kRmsProp) {
    s0 = keep1 * s0 + rest1 * g * g;
    vec4 variance = s0;
    if (has(1)) {
      s1 = keep1 * s1 + rest1 * g;
      variance = max(s0 - s1 * s1, vec4(0.0));  // rounding may take it below 0
    }
    vec4 step = g / (sqrt(variance) + epsilon);
    if (!has(2)) return step;
    s2 = momentum * s2 + step;
    return s2;
  }
  if (kStep == kAdagrad) {
    s0 += g * g;
    return g / (sqrt(s0) + epsilon);
  }
  if (kStep == kAdadelta) {
    s0 = keep1 * s0 + rest1 * g * g;
    vec4 delta = sqrt(s1 + epsilon) / sqrt(s0 + epsilon) * g;
    s1 = keep1 * s1 + rest1 * delta * delta;
    return delta;
  }
  vec4 mixed = keep1 * s0 + rest1 * g;
  s0 = keep2 * s0 + rest2 * g;
  return sign(mixed) + decay * parameter;
}

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  vec4 parameter = p[i];
  vec4 s0 = has(0) ? a[i] : vec4(0.0);
  vec4 s1 = has(1) ? b[i] : vec4(0.0);
  vec4 s2 = has(2) ? c[i] : vec4(0.0);
  if (numbers[5] == 0.0) {
    float rate = numbers[0];
    vec4 g = numbers[1] * grad[i];
    if (kStep == kAdam && kVariant) parameter -= rate * decay * parameter;
    else if (kStep != kLion) g += decay * parameter;
    vec4 step = direction(parameter, g, s0, s1, s2);
    parameter -= rate * step;
  }
  new_p[i] = parameter;
  if (has(0)) new_a[i] = s0;
  if (has(1)) new_b[i] = s1;
  if (has(2)) new_c[i] = s2;
}
