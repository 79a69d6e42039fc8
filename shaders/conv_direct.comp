#version 450
#extension GL_GOOGLE_include_directive : require
// Direct convolution in up to three spatial dimensions with any groups, one output element per invocation: for shapes
// that the tiled kernels do not support. TRANSPOSED as in conv.comp.
// variants: conv_direct
// variants: conv_direct_transposed TRANSPOSED
#include "common.glsl"
#include "functions.glsl"
#include "epilogue.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer W { float w[]; };
layout(push_constant) uniform P {
  uint count;
  uint in_c, out_c, groups;
  uint in_extent[3], out_extent[3], kernel[3], stride[3];
  int pad[3];
  uint dilation[3];
  float alpha, beta;
};

// Input coordinate of output coordinate `o` at tap `k`, or -1.
int source(uint o, uint k, uint axis) {
#ifdef TRANSPOSED
  int t = int(o) + pad[axis] - int(k * dilation[axis]);
  if (t < 0 || uint(t) % stride[axis] != 0) return -1;
  t = int(uint(t) / stride[axis]);
#else
  int t = int(o * stride[axis]) - pad[axis] + int(k * dilation[axis]);
#endif
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
  uint group = o / group_o;
  uint taps = kernel[0] * kernel[1] * kernel[2];
  float sum = 0.0;
  for (uint kz = 0; kz < kernel[0]; ++kz) {
    int z = source(oz, kz, 0);
    for (uint ky = 0; ky < kernel[1]; ++ky) {
      int yy = source(oy, ky, 1);
      for (uint kx = 0; kx < kernel[2]; ++kx) {
        int xx = source(ox, kx, 2);
        if (z < 0 || yy < 0 || xx < 0) continue;
        uint at = (((n * in_extent[0] + uint(z)) * in_extent[1] + uint(yy)) * in_extent[2] + uint(xx)) * in_c + group * group_c;
        uint tap = (kz * kernel[1] + ky) * kernel[2] + kx;
#ifdef TRANSPOSED
        uint at_w = (group * group_c * taps + tap) * group_o + o % group_o;
        for (uint c = 0; c < group_c; ++c) sum = fma(x[at + c], w[at_w + c * taps * group_o], sum);
#else
        uint at_w = (o * taps + tap) * group_c;
        for (uint c = 0; c < group_c; ++c) sum = fma(x[at + c], w[at_w + c], sum);
#endif
      }
    }
  }
  store_result(i, i, o, sum, alpha, beta);
}
