#version 450
#extension GL_GOOGLE_include_directive : require
// Running sums or products of x [batch,rows,columns] along the middle axis, one invocation per line. y may be x.
// variants: scan_columns_{f32 T=float FLOAT|i32 T=int SIGNED|i64 T=int64_t SIGNED}
#include "common.glsl"
layout(constant_id = 1) const bool kProduct = false;
layout(constant_id = 2) const bool kExclusive = false;
layout(constant_id = 3) const bool kReverse = false;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint count; uint rows; uint columns; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint base = i / columns * rows * columns + i % columns;
  T total = kProduct ? T(1) : T(0);
  for (uint step = 0; step < rows; ++step) {
    uint at = base + (kReverse ? rows - 1 - step : step) * columns;
    T v = x[at];
    T combined = kProduct ? total * v : total + v;
    y[at] = kExclusive ? total : combined;
    total = combined;
  }
}
