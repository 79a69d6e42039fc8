#version 450
#extension GL_GOOGLE_include_directive : require
// C = (A - za)(B - zb) in i32; A is [M,K], B is [K,N], u8 or i8. One register tile of kRows x kColumns per invocation.
// kFlipA, kFlipB: 128 for i8, 0 for u8. Zero points: za_row and zb_column are their strides.
#include "common.glsl"
#include "bytes.glsl"
layout(constant_id = 1) const int kFlipA = 0;
layout(constant_id = 2) const int kFlipB = 0;
layout(constant_id = 3) const uint kZeroA = 0;
layout(constant_id = 4) const uint kZeroB = 0;
layout(set = 0, binding = 0, std430) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { uint b[]; };
layout(set = 0, binding = 2, std430) readonly buffer Za { uint a_zero[]; };
layout(set = 0, binding = 3, std430) readonly buffer Zb { uint b_zero[]; };
layout(set = 0, binding = 4, std430) writeonly buffer C { int c[]; };
layout(push_constant) uniform P {
  uint m, n, k;
  uint row_tiles, column_tiles;
  uint batch_extent[2];
  uint batch_a[2], batch_b[2], batch_za[2], batch_zb[2];  // strides in elements, outermost first
  uint za_row, zb_column;
};
const uint kRows = 4;
const uint kColumns = 4;

int value_a(uint v) { return (int(v) ^ kFlipA) - kFlipA; }
int value_b(uint v) { return (int(v) ^ kFlipB) - kFlipB; }

void main() {
  uint at = invocation_index();
  uint column = at % column_tiles * kColumns;
  at /= column_tiles;
  uint row = at % row_tiles * kRows;
  uint batch = at / row_tiles;
  if (batch >= batch_extent[0] * batch_extent[1]) return;
  uint outer = batch / batch_extent[1], inner = batch % batch_extent[1];
  uint at_a[kRows], at_b[kColumns];
  int za[kRows], zb[kColumns], acc[kRows][kColumns];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint here = min(row + i, m - 1);
    at_a[i] = outer * batch_a[0] + inner * batch_a[1] + here * k;
    uint at_zero = outer * batch_za[0] + inner * batch_za[1] + here * za_row;
    za[i] = kZeroA != 0 ? value_a(byte_of(a_zero[at_zero / 4], at_zero)) : 0;
    [[unroll]] for (uint j = 0; j < kColumns; ++j) acc[i][j] = 0;
  }
  [[unroll]] for (uint j = 0; j < kColumns; ++j) {
    uint here = min(column + j, n - 1);
    at_b[j] = outer * batch_b[0] + inner * batch_b[1] + here;
    uint at_zero = outer * batch_zb[0] + inner * batch_zb[1] + here * zb_column;
    zb[j] = kZeroB != 0 ? value_b(byte_of(b_zero[at_zero / 4], at_zero)) : 0;
  }
  for (uint kk = 0; kk < k; ++kk) {
    int right[kColumns];
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      uint from = at_b[j] + kk * n;
      right[j] = value_b(byte_of(b[from / 4], from)) - zb[j];
    }
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      uint from = at_a[i] + kk;
      int left = value_a(byte_of(a[from / 4], from)) - za[i];
      [[unroll]] for (uint j = 0; j < kColumns; ++j) acc[i][j] += left * right[j];
    }
  }
  [[unroll]] for (uint i = 0; i < kRows; ++i)
    [[unroll]] for (uint j = 0; j < kColumns; ++j)
      if (row + i < m && column + j < n) c[(batch * m + row + i) * n + column + j] = acc[i][j];
}
