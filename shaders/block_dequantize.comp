#version 450
#extension GL_GOOGLE_include_directive : require
// y = codebook[quantized value] times the scale of the element's block.
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer Quantized { uint8_t quantized[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scales { float scales[]; };
layout(set = 0, binding = 2, std430) readonly buffer Codebook { float codebook[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uint count; uint block; uint levels; };

void main() {
  uint i = invocation_index();
  if (i < count) y[i] = codebook[min(uint(quantized[i]), levels - 1)] * scales[i / block];
}
