#version 450
#extension GL_GOOGLE_include_directive : require
// C = epilogue(A B), one register tile of kRows x kColumns per invocation; kLanesN lanes run along N, the others of
// the workgroup along M. A lane's columns are groups of four, kLanesN groups apart.
// A is [M,K] or, TRANSPOSED_A, [K,M]; B is [K,N] or, TRANSPOSED_B, [N,K]; the contiguous extents are multiples of
// four, so that a step of four along k loads whole vec4s in either layout. Rows and columns beyond the edges are
// clamped when loaded and not stored.
// SUBGROUP: the workgroup is one subgroup of kLanesN lanes, all of them along N, and kRows a multiple of kLanesN.
// variants: gemm_{nn|nt TRANSPOSED_B|tn TRANSPOSED_A|tt TRANSPOSED_A TRANSPOSED_B}_buffer
// variants: gemm_{nn|nt TRANSPOSED_B|tn TRANSPOSED_A|tt TRANSPOSED_A TRANSPOSED_B}_texel TEXEL
// variants: gemm_{nn|nt TRANSPOSED_B|tn TRANSPOSED_A|tt TRANSPOSED_A TRANSPOSED_B}_subgroup TEXEL SUBGROUP
#include "common.glsl"
#include "functions.glsl"
#define SIXTEEN_BITS 1
#include "load.glsl"
#include "epilogue.glsl"
#include "gemm.glsl"
layout(constant_id = 1) const uint kRows = 8;     // with TRANSPOSED_A a multiple of four
layout(constant_id = 2) const uint kColumns = 8;  // a multiple of four
layout(constant_id = 3) const uint kLanesN = 8;
layout(constant_id = 4) const uint kForm = 0;     // 1: n is a multiple of four and the bias, if any, lies along it
const uint kVec4s = kColumns / 4;

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
  Bases base = bases_of(batch);
  uint column = (column_group * kLanesN * kVec4s + lane % kLanesN) * 4;
#ifndef SUBGROUP
  if (row >= m || column >= n) return;
#endif

  float acc[kRows][kColumns];
  [[unroll]] for (uint i = 0; i < kRows; ++i) [[unroll]] for (uint j = 0; j < kColumns; ++j) acc[i][j] = 0.0;
#ifdef SUBGROUP
  // The vec4s of A that a step needs, distributed over the lanes: number i is row i or, TRANSPOSED_A, four rows at one k.
  const uint kShare = kRows / kLanesN;
  uint at_a[kShare];
  [[unroll]] for (uint i = 0; i < kShare; ++i) {
    uint number = i * kLanesN + gl_SubgroupInvocationID;
#ifdef TRANSPOSED_A
    at_a[i] = base.a + min(row / 4 + number % (kRows / 4), (m - 1) / 4) + number / (kRows / 4) * lda;
#else
    at_a[i] = base.a + min(row + number, m - 1) * lda;
#endif
  }
#elif defined(TRANSPOSED_A)
  uint at_a[kRows / 4];
  [[unroll]] for (uint i = 0; i < kRows / 4; ++i) at_a[i] = base.a + min(row / 4 + i, (m - 1) / 4);
#else
  uint at_a[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) at_a[i] = base.a + min(row + i, m - 1) * lda;
#endif
#ifdef TRANSPOSED_B
  uint at_b[kColumns];
  [[unroll]] for (uint j = 0; j < kColumns; ++j) at_b[j] = base.b + min(column + j / 4 * kLanesN * 4 + j % 4, n - 1) * ldb;
#else
  uint at_b[kVec4s];
  [[unroll]] for (uint j = 0; j < kVec4s; ++j) at_b[j] = base.b + min(column / 4 + j * kLanesN, (n - 1) / 4);
