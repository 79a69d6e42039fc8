#version 450
#extension GL_GOOGLE_include_directive : require
// C = requantize((A - za)(B - zb)) of bytes, one register tile of kRows x kColumns an invocation; kLanesN lanes of the
// workgroup lie along N, the others along M. A lane's columns lie kLanesN apart.
// A is [M][K/16][16]; B is [K/16][N][16], signed, with zeros behind the end of K. What is multiplied is A as unsigned
// bytes (signed ones with their sign bit turned, which moves the zero point by 128): then one factor has no sign, which
// both software devices and hardware that multiplies signed by unsigned bytes want. The zero points come off at the end:
// sum (a - za)(b - zb) = sum ab - za sum b - zb sum a + K za zb.
// CONV: A is an image [N,H,W,C/16][16], its rows are output pixels, K runs over taps and the channels of a group, and
// taps outside of the image count as za. Groups are the inner axis of the batch.
// DOT: packed dot products of the hardware. SUBGROUP: the workgroup is one subgroup of kLanesN lanes, and kRows a
// multiple of kLanesN.
#include "common.glsl"
#include "functions.glsl"
#define WORDS 1
#include "load.glsl"
#include "requantize.glsl"
layout(constant_id = 6) const uint kRows = 8;
layout(constant_id = 7) const uint kColumns = 8;
layout(constant_id = 8) const uint kLanesN = 8;
layout(constant_id = 9) const uint kFlipA = 0;   // 128: A is signed
layout(constant_id = 10) const uint kFlipB = 0;  // 128: B was unsigned before it was packed
layout(constant_id = 11) const uint kZeroA = 0;  // zero points: 0: none, 1: one, 2: one a row or column
layout(constant_id = 12) const uint kZeroB = 0;
layout(set = 0, binding = 7, std430) readonly buffer Za { uint8_t a_zero[]; };
layout(set = 0, binding = 8, std430) readonly buffer Zb { uint8_t b_zero[]; };
layout(push_constant) uniform P {
  uint m, n, k;     // k: without padding
  uint steps;       // K/16 or, CONV, the channels of a group / 16
  uint lda;         // of a row or pixel, in vec4
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
#ifdef DOT
#extension GL_EXT_spirv_intrinsics : require
// OpSUDotKHR of four signed and four unsigned bytes.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4452)
int packed_dot(uint signed_bytes, uint unsigned_bytes, spirv_literal int format);
#endif

uint unsigned_byte(uint word, uint t) { return (word >> (8 * t)) & 0xffu; }
int signed_byte(uint word, uint t) { return (int(word) << (24 - 8 * t)) >> 24; }

// The rows whose words a lane loads.
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
  uint group = group_number();
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
  uint column = column_group * kLanesN * kColumns + lane % kLanesN;
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
    column_of[j] = min(column + j * kLanesN, n - 1);
  }
#ifdef CONV
  int y0[kOwn], x0[kOwn];
  uvec4 outside = uvec4((kZeroA != 0 ? uint(a_zero[0]) ^ kFlipA : kFlipA) * 0x01010101u);
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
  for (uint tap = 0; tap < kernel_h * kernel_w; ++tap) {
    uint from[kOwn];
    bool inside[kOwn];
    [[unroll]] for (uint i = 0; i < kOwn; ++i) {
      uint y = uint(y0[i] + int(tap / kernel_w * dilation_h)), x = uint(x0[i] + int(tap % kernel_w * dilation_w));
      inside[i] = y < in_h && x < in_w;
      from[i] = at_a[i] + (inside[i] ? (y * in_w + x) * lda : 0);
    }
#else
  {
#define from at_a
#endif
    for (uint step16 = 0; step16 < steps; ++step16) {
      uvec4 own[kOwn], right[kColumns];
      [[unroll]] for (uint i = 0; i < kOwn; ++i) {
        own[i] = load_a(from[i] + step16) ^ (kFlipA * 0x01010101u);
#ifdef CONV
        own[i] = inside[i] ? own[i] : outside;
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
    }
  }

  int sum_of_row[kRows], za[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    sum_of_row[i] = kSumsOfA ? OF_ROW(sum_a, i) : 0;
    za[i] = int(kFlipA);
    if (kZeroA == 2) za[i] = int(uint(a_zero[batch * m + min(row + i, m - 1)]) ^ kFlipA);
    if (kZeroA == 1) za[i] = i == 0 ? int(uint(a_zero[0]) ^ kFlipA) : za[0];
  }
  Requantization r = requantization();
  uint base_c = outer * batch_c[0] + inner * batch_c[1];
  [[unroll]] for (uint j = 0; j < kColumns; ++j) {
    uint here = column + j * kLanesN;
    if (here < n) {
      uint channel = inner * batch_channels + here;
      set_channel(r, channel, scale_step);
      int zb = -int(kFlipB);
      if (kZeroB != 0) zb = signed_byte(uint(b_zero[kZeroB == 1 ? 0 : channel]) ^ kFlipB, 0);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        if (row + i < m) {
          int sum = acc[i][j] - za[i] * sum_b[j] - zb * sum_of_row[i] + int(k) * za[i] * zb;
          store_sum(base_c + (row + i) * ldc + here, sum, r, alpha, beta);
        }
    }
  }
}
