#version 450
#extension GL_GOOGLE_include_directive : require
// Requantizes i32 accumulators to 8 bits or converts them to f32, four elements per invocation.
#include "common.glsl"
#include "functions.glsl"
#include "requantize.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { ivec4 x4[]; };
layout(push_constant) uniform P {
  uint count;
  uint channels;
  uint scale_step;
  float alpha, beta;
};

void main() {
  uint i = invocation_index();
  if (4 * i >= count) return;
  Requantization r = requantization();
  uint channel = 4 * i % channels;
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    r.scale[c] = scale[channel * scale_step];
    if (kHasBias) r.bias[c] = bias[channel];
    channel = channel + 1 == channels ? 0 : channel + 1;
  }
  store_sums(i, x4[i], r, alpha, beta);
}
