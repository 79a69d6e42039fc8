#version 450
#extension GL_GOOGLE_include_directive : require
// y = f(a, b) in f32 with broadcasting; memory types as in elements.glsl. kWidth 4: groups of four along the last axis,
// where an operand of stride 0 is splat; strides and extents then count groups. kWidth 1: single elements.
// variants: binary
// variants: binary_halves HALVES
#include "common.glsl"
#include "functions.glsl"
#include "binary_functions.glsl"
#include "axes.glsl"
#define ELEMENT_ID 6
#include "elements.glsl"
layout(constant_id = 1) const uint kFunction = 0;
layout(constant_id = 2) const uint kRank = 1;
layout(constant_id = 3) const uint kWidth = 4;
layout(constant_id = 4) const bool kSplatA = false;
layout(constant_id = 5) const bool kSplatB = false;
RT_INPUT(0, a)
RT_INPUT(1, b)
RT_OUTPUT(2, y)
layout(push_constant) uniform P { uint count; uint extent[6]; uint stride_a[6]; uint stride_b[6]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint rest = i, at_a = 0, at_b = 0;
  RT_FOR_AXES_REVERSED(axis) {
    uint here = RT_INDEX_OF(axis, rest);
    rest /= extent[axis];
    at_a += here * stride_a[axis];
    at_b += here * stride_b[axis];
  }
  if (kWidth == 4) {
    vec4 u = kSplatA ? vec4(a_at(at_a)) : a_at4(at_a);
    vec4 v = kSplatB ? vec4(b_at(at_b)) : b_at4(at_b);
    vec4 r;
    [[unroll]] for (int c = 0; c < 4; ++c) r[c] = apply_binary(kFunction, u[c], v[c]);
    set_y4(i, r);
  } else {
    set_y(i, apply_binary(kFunction, a_at(at_a), b_at(at_b)));
  }
}
