#version 450
#extension GL_GOOGLE_include_directive : require
// Softmax or its logarithm along the middle axis of x [batch,rows,columns], one invocation per column. GRADIENT: from
// the result in x, x (g - sum g x), or of the logarithm g - exp(x) sum g.
// variants: softmax_columns
// variants: softmax_columns_grad GRADIENT
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const bool kLog = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#ifdef GRADIENT
layout(set = 0, binding = 2, std430) readonly buffer G { float g[]; };
#endif
layout(push_constant) uniform P { uint count; uint rows; uint columns; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint base = i / columns * rows * columns + i % columns;
#ifdef GRADIENT
  float total = 0.0;
  for (uint r = 0, at = base; r < rows; ++r, at += columns) total += kLog ? g[at] : g[at] * x[at];
  for (uint r = 0, at = base; r < rows; ++r, at += columns)
    y[at] = kLog ? g[at] - exact_exp(x[at]) * total : x[at] * (g[at] - total);
#else
  float most = -kInfinity;
  for (uint r = 0; r < rows; ++r) most = max_keep_nan(most, x[base + r * columns]);
  float sum = 0.0;
  for (uint r = 0; r < rows; ++r) sum += exact_exp(x[base + r * columns] - most);
  float log_sum = kLog ? exact_log(sum) : 0.0;
  for (uint r = 0; r < rows; ++r) {
    float shifted = x[base + r * columns] - most;
    y[base + r * columns] = kLog ? shifted - log_sum : exact_exp(shifted) / sum;
  }
#endif
}
