#version 450
#extension GL_GOOGLE_include_directive : require
// Sums the chains of scatter_links.comp: y [batch,extent,inner] at the rows that occur, from updates
// [batch,indices,inner]. The other rows are initialized before.
// variants: scatter_sum_{f32 T=float FLOAT|i32 T=int SIGNED}
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer U { T updates[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer N { uint next[]; };
layout(set = 0, binding = 3, std430) readonly buffer R { uint row[]; };
layout(push_constant) uniform P { uint count; uint index_count; uint inner; uint extent; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint b = i % inner;
  uint rest = i / inner;
  uint at = rest % index_count;
  uint batch = rest / index_count;
  uint target = row[at];
  if (target == 0xffffffffu) return;
  T sum = T(0);
  for (uint j = at; j != 0xffffffffu; j = next[j]) sum += updates[(batch * index_count + j) * inner + b];
  y[(batch * extent + target) * inner + b] = sum;
}
