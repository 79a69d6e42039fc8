#version 450
#extension GL_GOOGLE_include_directive : require
// g = grad + decay p; v' = momentum v + g; p' = p - rate (nesterov ? g + momentum v' : v').
#include "common.glsl"
layout(constant_id = 1) const bool kVelocity = false;
layout(constant_id = 2) const bool kNesterov = false;
layout(set = 0, binding = 0, std430) readonly buffer P0 { vec4 p[]; };
layout(set = 0, binding = 1, std430) readonly buffer G { vec4 grad[]; };
layout(set = 0, binding = 2, std430) readonly buffer V { vec4 v[]; };
layout(set = 0, binding = 3, std430) readonly buffer L { float rate[]; };
layout(set = 0, binding = 4, std430) writeonly buffer P1 { vec4 new_p[]; };
layout(set = 0, binding = 5, std430) writeonly buffer V1 { vec4 new_v[]; };
layout(push_constant) uniform P { uint count; float momentum; float decay; };

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  vec4 parameter = p[i];
  vec4 g = grad[i] + decay * parameter;
  if (kVelocity) {
    vec4 velocity = momentum * v[i] + g;
    new_v[i] = velocity;
    g = kNesterov ? g + momentum * velocity : velocity;
  }
  new_p[i] = parameter - rate[0] * g;
}
