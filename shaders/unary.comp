#version 450
#extension GL_GOOGLE_include_directive : require
// y = f(x) over f32, one vec4 an invocation; tensors are padded to whole vec4s.
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const uint kFunction = 0;
layout(set = 0, binding = 0, std430) readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform P { uint count; float alpha; float beta; };

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  vec4 v = x[i];
  vec4 r;
  [[unroll]] for (int c = 0; c < 4; ++c) r[c] = apply_function(kFunction, v[c], alpha, beta);
  y[i] = r;
}
