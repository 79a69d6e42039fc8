#version 450
#extension GL_GOOGLE_include_directive : require
// Copies one index space to another: transposes, slices, concatenations, expansions. T is an unsigned type of the
// element's size; strides may be negative (as two's complement) or zero.
// variants: copy_{1 T=uint8_t|2 T=uint16_t|4 T=uint|8 T=uvec2|16 T=uvec4}
#include "common.glsl"
#include "axes.glsl"
layout(constant_id = 1) const uint kRank = 1;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint count; uint from; uint to; uint extent[6]; uint stride_x[6]; uint stride_y[6]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint rest = i, at_x = from, at_y = to;
  RT_FOR_AXES_REVERSED(axis) {
    uint here = RT_INDEX_OF(axis, rest);
    rest /= extent[axis];
    at_x += here * stride_x[axis];
    at_y += here * stride_y[axis];
  }
  y[at_y] = x[at_x];
}
