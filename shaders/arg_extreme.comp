#version 450
#extension GL_GOOGLE_include_directive : require
// ArgMax (or ArgMin) along the middle axis of x [batch,rows,columns], as i64; NaN beats every number, ties go to the
// first position, or to the last with kLast. Positions fit in the low word.
// variants: arg_extreme_{f32 T=float FLOAT|i32 T=int SIGNED}
#include "common.glsl"
layout(constant_id = 1) const bool kSmallest = false;
layout(constant_id = 2) const bool kLast = false;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uvec2 y[]; };
layout(push_constant) uniform P { uint count; uint rows; uint columns; };

bool is_better(T a, T b) {
#ifdef FLOAT
  if (is_nan(b)) return false;
  if (is_nan(a)) return true;
#endif
  return kSmallest ? a < b : a > b;
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint base = i / columns * rows * columns + i % columns;
  uint best = kLast ? rows - 1 : 0;
  T extreme = x[base + best * columns];
  for (uint step = 1; step < rows; ++step) {
    uint r = kLast ? rows - 1 - step : step;
    T v = x[base + r * columns];
    if (is_better(v, extreme)) {
      extreme = v;
      best = r;
    }
  }
  y[i] = uvec2(best, 0);
}
