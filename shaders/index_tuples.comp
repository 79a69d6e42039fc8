#version 450
#extension GL_GOOGLE_include_directive : require
// The data row of each tuple of `length` indices; the tuples of one batch, `in_batch` of them, begin at its rows.
#include "common.glsl"
#include "indices.glsl"
layout(set = 0, binding = 0, std430) readonly buffer I { int indices[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uint target[]; };
layout(push_constant) uniform P { uint count; uint index_words; uint in_batch; uint length; uint extent[6]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint row = i / in_batch;
  for (uint k = 0; k < length; ++k) {
    row = row * extent[k] + selected_position(RT_INTEGER(indices, index_words, i * length + k), int(extent[k]));
  }
  target[i] = row;
}
