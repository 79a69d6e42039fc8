#version 450
#extension GL_GOOGLE_include_directive : require
// Writes updates [positions,inner] to y [rows,inner], each row from its winner in scatter_winner.comp.
// variants: scatter_last_{1 T=uint8_t|2 T=uint16_t|4 T=uint|8 T=uvec2|16 T=uvec4}
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer U { T updates[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer T0 { uint target[]; };
layout(set = 0, binding = 3, std430) readonly buffer W { uint winner[]; };
layout(push_constant) uniform P { uint count; uint inner; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint position = i / inner;
  uint row = target[position];
  if (winner[row] == position + 1) y[row * inner + i % inner] = updates[i];
}
