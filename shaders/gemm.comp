#version 450
#extension GL_GOOGLE_include_directive : require
// C = epilogue(A B), one register tile of kRows x kColumns an invocation; kLanesN lanes lie along N, the others of
// the workgroup along M.
// A is [M,K] or, TRANSPOSED_A, [K,M]; B is [K,N] or, TRANSPOSED_B, [N,K]; the contiguous extents are multiples of
// four, so that a step over four k loads whole vec4s whichever way an operand lies. Rows and columns beyond the
// edges are clamped when loaded and not stored.
#include "common.glsl"
#include "functions.glsl"
#include "load.glsl"
#include "epilogue.glsl"
layout(constant_id = 1) const uint kRows = 8;     // with TRANSPOSED_A a multiple of four
layout(constant_id = 2) const uint kColumns = 8;  // a multiple of four
layout(constant_id = 3) const uint kLanesN = 8;
layout(push_constant) uniform P {
  uint m, n, k;
  uint lda, ldb;          // row strides in vec4
  uint row_tiles, column_groups;
  uint batch_extent[2];
  uint batch_a[2];        // strides in vec4, outermost first
  uint batch_b[2];
  uint batch_c;
  uint bias_batch, bias_row, bias_column;
  float alpha, beta;
};

void main() {
  uint group = group_number();
  uint column_group = group % column_groups;
  group /= column_groups;
  uint lane = gl_LocalInvocationID.x;
  uint row = ((group % row_tiles) * (gl_WorkGroupSize.x / kLanesN) + lane / kLanesN) * kRows;
  uint batch = group / row_tiles;
  if (batch >= batch_extent[0] * batch_extent[1]) return;
  uint inner = batch % batch_extent[1];
  uint outer = batch / batch_extent[1];
  uint base_a = outer * batch_a[0] + inner * batch_a[1];
  uint base_b = outer * batch_b[0] + inner * batch_b[1];
  uint column = (column_group * kLanesN + lane % kLanesN) * kColumns;
  if (row >= m || column >= n) return;

  float acc[kRows][kColumns];
  [[unroll]] for (uint i = 0; i < kRows; ++i) [[unroll]] for (uint j = 0; j < kColumns; ++j) acc[i][j] = 0.0;
#ifdef TRANSPOSED_A
  uint at_a[kRows / 4];
  [[unroll]] for (uint i = 0; i < kRows / 4; ++i) at_a[i] = base_a + min(row / 4 + i, (m - 1) / 4);
#else
  uint at_a[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) at_a[i] = base_a + min(row + i, m - 1) * lda;
#endif
#ifdef TRANSPOSED_B
  uint at_b[kColumns];
  [[unroll]] for (uint j = 0; j < kColumns; ++j) at_b[j] = base_b + min(column + j, n - 1) * ldb;
#else
  uint at_b[kColumns / 4];
  [[unroll]] for (uint j = 0; j < kColumns / 4; ++j) at_b[j] = base_b + min(column / 4 + j, (n - 1) / 4);
#endif

  for (uint k4 = 0; k4 < k / 4; ++k4) {
#ifdef TRANSPOSED_A
    vec4 a[4][kRows / 4];
    [[unroll]] for (uint t = 0; t < 4; ++t)
      [[unroll]] for (uint i = 0; i < kRows / 4; ++i) a[t][i] = load_a(at_a[i] + (k4 * 4 + t) * lda);
#define RT_A(i, t) a[t][(i) / 4][(i) % 4]
#else
    vec4 a[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) a[i] = load_a(at_a[i] + k4);
#define RT_A(i, t) a[i][t]
#endif
#ifdef TRANSPOSED_B
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      vec4 b = load_b(at_b[j] + k4);
      [[unroll]] for (uint t = 0; t < 4; ++t)
        [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][j] = fma(RT_A(i, t), b[t], acc[i][j]);
    }
#else
    [[unroll]] for (uint t = 0; t < 4; ++t)
      [[unroll]] for (uint j = 0; j < kColumns / 4; ++j) {
        vec4 b = load_b(at_b[j] + (k4 * 4 + t) * ldb);
        [[unroll]] for (uint i = 0; i < kRows; ++i)
          [[unroll]] for (uint c = 0; c < 4; ++c)
            acc[i][j * 4 + c] = fma(RT_A(i, t), b[c], acc[i][j * 4 + c]);
      }
#endif
  }

#if defined(TRANSPOSED_A) && !defined(TRANSPOSED_B)
  // Neither operand is padded along k here: the rest one by one.
  for (uint kk = k & ~3u; kk < k; ++kk) {
    vec4 a[kRows / 4];
    [[unroll]] for (uint i = 0; i < kRows / 4; ++i) a[i] = load_a(at_a[i] + kk * lda);
    [[unroll]] for (uint j = 0; j < kColumns / 4; ++j) {
      vec4 b = load_b(at_b[j] + kk * ldb);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint c = 0; c < 4; ++c)
          acc[i][j * 4 + c] = fma(a[i / 4][i % 4], b[c], acc[i][j * 4 + c]);
    }
  }
#endif

  [[unroll]] for (uint i = 0; i < kRows; ++i)
    if (row + i < m)
      [[unroll]] for (uint j = 0; j < kColumns; ++j)
        if (column + j < n)
          store_result(batch * batch_c + (row + i) * n + column + j,
                       batch * bias_batch + (row + i) * bias_row + (column + j) * bias_column, acc[i][j], alpha, beta);
}
