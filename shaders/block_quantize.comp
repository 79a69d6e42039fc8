#version 450
#extension GL_GOOGLE_include_directive : require
// One workgroup per block of x: its scale is the largest |x|; the quantized value is the number of thresholds that x
// reaches: the midpoints between neighbouring values of the ascending codebook, times the scale.
#include "common.glsl"
layout(constant_id = 1) const uint kMinPositive = 0;  // the least quantized value for x > 0
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Codebook { float codebook[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Quantized { uint8_t quantized[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Scales { float scales[]; };
layout(push_constant) uniform P { uint count; uint block; uint levels; };
shared float partial[gl_WorkGroupSize.x];

void main() {
  uint group = group_index();
  uint lane = gl_LocalInvocationID.x;
  uint begin = min(group * block, count), end = min(begin + block, count);
  float most = 0.0;
  for (uint i = begin + lane; i < end; i += gl_WorkGroupSize.x) most = max_keep_nan(most, abs(x[i]));
  partial[lane] = most;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width) partial[lane] = max_keep_nan(partial[lane], partial[lane + width]);
  }
  barrier();
  float scale = partial[0];
  if (lane == 0 && begin < end) scales[group] = scale;
  for (uint i = begin + lane; i < end; i += gl_WorkGroupSize.x) {
    float v = x[i];
    uint level = 0;
    for (uint half_width = 128; half_width > 0; half_width /= 2) {
      uint next = level + half_width;
      if (next >= levels) continue;
      precise float middle = 0.5 * (codebook[next - 1] + codebook[next]);
      precise float threshold = middle * scale;
      if (v >= threshold && !is_nan(threshold) && !is_nan(v)) level = next;
    }
    quantized[i] = uint8_t(v > 0.0 && !is_nan(v) ? max(level, kMinPositive) : level);
  }
}
