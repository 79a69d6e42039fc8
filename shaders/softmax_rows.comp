#version 450
#extension GL_GOOGLE_include_directive : require
// Softmax or its logarithm along rows of x [rows,columns], one workgroup per row:
// y = exp(x - max) / sum exp(x - max), log form x - max - log sum exp(x - max). GRADIENT: from the result in x,
// x (g - sum g x), or of the logarithm g - exp(x) sum g.
// variants: softmax_rows
// variants: softmax_rows_grad GRADIENT
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const bool kLog = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#ifdef GRADIENT
layout(set = 0, binding = 2, std430) readonly buffer G { float g[]; };
#endif
layout(push_constant) uniform P { uint rows; uint columns; };
shared float partial[gl_WorkGroupSize.x];

void main() {
  uint row = group_index();
  uint lane = gl_LocalInvocationID.x;
  uint length = row < rows ? columns : 0;
  uint base = row * columns;
#ifdef GRADIENT
  float total = 0.0;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) total += kLog ? g[base + c] : g[base + c] * x[base + c];
  partial[lane] = total;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width) partial[lane] += partial[lane + width];
  }
  barrier();
  total = partial[0];
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x)
    y[base + c] = kLog ? g[base + c] - exact_exp(x[base + c]) * total : x[base + c] * (g[base + c] - total);
#else
  float most = -kInfinity;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) most = max_keep_nan(most, x[base + c]);
  partial[lane] = most;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width) partial[lane] = max_keep_nan(partial[lane], partial[lane + width]);
  }
  barrier();
  most = partial[0];
  barrier();
  float sum = 0.0;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) sum += exact_exp(x[base + c] - most);
  partial[lane] = sum;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width) partial[lane] += partial[lane + width];
  }
  barrier();
  sum = partial[0];
  float log_sum = kLog ? exact_log(sum) : 0.0;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) {
    float shifted = x[base + c] - most;
    y[base + c] = kLog ? shifted - log_sum : exact_exp(shifted) / sum;
  }
#endif
}
