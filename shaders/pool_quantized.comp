#version 450
#extension GL_GOOGLE_include_directive : require
// MaxPool of 8-bit integers, four elements, a word, per invocation; a window in the padding gives the least value. kSigned: i8.
#include "common.glsl"
#include "bytes.glsl"
#include "windows.glsl"
layout(constant_id = 3) const uint kSigned = 0;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uint y[]; };

uint largest(uint i) {
  uint c = i % channels;
  uint rest = i / channels;
  uint ox = rest % out_extent[2];
  rest /= out_extent[2];
  uint oy = rest % out_extent[1];
  rest /= out_extent[1];
  uint oz = rest % out_extent[0];
  uint n = rest / out_extent[0];
  // Flips the sign bit of i8, so that they compare as unsigned.
  uint flip = kSigned != 0 ? 0x80u : 0u;
  uint best = 0;
  for (uint kz = 0; kz < kernel[0]; ++kz) {
    uint z = uint(int(oz * stride[0] + kz * dilation[0]) - pad[0]);
    for (uint ky = 0; ky < kernel[1]; ++ky) {
      uint yy = uint(int(oy * stride[1] + ky * dilation[1]) - pad[1]);
      for (uint kx = 0; kx < kernel[2]; ++kx) {
        uint xx = uint(int(ox * stride[2] + kx * dilation[2]) - pad[2]);
        if (z >= in_extent[0] || yy >= in_extent[1] || xx >= in_extent[2]) continue;
        uint position = ((n * in_extent[0] + z) * in_extent[1] + yy) * in_extent[2] + xx;
        uint at = position * channels + c;
        best = max(best, byte_of(x[at / 4], at) ^ flip);
      }
    }
  }
  return best ^ flip;
}

void main() {
  uint i = invocation_index();
  if (4 * i >= count) return;
  uint word = 0;
  for (uint c = 0; c < 4; ++c) word |= largest(min(4 * i + c, count - 1)) << (8 * c);
  y[i] = word;
}
