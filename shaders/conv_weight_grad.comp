#version 450
#extension GL_GOOGLE_include_directive : require
// Gradient of a convolution's weight [O,KH,KW,C/groups]: per tap the matmul of grad_output^T [O,pixels] and the shifted
// x [pixels,C], one tile of kRows x kColumns per invocation; lanes run along taps and channels. The pixels (K) are cut
// into `splits` ranges whose partial sums follow each other in y, so that the order of summation is fixed.
// Operand a: grad_output, operand b: x, both with channels padded to whole vec4s.
// variants: conv_weight_grad_{buffer|texel TEXEL}
#include "common.glsl"
#include "load.glsl"
layout(constant_id = 1) const uint kRows = 8;
layout(constant_id = 2) const uint kColumns = 8;
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P {
  uint pixels, out_h, out_w, in_h, in_w;
  uint in_c4, out_c4;         // row strides of the operands, in vec4
  uint group_c, group_o, groups;
  uint kernel_h, kernel_w, stride_h, stride_w;
  int pad_h, pad_w;
  uint dilation_h, dilation_w;
  uint column_tiles;          // per tap
  uint row_tiles;             // per group
  uint lane_groups;           // workgroups along taps and column tiles
  uint splits;
};

void main() {
  uint number = group_index();
  uint lanes = (number % lane_groups) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  number /= lane_groups;
  uint o = (number % row_tiles) * kRows;
  number /= row_tiles;
  uint group = number % groups;
  uint split = number / groups;
  uint tap = lanes / column_tiles;
  uint c = (lanes % column_tiles) * kColumns;
  uint taps = kernel_h * kernel_w;
  if (tap >= taps || split >= splits) return;

  float acc[kRows][kColumns];
  [[unroll]] for (uint i = 0; i < kRows; ++i) [[unroll]] for (uint j = 0; j < kColumns; ++j) acc[i][j] = 0.0;
  uint at_a[kRows / 4], at_b[kColumns / 4];
  [[unroll]] for (uint i = 0; i < kRows / 4; ++i) at_a[i] = min((group * group_o + o) / 4 + i, out_c4 - 1);
  [[unroll]] for (uint j = 0; j < kColumns / 4; ++j) at_b[j] = min((group * group_c + c) / 4 + j, in_c4 - 1);

  uint per_split = (pixels + splits - 1) / splits;
  uint first = split * per_split;
  uint last = min(first + per_split, pixels);
  uint ox = first % out_w;
  uint oy = first / out_w % out_h;
  uint n = first / out_w / out_h;
  int shift_y = int(tap / kernel_w * dilation_h) - pad_h;
  int shift_x = int(tap % kernel_w * dilation_w) - pad_w;
  for (uint p = first; p < last; ++p) {
    uint yy = uint(int(oy * stride_h) + shift_y), xx = uint(int(ox * stride_w) + shift_x);
    bool inside = yy < in_h && xx < in_w;
    uint base = inside ? ((n * in_h + yy) * in_w + xx) * in_c4 : 0;
    vec4 a[kRows / 4];
    [[unroll]] for (uint i = 0; i < kRows / 4; ++i) a[i] = load_a(p * out_c4 + at_a[i]);
    [[unroll]] for (uint j = 0; j < kColumns / 4; ++j) {
      vec4 b = load_b(base + at_b[j]);
      b = inside ? b : vec4(0.0);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint d = 0; d < 4; ++d) acc[i][j * 4 + d] = fma(a[i / 4][i % 4], b[d], acc[i][j * 4 + d]);
    }
    ox += 1;
    bool wraps_x = ox == out_w;
    ox = wraps_x ? 0 : ox;
    oy += wraps_x ? 1 : 0;
    bool wraps_y = oy == out_h;
    oy = wraps_y ? 0 : oy;
    n += wraps_y ? 1 : 0;
  }

  uint partial = split * groups * group_o * taps * group_c;
  [[unroll]] for (uint i = 0; i < kRows; ++i)
    if (o + i < group_o)
      [[unroll]] for (uint j = 0; j < kColumns; ++j)
        if (c + j < group_c)
          y[partial + ((group * group_o + o + i) * taps + tap) * group_c + c + j] = acc[i][j];
}
