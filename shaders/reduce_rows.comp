#version 450
#extension GL_GOOGLE_include_directive : require
// x [rows,columns] to y [rows], one workgroup per row: lanes stride over the row, then a tree in shared memory.
// variants: reduce_rows_f32 T=float FLOAT
// variants: reduce_rows_i32 T=int SIGNED LOWEST=int(0x80000000) HIGHEST=0x7fffffff
// variants: reduce_rows_i64 T=int64_t SIGNED LOWEST=(int64_t(1)<<63) HIGHEST=(~(int64_t(1)<<63))
#include "common.glsl"
#include "reduce.glsl"
layout(constant_id = 1) const uint kReduction = 0;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint rows; uint columns; float scale; };
shared T partial[gl_WorkGroupSize.x];

void main() {
  uint row = group_index();
  uint lane = gl_LocalInvocationID.x;
  T sum = reduce_start(kReduction);
  if (row < rows)
    for (uint c = lane; c < columns; c += gl_WorkGroupSize.x) sum = reduce_step(kReduction, sum, x[row * columns + c]);
  partial[lane] = sum;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width) partial[lane] = reduce_step(kReduction, partial[lane], partial[lane + width]);
  }
  barrier();
  if (lane == 0 && row < rows) {
#ifdef FLOAT
    y[row] = partial[0] * scale;
#else
    y[row] = partial[0];
#endif
  }
}