#endif

  for (uint k4 = 0; k4 < k / 4; ++k4) {
    float a[kRows][4];
#ifdef SUBGROUP
    vec4 share[kShare];
    [[unroll]] for (uint i = 0; i < kShare; ++i) {
#ifdef TRANSPOSED_A
      share[i] = load_a(at_a[i] + k4 * 4 * lda);
#else
      share[i] = load_a(at_a[i] + k4);
#endif
    }
    [[unroll]] for (uint t = 0; t < 4; ++t)
      [[unroll]] for (uint i = 0; i < kRows; ++i) {
#ifdef TRANSPOSED_A
        uint number = t * (kRows / 4) + i / 4;
        a[i][t] = subgroupShuffle(share[number / kLanesN][i % 4], number % kLanesN);
#else
        a[i][t] = subgroupShuffle(share[i / kLanesN][t], i % kLanesN);
#endif
      }
#elif defined(TRANSPOSED_A)
    [[unroll]] for (uint t = 0; t < 4; ++t)
      [[unroll]] for (uint i = 0; i < kRows / 4; ++i) {
        vec4 four = load_a(at_a[i] + (k4 * 4 + t) * lda);
        [[unroll]] for (uint c = 0; c < 4; ++c) a[i * 4 + c][t] = four[c];
      }
#else
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      vec4 four = load_a(at_a[i] + k4);
      [[unroll]] for (uint t = 0; t < 4; ++t) a[i][t] = four[t];
    }
#endif
#ifdef TRANSPOSED_B
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      vec4 b = load_b(at_b[j] + k4);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint t = 0; t < 4; ++t) acc[i][j] = fma(a[i][t], b[t], acc[i][j]);
    }
#else
    [[unroll]] for (uint j = 0; j < kVec4s; ++j) {
      vec4 b[4];
      [[unroll]] for (uint t = 0; t < 4; ++t) b[t] = load_b(at_b[j] + (k4 * 4 + t) * ldb);
      [[unroll]] for (uint c = 0; c < 4; ++c)
        [[unroll]] for (uint i = 0; i < kRows; ++i)
          [[unroll]] for (uint t = 0; t < 4; ++t)
            acc[i][j * 4 + c] = fma(a[i][t], b[t][c], acc[i][j * 4 + c]);
    }
#endif
  }

#if defined(TRANSPOSED_A) && !defined(TRANSPOSED_B)
  // Neither operand is padded along k here: a scalar loop over the remainder.
  for (uint kk = k & ~3u; kk < k; ++kk) {
    vec4 a[kRows / 4];
    [[unroll]] for (uint i = 0; i < kRows / 4; ++i)
      a[i] = load_a(base.a + min(row / 4 + i, (m - 1) / 4) + kk * lda);
    [[unroll]] for (uint j = 0; j < kVec4s; ++j) {
      vec4 b = load_b(at_b[j] + kk * ldb);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint c = 0; c < 4; ++c)
          acc[i][j * 4 + c] = fma(a[i / 4][i % 4], b[c], acc[i][j * 4 + c]);
    }
  }
#endif

  [[unroll]] for (uint j = 0; j < kVec4s; ++j) {
    uint first = column + j * kLanesN * 4;
    if (first < n) {
      vec4 bias_here = vec4(0.0);
      if (kForm == 1 && kBias) bias_here = load_bias4((base.bias + first) / 4);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        if (row + i < m) {
          uint at = base.c + (row + i) * ldc + first;
          if (kForm == 1) {
            store_vec4(at / 4, (at + residual_shift) / 4, bias_here,
                       vec4(acc[i][j * 4], acc[i][j * 4 + 1], acc[i][j * 4 + 2], acc[i][j * 4 + 3]), alpha, beta);
          } else {
            [[unroll]] for (uint c = 0; c < 4; ++c)
              if (first + c < n)
                store_result(at + c, at + c + residual_shift, base.bias + (row + i) * bias_row + (first + c) * bias_column,
                             acc[i][j * 4 + c], alpha, beta);
          }
        }
    }
  }
}
