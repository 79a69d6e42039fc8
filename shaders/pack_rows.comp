#version 450
#extension GL_GOOGLE_include_directive : require
// im2col of bytes: a convolution's windows as matrix rows [groups,pixels,K/16][16], sixteen bytes per invocation: K runs
// over taps and the channels of a group. Padding taps are the zero point, bytes past K are kPad.
#include "common.glsl"
#include "bytes.glsl"
layout(constant_id = 1) const uint kZero = 0;
layout(constant_id = 2) const uint kPad = 0;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Zx { uint x_zero[]; };  // the first byte
layout(set = 0, binding = 2, std430) writeonly buffer Y { uvec4 y[]; };
layout(push_constant) uniform P {
  uint count;
  uint in_c, out_c, groups;
  uint in_extent[3], out_extent[3], kernel[3], stride[3];
  int pad[3];
  uint dilation[3];
  uint blocks;
};

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint first = i % blocks * 16;
  uint rest = i / blocks;
  uint o[3];
  [[unroll]] for (uint d = 3; d-- > 0;) {
    o[d] = rest % out_extent[d];
    rest /= out_extent[d];
  }
  uint pixels = count / (blocks * groups), images = pixels / (out_extent[0] * out_extent[1] * out_extent[2]);
  uint n = rest % images, group = rest / images;
  uint group_c = in_c / groups;
  // Divisions are slow: from here on channel and tap are counted.
  uint c = first % group_c, tap = first / group_c;
  uint kz = tap / (kernel[1] * kernel[2]), ky = tap / kernel[2] % kernel[1], kx = tap % kernel[2];
  uint k = kernel[0] * kernel[1] * kernel[2] * group_c;
  uint zero = kZero != 0 ? byte_of(x_zero[0], 0) : 0;
  uvec4 words = uvec4(0);
  for (uint t = 0; t < 16; ++t) {
    uint value = kPad;
    if (first + t < k) {
      int z = int(o[0] * stride[0]) - pad[0] + int(kz * dilation[0]);
      int yy = int(o[1] * stride[1]) - pad[1] + int(ky * dilation[1]);
      int xx = int(o[2] * stride[2]) - pad[2] + int(kx * dilation[2]);
      value = zero;
      if (uint(z) < in_extent[0] && uint(yy) < in_extent[1] && uint(xx) < in_extent[2]) {
        uint at = (((n * in_extent[0] + uint(z)) * in_extent[1] + uint(yy)) * in_extent[2] + uint(xx)) * in_c +
                  group * group_c + c;
        value = byte_of(x[at / 4], at);
      }
    }
    words[t / 4] |= value << (8 * (t % 4));
    if (++c == group_c) {
      c = 0;
      if (++kx == kernel[2]) {
        kx = 0;
        if (++ky == kernel[1]) {
          ky = 0;
          ++kz;
        }
      }
    }
  }
  y[i] = words;
}
