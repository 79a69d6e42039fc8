#version 450
#extension GL_GOOGLE_include_directive : require
// y [batch,indices,inner] from x [batch,extent,inner]. T has the element's size.
// variants: gather_{1 T=uint8_t|2 T=uint16_t|4 T=uint|8 T=uvec2|16 T=uvec4}
#include "common.glsl"
#include "indices.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer I { int indices[]; };
layout(push_constant) uniform P { uint count; uint index_count; uint inner; int extent; uint index_words; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint b = i % inner;
  uint rest = i / inner;
  uint at = rest % index_count;
  uint batch = rest / index_count;
  uint position = selected_position(RT_INTEGER(indices, index_words, at), extent);
  y[i] = x[(batch * uint(extent) + position) * inner + b];
}
