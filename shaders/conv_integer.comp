#version 450
#extension GL_GOOGLE_include_directive : require
// Direct convolution of 8-bit integers in up to three spatial dimensions with any groups, one output element per
// invocation: requantize of the sum of (x - zx)(w - zw) over the taps inside the image. kFlipX, kFlipW: 128 for i8,
// 0 for u8.
#include "common.glsl"
#include "functions.glsl"
#include "requantize.glsl"
layout(constant_id = 6) const int kFlipX = 0;
layout(constant_id = 7) const int kFlipW = 0;
layout(constant_id = 8) const uint kZeroX = 0;
layout(constant_id = 9) const uint kZeroW = 0;  // 1: per tensor, 2: per output channel
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer W { uint w[]; };
layout(set = 0, binding = 7, std430) readonly buffer Zx { uint x_zero[]; };
layout(set = 0, binding = 8, std430) readonly buffer Zw { uint w_zero[]; };
layout(push_constant) uniform P {
  uint count;
  uint in_c, out_c, groups;
  uint in_extent[3], out_extent[3], kernel[3], stride[3];
  int pad[3];
  uint dilation[3];
  uint scale_step;
  float alpha, beta;
};

int value_x(uint v) { return (int(v) ^ kFlipX) - kFlipX; }
int value_w(uint v) { return (int(v) ^ kFlipW) - kFlipW; }

// Input coordinate of output coordinate `o` at tap `k`, or -1.
int source(uint o, uint k, uint axis) {
  int t = int(o * stride[axis]) - pad[axis] + int(k * dilation[axis]);
  return t >= 0 && uint(t) < in_extent[axis] ? t : -1;
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint o = i % out_c;
  uint rest = i / out_c;
  uint ox = rest % out_extent[2];
  rest /= out_extent[2];
  uint oy = rest % out_extent[1];
  rest /= out_extent[1];
  uint oz = rest % out_extent[0];
  uint n = rest / out_extent[0];
  uint group_o = out_c / groups, group_c = in_c / groups;
  uint taps = kernel[0] * kernel[1] * kernel[2];
  int zx = kZeroX != 0 ? value_x(byte_of(x_zero[0], 0)) : 0;
  uint own = kZeroW == 1 ? 0 : o;
  int zw = kZeroW != 0 ? value_w(byte_of(w_zero[own / 4], own)) : 0;
  int sum = 0;
  for (uint kz = 0; kz < kernel[0]; ++kz) {
    int z = source(oz, kz, 0);
    for (uint ky = 0; ky < kernel[1]; ++ky) {
      int yy = source(oy, ky, 1);
      for (uint kx = 0; kx < kernel[2]; ++kx) {
        int xx = source(ox, kx, 2);
        if (z < 0 || yy < 0 || xx < 0) continue;
        uint at = (((n * in_extent[0] + uint(z)) * in_extent[1] + uint(yy)) * in_extent[2] + uint(xx)) * in_c +
                  o / group_o * group_c;
        uint at_w = (o * taps + (kz * kernel[1] + ky) * kernel[2] + kx) * group_c;
        for (uint end = at + group_c; at < end; ++at, ++at_w)
          sum += (value_x(byte_of(x[at / 4], at)) - zx) * (value_w(byte_of(w[at_w / 4], at_w)) - zw);
      }
    }
  }
  Requantization r = requantization();
  set_channel(r, o, scale_step);
  store_sum(i, sum, r, alpha, beta);
}
