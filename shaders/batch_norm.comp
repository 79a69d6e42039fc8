#version 450
#extension GL_GOOGLE_include_directive : require
// Batch norm of x [samples,channels] per channel. kForm 0: y = (x - mean) scale / sqrt(spread + epsilon) + bias, where
// spread is the variance. 1: the same, spread the inverse standard deviation. 2: the gradient with respect to x:
// scale spread (g - sum_g / n - (x - mean) spread sum_gz / n), where bias is sum_g.
#include "common.glsl"
layout(constant_id = 1) const uint kForm = 0;
layout(constant_id = 2) const uint kWidth = 1;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 0, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y4 { vec4 y4[]; };
layout(set = 0, binding = 2, std430) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer Mean { float mean[]; };
layout(set = 0, binding = 5, std430) readonly buffer Spread { float spread[]; };
layout(set = 0, binding = 6, std430) readonly buffer G { float g[]; };
layout(set = 0, binding = 7, std430) readonly buffer SumGz { float sum_gz[]; };
layout(push_constant) uniform P { uint count; uint channels; float epsilon; float inverse_n; };

float normalized(float v, uint c, uint at) {
  float centered = v - mean[c];
  if (kForm == 0) return centered * (scale[c] / sqrt(spread[c] + epsilon)) + bias[c];
  if (kForm == 1) return centered * spread[c] * scale[c] + bias[c];
  return scale[c] * spread[c] * (g[at] - bias[c] * inverse_n - centered * spread[c] * sum_gz[c] * inverse_n);
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  if (kWidth == 4) {
    uint c = i % (channels / 4) * 4;
    vec4 v = x4[i];
    vec4 r;
    [[unroll]] for (uint d = 0; d < 4; ++d) r[d] = normalized(v[d], c + d, i * 4 + d);
    y4[i] = r;
  } else {
    y[i] = normalized(x[i], i % channels, i);
  }
}
