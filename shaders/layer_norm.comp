#version 450
#extension GL_GOOGLE_include_directive : require
// y = (x - mean) / sqrt(variance + epsilon) scale + bias over rows of x [rows,columns], one workgroup per row; the
// mean is computed around the first value, the variance around the mean in a second pass; the mean counts as 0 unless
// kCentered. GRADIENT: with z = (x - mean) factor and s = g scale, y = (s - mean(s) - z mean(s z)) factor, without
// mean(s) unless kCentered; and the mean and factor of each row.
// variants: layer_norm
// variants: layer_norm_grad GRADIENT
#include "common.glsl"
layout(constant_id = 1) const bool kScale = false;
layout(constant_id = 2) const bool kBias = false;
layout(constant_id = 3) const bool kCentered = true;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer Scale { float scale[]; };
#ifdef GRADIENT
layout(set = 0, binding = 3, std430) readonly buffer G { float g[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Means { float means[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Factors { float factors[]; };
layout(push_constant) uniform P { uint rows; uint columns; float epsilon; uint scale_step; };
#else
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias[]; };
layout(push_constant) uniform P { uint rows; uint columns; float epsilon; uint scale_step; uint bias_step; };
#endif
shared float partial[gl_WorkGroupSize.x];

float row_sum(float value) {
  uint lane = gl_LocalInvocationID.x;
  barrier();
  partial[lane] = value;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width) partial[lane] += partial[lane + width];
  }
  barrier();
  return partial[0];
}

void main() {
  uint row = group_index();
  uint lane = gl_LocalInvocationID.x;
  uint length = row < rows ? columns : 0;
  uint base = row * columns;
  float mean = 0.0;
  if (kCentered) {
    // A sum of values far from 0 loses the digits in which they differ; infinity - infinity is no mean.
    float origin = length > 0 ? x[base] : 0.0;
    if (!(abs(origin) < kInfinity)) origin = 0.0;
    float sum = 0.0;
    for (uint c = lane; c < length; c += gl_WorkGroupSize.x) sum += x[base + c] - origin;
    mean = origin + row_sum(sum) / float(columns);
  }
  float squares = 0.0;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) {
    float d = x[base + c] - mean;
    squares += d * d;
  }
  float factor = 1.0 / sqrt(row_sum(squares) / float(columns) + epsilon);
#ifdef GRADIENT
  float first = 0.0, second = 0.0;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) {
    float s = g[base + c];
    if (kScale) s *= scale[c * scale_step];
    first += s;
    second += s * ((x[base + c] - mean) * factor);
  }
  first = kCentered ? row_sum(first) / float(columns) : 0.0;
  second = row_sum(second) / float(columns);
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) {
    float s = g[base + c];
    if (kScale) s *= scale[c * scale_step];
    y[base + c] = (s - (first + (x[base + c] - mean) * factor * second)) * factor;
  }
  if (lane == 0 && row < rows) {
    means[row] = mean;
    factors[row] = factor;
  }
#else
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) {
    float v = (x[base + c] - mean) * factor;
    if (kScale) v *= scale[c * scale_step];
    if (kBias) v += bias[c * bias_step];
    y[base + c] = v;
  }
#endif
}
