#version 450
#extension GL_GOOGLE_include_directive : require
// Requantizes i32 accumulators to 8 bits or converts them to f32, one element per invocation.
#include "common.glsl"
#include "functions.glsl"
#include "requantize.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { int x[]; };
layout(push_constant) uniform P {
  uint count;
  uint channels;
  uint scale_step;
  float alpha, beta;
};

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  Requantization r = requantization();
  set_channel(r, i % channels, scale_step);
  store_sum(i, x[i], r, alpha, beta);
}
