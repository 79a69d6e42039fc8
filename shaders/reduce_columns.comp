#version 450
#extension GL_GOOGLE_include_directive : require
// x [batch,rows,columns] to y [batch,splits,columns], one invocation per result, rows in order: partial results in a
// fixed order. Before reducing, an element may be mapped (f32 only), and center[column] may be added to the result.
// variants: reduce_columns_f32 T=float FLOAT
// variants: reduce_columns_i32 T=int SIGNED LOWEST=int(0x80000000) HIGHEST=0x7fffffff
// variants: reduce_columns_i64 T=int64_t SIGNED LOWEST=(int64_t(1)<<63) HIGHEST=(~(int64_t(1)<<63))
#include "common.glsl"
#include "reduce.glsl"
layout(constant_id = 1) const uint kReduction = 0;
layout(constant_id = 2) const uint kMap = 0;
layout(constant_id = 3) const bool kAddsCenter = false;
// As ColumnMap in steps/reduce.h.
const uint kNone = 0, kSquaredDeviation = 1, kByColumn = 2, kByRow = 3, kDeviation = 4;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
#ifdef FLOAT
layout(set = 0, binding = 2, std430) readonly buffer Center { float center[]; };
layout(set = 0, binding = 3, std430) readonly buffer Z { float z[]; };
layout(set = 0, binding = 4, std430) readonly buffer Factor { float factor[]; };
#endif
layout(push_constant) uniform P { uint count; uint rows; uint columns; uint splits; float scale; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint column = i % columns;
  uint rest = i / columns;
  uint split = rest % splits;
  uint batch = rest / splits;
  uint per_split = (rows + splits - 1) / splits;
  uint first = min(split * per_split, rows);
  uint last = min(first + per_split, rows);
  T sum = reduce_start(kReduction);
  uint at = (batch * rows + first) * columns + column;
#ifdef FLOAT
  float middle = kAddsCenter || (kMap != kNone && kMap != kByRow) ? center[column] : 0.0;
  float slope = kMap == kByColumn ? factor[column] : 1.0;
#endif
  for (uint r = first; r < last; ++r) {
    T v = x[at];
#ifdef FLOAT
    if (kMap == kSquaredDeviation) v = (v - middle) * (v - middle);
    if (kMap == kByColumn) v = v * ((z[at] - middle) * slope);
    if (kMap == kByRow) v = v * ((z[at] - center[batch * rows + r]) * factor[batch * rows + r]);
    if (kMap == kDeviation) v -= middle;
#endif
    sum = reduce_step(kReduction, sum, v);
    at += columns;
  }
#ifdef FLOAT
  y[i] = kAddsCenter ? sum * scale + middle : sum * scale;
#else
  y[i] = sum;
#endif
}
