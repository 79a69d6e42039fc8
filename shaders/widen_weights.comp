#version 450
#extension GL_GOOGLE_include_directive : require
// Dequantizes kBits-bit weights, packed as for gemm_weights.comp, to f32 [N,K]; sixteen bytes of a column per invocation.
#include "common.glsl"
layout(constant_id = 1) const uint kBits = 8;
layout(set = 0, binding = 0, std430) readonly buffer W { uvec4 w[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform P {
  uint count;
  uint n, k;
  uint group;  // weights along k that share a scale
};
const uint kWeights = 128 / kBits;

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint column = i % n, first = i / n * kWeights;
  uvec4 words = w[i];
  float factor = scale[first / group * ((n + 3) / 4 * 4) + column];
  [[unroll]] for (uint v = 0; v < kWeights / 4; ++v) {
    vec4 q;
    [[unroll]] for (uint t = 0; t < 4; ++t) {
      uint at = v * 4 + t;
      if (kBits == 8)
        q[t] = float((int(words[at / 4]) << (24 - 8 * (at % 4))) >> 24);
      else
        q[t] = float((words[at / 8] >> (4 * (at % 8))) & 15u) - 8.0;
    }
    y[(column * k + first) / 4 + v] = q * factor;
  }
}
