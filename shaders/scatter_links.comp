#version 450
#extension GL_GOOGLE_include_directive : require
// Chains equal indices: next[i] is the next position with the same row, or 0xffffffff; row[i] is the row if i is the
// first of its chain, else 0xffffffff. A sum per row then needs no atomics and has a fixed order.
#include "common.glsl"
#include "indices.glsl"
layout(set = 0, binding = 0, std430) readonly buffer I { int indices[]; };
layout(set = 0, binding = 1, std430) writeonly buffer N { uint next[]; };
layout(set = 0, binding = 2, std430) writeonly buffer R { uint row[]; };
layout(push_constant) uniform P { uint count; int extent; uint index_words; };

uint row_at(uint i) { return selected_position(RT_INTEGER(indices, index_words, i), extent); }

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint target = row_at(i);
  bool first = true;
  for (uint j = 0; j < i && first; ++j) first = row_at(j) != target;
  uint following = 0xffffffffu;
  for (uint j = i + 1; j < count && following == 0xffffffffu; ++j)
    if (row_at(j) == target) following = j;
  next[i] = following;
  row[i] = first ? target : 0xffffffffu;
}
