#version 450
#extension GL_GOOGLE_include_directive : require
// Packs byte matrices [K,N] of any strides as [matrices,K/16,N][16] of i8, sixteen bytes per invocation.
#include "common.glsl"
#include "bytes.glsl"
layout(constant_id = 1) const uint kFlip = 0;  // 128: u8 source, from which 128 is subtracted
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uvec4 y[]; };
layout(push_constant) uniform P {
  uint count;
  uint n, k;
  uint matrix_stride, k_stride, n_stride;
};

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint blocks = (k + 15) / 16;
  uint first = i / n % blocks * 16;
  uint from = i / n / blocks * matrix_stride + i % n * n_stride;
  uvec4 words = uvec4(0);
  for (uint t = 0; t < 16; ++t)
    if (first + t < k) {
      uint at = from + (first + t) * k_stride;
      words[t / 4] |= (byte_of(x[at / 4], at) ^ kFlip) << (8 * (t % 4));
    }
  y[i] = words;
}
