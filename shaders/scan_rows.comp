#version 450
#extension GL_GOOGLE_include_directive : require
// Running sums or products along rows of x [rows,columns], one workgroup per row: each lane reduces a segment, the lanes
// scan their totals, then each scans its segment. y may be x.
// variants: scan_rows_{f32 T=float FLOAT|i32 T=int SIGNED|i64 T=int64_t SIGNED}
#include "common.glsl"
layout(constant_id = 1) const bool kProduct = false;
layout(constant_id = 2) const bool kExclusive = false;
layout(constant_id = 3) const bool kReverse = false;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint rows; uint columns; };
shared T totals[gl_WorkGroupSize.x];

T combine(T a, T b) { return kProduct ? a * b : a + b; }
uint column_of(uint step) { return kReverse ? columns - 1 - step : step; }

void main() {
  uint row = group_index();
  uint lane = gl_LocalInvocationID.x;
  uint base = row * columns;
  uint each = (columns + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
  uint begin = min(lane * each, columns);
  uint end = row < rows ? min(begin + each, columns) : begin;
  T total = kProduct ? T(1) : T(0);
  for (uint step = begin; step < end; ++step) total = combine(total, x[base + column_of(step)]);
  totals[lane] = total;
  for (uint width = 1; width < gl_WorkGroupSize.x; width *= 2) {
    barrier();
    T before = lane >= width ? totals[lane - width] : (kProduct ? T(1) : T(0));
    barrier();
    totals[lane] = combine(before, totals[lane]);
  }
  barrier();
  total = lane > 0 ? totals[lane - 1] : (kProduct ? T(1) : T(0));
  for (uint step = begin; step < end; ++step) {
    uint at = base + column_of(step);
    T next = combine(total, x[at]);
    y[at] = kExclusive ? total : next;
    total = next;
  }
}
