#version 450
#extension GL_GOOGLE_include_directive : require
// Softmax or its logarithm along the middle axis of x [batch,rows,columns], one invocation per column.
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const bool kLog = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uint count; uint rows; uint columns; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint base = i / columns * rows * columns + i % columns;
  float most = -kInfinity;
  for (uint r = 0; r < rows; ++r) most = max_keep_nan(most, x[base + r * columns]);
  float sum = 0.0;
  for (uint r = 0; r < rows; ++r) sum += exact_exp(x[base + r * columns] - most);
  float log_sum = kLog ? exact_log(sum) : 0.0;
  for (uint r = 0; r < rows; ++r) {
    float shifted = x[base + r * columns] - most;
    y[base + r * columns] = kLog ? shifted - log_sum : exact_exp(shifted) / sum;
  }
}
