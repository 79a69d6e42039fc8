#version 450
#extension GL_GOOGLE_include_directive : require
// C = requantize((A - za)(B - zb)) of 8-bit integers, one register tile of kRows x kColumns per invocation; kLanesN lanes
// of the workgroup run along N, the others along M. A lane's columns are groups of four, kLanesN groups apart.
// A is [M][K/16][16]; B is [K/16][N][16], i8, zero-padded along K. A is multiplied as u8 (i8 with its sign bit flipped,
// which moves the zero point by 128): u8 x i8 suits both software devices and hardware with mixed-sign dot products.
// The zero points are corrected at the end:
// sum (a - za)(b - zb) = sum ab - za sum b - zb sum a + K za zb.
// CONV: A is an image [N,H,W,C/16][16], its rows are output pixels, K runs over taps and the channels of a group, and
// padding taps read za. Groups are the inner batch axis.
// DOT: hardware packed dot products. SUBGROUP: the workgroup is one subgroup of kLanesN lanes, and kRows a multiple of
// kLanesN.
// variants: gemm_integer_{buffer|texel TEXEL|subgroup TEXEL SUBGROUP|dot DOT}
// variants: gemm_integer_conv_{buffer|texel TEXEL|subgroup TEXEL SUBGROUP|dot DOT} CONV
#include "common.glsl"
#include "functions.glsl"
#define WORDS 1
#include "load.glsl"
#include "requantize.glsl"
layout(constant_id = 6) const uint kRows = 8;
layout(constant_id = 7) const uint kColumns = 8;  // a multiple of four
layout(constant_id = 8) const uint kLanesN = 8;
layout(constant_id = 9) const uint kFlipA = 0;   // 128: A is signed
layout(constant_id = 10) const uint kFlipB = 0;  // 128: B was unsigned before it was packed
layout(constant_id = 11) const uint kZeroA = 0;  // zero points: 0: none, 1: per tensor, 2: per row or column
layout(constant_id = 12) const uint kZeroB = 0;
layout(constant_id = 13) const bool kVectorized = false;  // results and channels begin at multiples of four
layout(set = 0, binding = 7, std430) readonly buffer Za { uint a_zero[]; };
layout(set = 0, binding = 8, std430) readonly buffer Zb { uint b_zero[]; };
uint zero_of_a(uint at) { return byte_of(a_zero[at / 4], at); }
uint zero_of_b(uint at) { return byte_of(b_zero[at / 4], at); }
#include "gemm_integer.glsl"
#ifdef DOT
#extension GL_EXT_spirv_intrinsics : require
// OpSUDotKHR of four signed and four unsigned bytes.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4452)
int packed_dot(uint signed_bytes, uint unsigned_bytes, spirv_literal int format);
#endif

uint unsigned_byte(uint word, uint t) { return (word >> (8 * t)) & 0xffu; }
int signed_byte(uint word, uint t) { return (int(word) << (24 - 8 * t)) >> 24; }

// The rows that a lane loads.
#ifdef SUBGROUP
const uint kOwn = kRows / kLanesN;
#define OWN_ROW(i) ((i) * kLanesN + gl_SubgroupInvocationID)
#define OF_ROW(values, i) subgroupShuffle(values[(i) / kLanesN], (i) % kLanesN)
#else
const uint kOwn = kRows;
#define OWN_ROW(i) (i)
#define OF_ROW(values, i) values[i]
#endif

