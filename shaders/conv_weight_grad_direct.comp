#version 450
#extension GL_GOOGLE_include_directive : require
// Gradient of a convolution's weight in up to three spatial dimensions with any groups, one element and one range of
// pixels per invocation; partial sums as in conv_weight_grad.comp.
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer G { float grad[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P {
  uint count;                 // weights
  uint splits, pixels;
  uint in_c, out_c, groups;
  uint in_extent[3], out_extent[3], kernel[3], stride[3];
  int pad[3];
  uint dilation[3];
};

void main() {
  uint i = invocation_index();
  if (i >= count * splits) return;
  uint weight = i % count;
  uint split = i / count;
  uint group_c = in_c / groups, group_o = out_c / groups;
  uint c = weight % group_c;
  uint rest = weight / group_c;
  uint kx = rest % kernel[2];
  rest /= kernel[2];
  uint ky = rest % kernel[1];
  rest /= kernel[1];
  uint kz = rest % kernel[0];
  uint o = rest / kernel[0];
  uint channel = o / group_o * group_c + c;
  uint per_split = (pixels + splits - 1) / splits;
  uint first = split * per_split;
  uint last = min(first + per_split, pixels);
  float sum = 0.0;
  for (uint p = first; p < last; ++p) {
    uint q = p;
    uint ox = q % out_extent[2];
    q /= out_extent[2];
    uint oy = q % out_extent[1];
    q /= out_extent[1];
    uint oz = q % out_extent[0];
    uint n = q / out_extent[0];
    uint zz = uint(int(oz * stride[0] + kz * dilation[0]) - pad[0]);
    uint yy = uint(int(oy * stride[1] + ky * dilation[1]) - pad[1]);
    uint xx = uint(int(ox * stride[2] + kx * dilation[2]) - pad[2]);
    if (zz < in_extent[0] && yy < in_extent[1] && xx < in_extent[2])
      sum = fma(x[(((n * in_extent[0] + zz) * in_extent[1] + yy) * in_extent[2] + xx) * in_c + channel],
                grad[p * out_c + o], sum);
  }
  y[i] = sum;
}
