// Push constants of the 8-bit integer GEMM shaders.
layout(push_constant) uniform P {
  uint m, n, k;     // k: without padding
  uint steps;       // K/16 or, CONV, the channels of a group / 16
  uint lda;         // stride of a row or pixel, in vec4
  uint row_tiles, column_groups;
  uint batch_extent[2];
  uint batch_a[2], batch_b[2];  // strides in vec4, outermost first
  uint batch_c[2], ldc;         // in elements
  uint batch_channels;          // from one inner matrix's channels to the next one's
  uint scale_step;
  float alpha, beta;
#ifdef CONV
  uint out_h, out_w, in_h, in_w;
  uint kernel_h, kernel_w, stride_h, stride_w;
  int pad_h, pad_w;
  uint dilation_h, dilation_w;
#endif
};
