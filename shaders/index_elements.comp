#version 450
#extension GL_GOOGLE_include_directive : require
// The flat data position of each index: the index's own coordinates with that of `axis` replaced.
#include "common.glsl"
#include "indices.glsl"
layout(set = 0, binding = 0, std430) readonly buffer I { int indices[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uint target[]; };
layout(push_constant) uniform P { uint count; uint index_words; uint rank; uint axis; uint index_extent[6]; uint extent[6]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint position = selected_position(RT_INTEGER(indices, index_words, i), int(extent[axis]));
  uint rest = i;
  uint stride = 1;
  uint at = 0;
  for (int d = int(rank) - 1; d >= 0; --d) {
    at += (d == int(axis) ? position : rest % index_extent[d]) * stride;
    rest /= index_extent[d];
    stride *= extent[d];
  }
  target[i] = at;
}
