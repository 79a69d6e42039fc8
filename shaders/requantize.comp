#version 450
#extension GL_GOOGLE_include_directive : require
// i32 sums as codes or real numbers, one element an invocation.
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
  uint i = invocation_number();
  if (i >= count) return;
  Requantization r = requantization();
  set_channel(r, i % channels, scale_step);
  store_sum(i, x[i], r, alpha, beta);
}
