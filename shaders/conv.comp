#version 450
#extension GL_GOOGLE_include_directive : require
// Convolution over [N,H,W,C] as an implicit GEMM: rows are output pixels, columns output channels, K runs over taps and
// groups of four input channels. kLanesN lanes run along channels, the others along pixels.
// Plain: weight [O,KH,KW,C/groups]. TRANSPOSED (the gradient with respect to the data): weight [C,KH,KW,O/groups],
// pixels are ordered by their phase modulo the stride, so that neighbouring lanes use the same taps.
// SUBGROUP: the workgroup is one subgroup, all its lanes along pixels, and kColumns a multiple of its size.
// variants: conv_{buffer|texel TEXEL|subgroup TEXEL SUBGROUP}
// variants: conv_transposed_{buffer|texel TEXEL|subgroup TEXEL SUBGROUP} TRANSPOSED
#include "common.glsl"
#include "functions.glsl"
#define SIXTEEN_BITS 1
#include "load.glsl"
#include "epilogue.glsl"
layout(constant_id = 1) const uint kRows = 8;
layout(constant_id = 2) const uint kColumns = 8;  // a multiple of four
layout(constant_id = 3) const uint kLanesN = 1;
layout(constant_id = 4) const uint kForm = 0;  // 1: no tap meets padding; 2: group_o is a multiple of four
const bool kEveryTapInside = (kForm & 1) != 0;
const bool kWholeVec4s = (kForm & 2) != 0;
layout(push_constant) uniform P {
  uint pixels;                  // TRANSPOSED: with the output's extents rounded up to multiples of the stride
  uint out_h, out_w, in_h, in_w;
  uint in_c4;                   // over all groups
  uint group_c4, group_o, out_c;
  uint kernel_h, kernel_w, stride_h, stride_w;
  int pad_h, pad_w;
  uint dilation_h, dilation_w;
  uint row_tiles, column_groups;
  float alpha, beta;
};