void main() {
  uint group = group_index();
  uint column_group = group % column_groups;
  group /= column_groups;
  uint lane = gl_LocalInvocationID.x;
#ifdef SUBGROUP
  uint row = (group % row_tiles) * kRows;
#else
  uint row = ((group % row_tiles) * (gl_WorkGroupSize.x / kLanesN) + lane / kLanesN) * kRows;
#endif
  uint batch = group / row_tiles;
  if (batch >= batch_extent[0] * batch_extent[1]) return;
  uint inner = batch % batch_extent[1], outer = batch / batch_extent[1];
  uint column = column_group * kLanesN * kColumns + lane % kLanesN * 4;
#ifndef SUBGROUP
  if (row >= m || column >= n) return;
#endif
  const bool kSumsOfA = kZeroB != 0 || kFlipB != 0, kSumsOfB = kZeroA != 0 || kFlipA != 0;
  uint base_a = outer * batch_a[0] + inner * batch_a[1];
  uint at_b = outer * batch_b[0] + inner * batch_b[1];

  int acc[kRows][kColumns], sum_a[kOwn], sum_b[kColumns];
  uint at_a[kOwn], column_of[kColumns];
  [[unroll]] for (uint j = 0; j < kColumns; ++j) {
    [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][j] = 0;
    sum_b[j] = 0;
    column_of[j] = min(column + j / 4 * kLanesN * 4 + j % 4, n - 1);
  }
#ifdef CONV
  int y0[kOwn], x0[kOwn];
  uvec4 outside = uvec4((kZeroA != 0 ? zero_of_a(0) ^ kFlipA : kFlipA) * 0x01010101u);
#endif
  [[unroll]] for (uint i = 0; i < kOwn; ++i) {
    sum_a[i] = 0;
    uint here = min(row + OWN_ROW(i), m - 1);
#ifdef CONV
    uint q = here / out_w;
    y0[i] = int(q % out_h * stride_h) - pad_h;
    x0[i] = int(here % out_w * stride_w) - pad_w;
    at_a[i] = base_a + q / out_h * in_h * in_w * lda;
#else
    at_a[i] = base_a + here * lda;
#endif
  }

#ifdef CONV
  // One flat loop that counts row, column and block: divisions and nested loops are slow.
  for (uint ky = 0, kx = 0, block = 0; ky < kernel_h;) {
#else
  for (uint block = 0; block < steps; ++block) {
#endif
    uvec4 own[kOwn], right[kColumns];
    [[unroll]] for (uint i = 0; i < kOwn; ++i) {
#ifdef CONV
      uint y = uint(y0[i] + int(ky * dilation_h)), x = uint(x0[i] + int(kx * dilation_w));
      bool inside = y < in_h && x < in_w;
      own[i] = load_a(at_a[i] + (inside ? (y * in_w + x) * lda : 0) + block) ^ (kFlipA * 0x01010101u);
      own[i] = inside ? own[i] : outside;
#else
      own[i] = load_a(at_a[i] + block) ^ (kFlipA * 0x01010101u);
#endif
    }
    [[unroll]] for (uint j = 0; j < kColumns; ++j) right[j] = load_b(at_b + column_of[j]);
    at_b += n;
    [[unroll]] for (uint w = 0; w < 4; ++w) {
#ifdef DOT
      [[unroll]] for (uint i = 0; i < kOwn; ++i)
        if (kSumsOfA) sum_a[i] += packed_dot(0x01010101u, own[i][w], 0);
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        if (kSumsOfB) sum_b[j] += packed_dot(right[j][w], 0x01010101u, 0);
        [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][j] += packed_dot(right[j][w], own[i][w], 0);
      }
#else
      int a[kRows][4];
      [[unroll]] for (uint t = 0; t < 4; ++t) {
        int bytes[kOwn];
        [[unroll]] for (uint i = 0; i < kOwn; ++i) {
          bytes[i] = int(unsigned_byte(own[i][w], t));
          if (kSumsOfA) sum_a[i] += bytes[i];
        }
        [[unroll]] for (uint i = 0; i < kRows; ++i) a[i][t] = OF_ROW(bytes, i);
      }
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        int b[4];
        [[unroll]] for (uint t = 0; t < 4; ++t) {
          b[t] = signed_byte(right[j][w], t);
          if (kSumsOfB) sum_b[j] += b[t];
        }
        [[unroll]] for (uint i = 0; i < kRows; ++i)
          [[unroll]] for (uint t = 0; t < 4; ++t) acc[i][j] += a[i][t] * b[t];
      }
#endif
    }
#ifdef CONV
    ++block;
    kx += block == steps ? 1 : 0;
    block = block == steps ? 0 : block;
    ky += kx == kernel_w ? 1 : 0;
    kx = kx == kernel_w ? 0 : kx;
#endif
  }

  int sum_of_row[kRows], za[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    sum_of_row[i] = kSumsOfA ? OF_ROW(sum_a, i) : 0;
    za[i] = int(kFlipA);
    if (kZeroA == 2) za[i] = int(zero_of_a(batch * m + min(row + i, m - 1)) ^ kFlipA);
    if (kZeroA == 1) za[i] = i == 0 ? int(zero_of_a(0) ^ kFlipA) : za[0];
  }
  Requantization r = requantization();
  uint base_c = outer * batch_c[0] + inner * batch_c[1];
  [[unroll]] for (uint j = 0; j < kColumns; j += 4) {
    uint here = column + j * kLanesN;
    if (here < n) {
      uint channel = inner * batch_channels + here;
      int zb[4];
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        zb[c] = -int(kFlipB);
        if (kZeroB == 1) zb[c] = signed_byte(zero_of_b(0) ^ kFlipB, 0);
        if (kZeroB == 2) zb[c] = signed_byte(zero_of_b(inner * batch_channels + column_of[j + c]) ^ kFlipB, 0);
      }
      if (kVectorized) set_channels(r, channel / 4, scale_step);
      ivec4 sum[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint c = 0; c < 4; ++c)
          sum[i][c] = acc[i][j + c] - za[i] * sum_b[j + c] - zb[c] * sum_of_row[i] + int(k) * za[i] * zb[c];
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        if (kVectorized && row + i < m) store_sums((base_c + (row + i) * ldc + here) / 4, sum[i], r, alpha, beta);
      if (!kVectorized)
        [[unroll]] for (uint c = 0; c < 4; ++c)
          if (here + c < n) {
            set_channel(r, channel + c, scale_step);
            [[unroll]] for (uint i = 0; i < kRows; ++i)
              if (row + i < m) store_sum(base_c + (row + i) * ldc + here + c, sum[i][c], r, alpha, beta);
          }
    }
  }
}
