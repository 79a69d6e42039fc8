#version 450
#extension GL_GOOGLE_include_directive : require
// y = x between f32, f16 and bf16 by 32-bit words, for devices without 16-bit storage; two elements per invocation.
// kFrom, kTo: 0: f32, 1: f16, 2: bf16.
#include "common.glsl"
#include "sixteen_bits.glsl"
layout(constant_id = 1) const uint kFrom = 0;
layout(constant_id = 2) const uint kTo = 1;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform P { uint count; };  // of elements

void main() {
  uint i = invocation_index();
  if (2 * i >= count) return;
  bool pair = 2 * i + 1 < count;
  vec2 v;
  if (kFrom == 0) v = vec2(uintBitsToFloat(x[2 * i]), pair ? uintBitsToFloat(x[2 * i + 1]) : 0.0);
  else v = widened(uvec2(x[i], 0), kFrom).xy;
  if (kTo == 0) {
    y[2 * i] = floatBitsToUint(v.x);
    if (pair) y[2 * i + 1] = floatBitsToUint(v.y);
  } else {
    y[i] = narrowed(vec4(v, 0.0, 0.0), kTo).x;
  }
}
