// Push constants of the floating-point GEMM shaders, and where a workgroup's matrices begin.
layout(push_constant) uniform P {
  uint m, n, k;
  uint lda, ldb;          // row strides in vec4
  uint row_tiles, column_groups;
  uint batch_extent[2];
  uint batch_a[2];        // strides in vec4, outermost first
  uint batch_b[2];
  uint batch_c[2];        // of the result, in elements
  uint batch_bias[2];
  uint ldc, bias_row, bias_column;
  uint first_a, first_b;  // where the operands begin in the bound ranges, in vec4
  uint first_c, first_bias;
  float alpha, beta;
  uint residual_shift;          // index of the residual less that of the result
};

struct Bases {
  uint a, b;     // in vec4
  uint c, bias;  // in elements
};

Bases bases_of(uint batch) {
  uint inner = batch % batch_extent[1];
  uint outer = batch / batch_extent[1];
  return Bases(first_a + outer * batch_a[0] + inner * batch_a[1], first_b + outer * batch_b[0] + inner * batch_b[1],
               first_c + outer * batch_c[0] + inner * batch_c[1],
               first_bias + outer * batch_bias[0] + inner * batch_bias[1]);
}