void main() {
  uint number = group_index();
  uint column_group = number % column_groups;
  number /= column_groups;
  uint row_tile = number % row_tiles;
  uint group = number / row_tiles;
  if (group >= out_c / group_o) return;
  uint lane = gl_LocalInvocationID.x;
  uint lanes_m = gl_WorkGroupSize.x / kLanesN;
  uint first = row_tile * lanes_m * kRows + lane / kLanesN;
  uint column = (column_group * kLanesN + lane % kLanesN) * kColumns;
#ifndef SUBGROUP
  if (column >= group_o || first >= pixels) return;
#endif

  int y0[kRows], x0[kRows];
  uint image[kRows], at_out[kRows];
  bool exists[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint p = first + i * lanes_m;
    exists[i] = p < pixels;
    p = min(p, pixels - 1);
#ifdef TRANSPOSED
    uint steps_h = (out_h + stride_h - 1) / stride_h, steps_w = (out_w + stride_w - 1) / stride_w;
    uint x = p % steps_w;
    uint q = p / steps_w;
    uint y = q % steps_h;
    q /= steps_h;
    uint images = pixels / (steps_h * steps_w * stride_h * stride_w);
    uint n = q % images;
    q /= images;
    x = x * stride_w + q % stride_w;
    y = y * stride_h + q / stride_w;
    exists[i] = exists[i] && x < out_w && y < out_h;
    y0[i] = int(y) + pad_h;
    x0[i] = int(x) + pad_w;
#else
    uint x = p % out_w;
    uint q = p / out_w;
    uint y = q % out_h;
    uint n = q / out_h;
    y0[i] = int(y * stride_h) - pad_h;
    x0[i] = int(x * stride_w) - pad_w;
#endif
    image[i] = n * in_h * in_w;
    at_out[i] = ((n * out_h + y) * out_w + x) * out_c + group * group_o;
  }

  float acc[kRows][kColumns];
  [[unroll]] for (uint i = 0; i < kRows; ++i) [[unroll]] for (uint j = 0; j < kColumns; ++j) acc[i][j] = 0.0;
  uint taps = kernel_h * kernel_w;
#ifdef TRANSPOSED
  uint o4 = (group_o + 3) / 4;
#endif
#ifdef SUBGROUP
  // The vec4s of the weight that a step needs, distributed over the lanes: number j is output channel j or, TRANSPOSED,
  // four of them at one input channel.
  const uint kLanes = gl_WorkGroupSize.x;
  const uint kShare = kColumns / kLanes;
  uint at_w[kShare];
  [[unroll]] for (uint j = 0; j < kShare; ++j) {
    uint number = j * kLanes + gl_SubgroupInvocationID;
#ifdef TRANSPOSED
    at_w[j] = number / (kColumns / 4) * taps * o4 + min(column / 4 + number % (kColumns / 4), o4 - 1);
#else
    at_w[j] = (group * group_o + min(column + number, group_o - 1)) * taps * group_c4;
#endif
  }
#elif defined(TRANSPOSED)
  uint at_w[kColumns / 4];
  [[unroll]] for (uint j = 0; j < kColumns / 4; ++j) at_w[j] = min(column / 4 + j, o4 - 1);
#else
  uint at_w[kColumns];
  [[unroll]] for (uint j = 0; j < kColumns; ++j)
    at_w[j] = (group * group_o + min(column + j, group_o - 1)) * taps * group_c4;
#endif

  for (uint tap = 0; tap < taps; ++tap) {
    uint ky = tap / kernel_w, kx = tap % kernel_w;
    uint at[kRows];
    bool inside[kRows];
    bool any_inside = false;
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
#ifdef TRANSPOSED
      int y = y0[i] - int(ky * dilation_h), x = x0[i] - int(kx * dilation_w);
      bool meets = y >= 0 && x >= 0 && uint(y) % stride_h == 0 && uint(x) % stride_w == 0;
      uint yy = uint(max(y, 0)) / stride_h, xx = uint(max(x, 0)) / stride_w;
      inside[i] = meets && yy < in_h && xx < in_w;
#else
      uint yy = uint(y0[i] + int(ky * dilation_h)), xx = uint(x0[i] + int(kx * dilation_w));
      inside[i] = kEveryTapInside || (yy < in_h && xx < in_w);
#endif
      any_inside = any_inside || inside[i];
      at[i] = inside[i] ? (image[i] + yy * in_w + xx) * in_c4 + group * group_c4 : 0;
    }
#ifdef SUBGROUP
    any_inside = subgroupAny(any_inside);
#endif
    uint steps = any_inside ? group_c4 : 0;
    for (uint c = 0; c < steps; ++c) {
      vec4 a[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i) {
        a[i] = load_a(at[i] + c);
        if (!kEveryTapInside) a[i] = inside[i] ? a[i] : vec4(0.0);
      }
#ifdef SUBGROUP
      vec4 share[kShare];
      [[unroll]] for (uint j = 0; j < kShare; ++j) {
#ifdef TRANSPOSED
        share[j] = load_b(at_w[j] + ((group * group_c4 + c) * 4 * taps + tap) * o4);
#else
        share[j] = load_b(at_w[j] + tap * group_c4 + c);
#endif
      }
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        vec4 b;
        [[unroll]] for (uint t = 0; t < 4; ++t) {
#ifdef TRANSPOSED
          uint number = t * (kColumns / 4) + j / 4;
          b[t] = subgroupShuffle(share[number / kLanes][j % 4], number % kLanes);
#else
          b[t] = subgroupShuffle(share[j / kLanes][t], j % kLanes);
#endif
        }
        [[unroll]] for (uint i = 0; i < kRows; ++i)
          [[unroll]] for (uint t = 0; t < 4; ++t) acc[i][j] = fma(a[i][t], b[t], acc[i][j]);
      }
#elif defined(TRANSPOSED)
      [[unroll]] for (uint t = 0; t < 4; ++t) {
        uint row = (((group * group_c4 + c) * 4 + t) * taps + tap) * o4;
        [[unroll]] for (uint j = 0; j < kColumns / 4; ++j) {
          vec4 b = load_b(row + at_w[j]);
          [[unroll]] for (uint i = 0; i < kRows; ++i)
            [[unroll]] for (uint d = 0; d < 4; ++d)
              acc[i][j * 4 + d] = fma(a[i][t], b[d], acc[i][j * 4 + d]);
        }
      }
#else
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        vec4 b = load_b(at_w[j] + tap * group_c4 + c);
        [[unroll]] for (uint t = 0; t < 4; ++t)
          [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][j] = fma(a[i][t], b[t], acc[i][j]);
      }
#endif
    }
  }

  [[unroll]] for (uint j = 0; j < kColumns; j += 4) {
    uint first_o = column + j, at_bias = group * group_o + column + j;
    if (first_o < group_o) {
      vec4 bias_here = vec4(0.0);
      if (kWholeVec4s && kBias) bias_here = load_bias4(at_bias / 4);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        if (exists[i]) {
          if (kWholeVec4s) {
            uint at4 = (at_out[i] + first_o) / 4;
            store_vec4(at4, at4, bias_here,
                       vec4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]), alpha, beta);
          } else {
            [[unroll]] for (uint d = 0; d < 4; ++d)
              if (first_o + d < group_o)
                store_result(at_out[i] + first_o + d, at_out[i] + first_o + d, at_bias + d, acc[i][j + d], alpha, beta);
          }
        }
    }
  }
}
