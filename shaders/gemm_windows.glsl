// Push constants of convolution as an implicit GEMM: rows are output pixels, columns output channels.
layout(push_constant) uniform P {
  uint m, n, k;    // k: taps times channels
  uint channels4;  // of the input, in groups of four
  uint out_h, out_w, in_h, in_w;
  uint kernel_h, kernel_w, stride_h, stride_w;
  int pad_h, pad_w;
  uint dilation_h, dilation_w;
  uint row_tiles, column_groups;
  float alpha, beta;
};
// The same names as in gemm.glsl.
const uint batch_extent[2] = {1, 1};
const uint bias_row = 0, bias_column = 1, residual_shift = 0;
#define ldb (k / 4)
#define ldc n

struct Bases {
  uint a, b, c, bias;
};
Bases bases_of(uint batch) { return Bases(0, 0, 0, 0); }
