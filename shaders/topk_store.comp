#version 450
#extension GL_GOOGLE_include_directive : require
// The first k entries of each row: their elements of x [outer,length,inner] along the middle axis, and their positions.
// variants: topk_store_{1 T=uint8_t|2 T=uint16_t|4 T=uint|8 T=uvec2}
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Z { uvec2 indices[]; };
layout(set = 0, binding = 3, std430) readonly buffer R { uint positions[]; };
layout(push_constant) uniform P { uint count; uint length; uint inner; uint k; uint row_stride; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint column = i % inner;
  uint outer = i / inner / k;
  uint position = positions[(outer * inner + column) * row_stride + i / inner % k];
  y[i] = x[(outer * length + position) * inner + column];
  indices[i] = uvec2(position, 0);
}
