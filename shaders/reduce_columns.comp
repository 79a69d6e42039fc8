#version 450
#extension GL_GOOGLE_include_directive : require
// x [batch,rows,columns] to y [batch,splits,columns], one invocation per result, rows in order: partial results in a
// fixed order. Before reducing, an element may be mapped (f32 only): kMap 1: (x - center[column])^2,
// 2: x (z - center[column]) factor[column], 3: x (z - center[row]) factor[row], 4: x - center[column]. 5: center[column] is
// added to the result, 6: 4 and 5.
// variants: reduce_columns_f32 T=float FLOAT
// variants: reduce_columns_i32 T=int SIGNED LOWEST=int(0x80000000) HIGHEST=0x7fffffff
// variants: reduce_columns_i64 T=int64_t SIGNED LOWEST=(int64_t(1)<<63) HIGHEST=(~(int64_t(1)<<63))
#include "common.glsl"
#include "reduce.glsl"
layout(constant_id = 1) const uint kReduction = 0;
layout(constant_id = 2) const uint kMap = 0;
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
  float middle = kMap != 0 && kMap != 3 ? center[column] : 0.0;
  float slope = kMap == 2 ? factor[column] : 1.0;
#endif
  for (uint r = first; r < last; ++r) {
    T v = x[at];
#ifdef FLOAT
    if (kMap == 1) v = (v - middle) * (v - middle);
    if (kMap == 2) v = v * ((z[at] - middle) * slope);
    if (kMap == 3) v = v * ((z[at] - center[batch * rows + r]) * factor[batch * rows + r]);
    if (kMap == 4 || kMap == 6) v -= middle;
#endif
    sum = reduce_step(kReduction, sum, v);
    at += columns;
  }
#ifdef FLOAT
  y[i] = kMap == 5 || kMap == 6 ? sum * scale + middle : sum * scale;
#else
  y[i] = sum;
#endif
}
