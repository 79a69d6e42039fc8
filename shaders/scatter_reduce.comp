#version 450
#extension GL_GOOGLE_include_directive : require
// Combines updates [positions,inner] into y [rows,inner], which holds the data: y + update (0), y * update (3), the
// larger (1) or the smaller (2). The positions are sorted by row, so that those of one row are consecutive and in order;
// the first of them combines them all.
// variants: scatter_reduce_f32 T=float FLOAT
// variants: scatter_reduce_i32 T=int SIGNED LOWEST=int(0x80000000) HIGHEST=0x7fffffff
// variants: scatter_reduce_i64 T=int64_t SIGNED LOWEST=(int64_t(1)<<63) HIGHEST=(~(int64_t(1)<<63))
#include "common.glsl"
#include "reduce.glsl"
layout(constant_id = 1) const uint kFunction = 0;
layout(set = 0, binding = 0, std430) readonly buffer U { T updates[]; };
layout(set = 0, binding = 1, std430) buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer R { uint row[]; };
layout(set = 0, binding = 3, std430) readonly buffer Q { uint position[]; };
layout(push_constant) uniform P { uint count; uint inner; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint column = i % inner;
  uint first = i / inner;
  uint target = row[first];
  if (first > 0 && row[first - 1] == target) return;
  uint at = target * inner + column;
  uint positions = count / inner;
  T total = y[at];
  for (uint j = first; j < positions && row[j] == target; ++j)
    total = reduce_step(kFunction, total, updates[position[j] * inner + column]);
  y[at] = total;
}
