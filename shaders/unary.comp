#version 450
#extension GL_GOOGLE_include_directive : require
// y = f(x) in f32, memory types as in elements.glsl, four per invocation; tensors are padded to whole fours.
// variants: unary
// variants: unary_halves HALVES
#include "common.glsl"
#include "functions.glsl"
#define ELEMENT_ID 2
#include "elements.glsl"
layout(constant_id = 1) const uint kFunction = 0;
RT_INPUT(0, x)
RT_OUTPUT(1, y)
layout(push_constant) uniform P { uint count; float alpha; float beta; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  vec4 v = x_at4(i);
  vec4 r;
  [[unroll]] for (int c = 0; c < 4; ++c) r[c] = apply_function(kFunction, v[c], alpha, beta);
  set_y4(i, r);
}
