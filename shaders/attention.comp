#version 450
#extension GL_GOOGLE_include_directive : require
// FlashAttention (Dao et al. 2022): a workgroup takes a block of query rows and iterates over tiles of the keys they
// see, with the running maximum and sum of each row; the score matrix is never stored.
// kLanesN lanes run along keys and along the result's columns, the others along rows. A lane has kRows rows; kColumns
// consecutive keys of a tile; kVec4s groups of four result columns, kLanesN groups apart.
// With more than one split a workgroup sees a part of the keys and stores maximum, sum and sum * y for
// attention_merge.comp.
// GRADIENT: accumulates the query gradient in the same way, sum of exp(score - maximum) (grad_y v - grad_y y) k.
// `statistics` receives what attention_grad_keys.comp needs per row: maximum, 1 / sum, grad_y y.
// variants: attention_{float T=float|bool T=uint8_t MASK_BOOL}_{buffer|texel TEXEL}
// variants: attention_grad_rows_{float T=float|bool T=uint8_t MASK_BOOL}_{buffer|texel TEXEL} GRADIENT
#include "common.glsl"
#include "functions.glsl"
#include "load.glsl"
layout(constant_id = 1) const uint kRows = 8;
layout(constant_id = 2) const uint kColumns = 8;  // a multiple of four
layout(constant_id = 3) const uint kLanesN = 8;
layout(constant_id = 4) const uint kVec4s = 2;
#include "attention.glsl"
#ifdef GRADIENT
layout(set = 0, binding = 7, std430) writeonly buffer GQ { float grad_q[]; };
layout(set = 0, binding = 8, std430) readonly buffer Y { float y[]; };
layout(set = 0, binding = 9, std430) writeonly buffer S { float statistics[]; };
#endif
const uint kLanesM = gl_WorkGroupSize.x / kLanesN;
const uint kBlock = kLanesM * kRows;
const uint kKeys = kLanesN * kColumns;
shared float row_values[kBlock * kLanesN];
shared vec4 weights[kBlock * kKeys / 4];

/// Reduces row_values over the lanes of a row to their maximum or sum.
float over_lanes(uint row, bool sum) {
  float result = row_values[row * kLanesN];
  for (uint i = 1; i < kLanesN; ++i) {
    float other = row_values[row * kLanesN + i];
    result = sum ? result + other : max_keep_nan(result, other);
  }
  return result;
}

#ifdef GRADIENT
#define RESULT_VEC4S d4
#define load_result load_b
/// This lane's part of the dot product grad_y y.
float dot_of(uint row, uint lane_n) {
  float sum = 0.0;
  for (uint four = lane_n; four < e4; four += kLanesN) {
    vec4 grad = load_grad(row * e4 + four);
    [[unroll]] for (uint c = 0; c < 4; ++c)
      if (four * 4 + c < e) sum = fma(grad[c], y[row * e + four * 4 + c], sum);
  }
  return sum;
}
#else
#define RESULT_VEC4S e4
#define load_result load_v
#endif

void main() {
  Work work = work_of(group_index(), kBlock);
  uint lane_n = gl_LocalInvocationID.x % kLanesN, lane_m = gl_LocalInvocationID.x / kLanesN;
  uint pair = work.pair, row = work.block * kBlock + lane_m * kRows;
  int end = work.end;

  uint at_q[kRows];
  Query query[kRows];
  float most[kRows], sum[kRows];
  vec4 acc[kRows][kVec4s];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint own = min(row + i, rows - 1);
    at_q[i] = (pair * rows + own) * d4;
    query[i] = query_at(work, own);
    most[i] = -kInfinity;
    sum[i] = 0.0;
    [[unroll]] for (uint f = 0; f < kVec4s; ++f) acc[i][f] = vec4(0.0);
  }
  uint first_vec4 = work.chunk * kVec4s * kLanesN + lane_n;
#ifdef GRADIENT
  float dots[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i)
    row_values[(lane_m * kRows + i) * kLanesN + lane_n] =
        work.outside ? 0.0 : dot_of(pair * rows + min(row + i, rows - 1), lane_n);
  barrier();
  [[unroll]] for (uint i = 0; i < kRows; ++i) dots[i] = over_lanes(lane_m * kRows + i, true);
  barrier();
#endif

  for (int t0 = work.begin; t0 < end; t0 += int(kKeys)) {
    int t = t0 + int(lane_n * kColumns);
    float s[kRows][kColumns];
    uint at_k[kColumns];
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      at_k[j] = (pair * keys + uint(min(t + int(j), end - 1))) * d4;
      [[unroll]] for (uint i = 0; i < kRows; ++i) s[i][j] = 0.0;
    }
    for (uint d = 0; d < d4; ++d) {
      vec4 q[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i) q[i] = load_a(at_q[i] + d);
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        vec4 k = load_b(at_k[j] + d);
        [[unroll]] for (uint i = 0; i < kRows; ++i)
          [[unroll]] for (uint c = 0; c < 4; ++c) s[i][j] = fma(q[i][c], k[c], s[i][j]);
      }
    }
#ifdef GRADIENT
    float grad[kRows][kColumns];
    [[unroll]] for (uint i = 0; i < kRows; ++i)
      [[unroll]] for (uint j = 0; j < kColumns; ++j) grad[i][j] = -dots[i];
    for (uint f = 0; f < e4; ++f) {
      vec4 g[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i) g[i] = load_grad((pair * rows + min(row + i, rows - 1)) * e4 + f);
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        vec4 v = load_v((pair * keys + uint(min(t + int(j), end - 1))) * e4 + f);
        [[unroll]] for (uint i = 0; i < kRows; ++i)
          [[unroll]] for (uint c = 0; c < 4; ++c) grad[i][j] = fma(g[i][c], v[c], grad[i][j]);
      }
    }
    [[unroll]] for (uint i = 0; i < kRows; ++i)
      [[unroll]] for (uint j = 0; j < kColumns; ++j) grad[i][j] *= slope_of(s[i][j]);
#endif
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      float best = -kInfinity;
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        s[i][j] = score_of(s[i][j], query[i], t + int(j), end);
        best = max_keep_nan(best, s[i][j]);
      }
      row_values[(lane_m * kRows + i) * kLanesN + lane_n] = best;
    }
    barrier();
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      float next = max_keep_nan(most[i], over_lanes(lane_m * kRows + i, false));
      float base = next == -kInfinity ? 0.0 : next;
      float factor = exact_exp(most[i] - base);
      most[i] = next;
      sum[i] *= factor;
      [[unroll]] for (uint f = 0; f < kVec4s; ++f) acc[i][f] *= factor;
      [[unroll]] for (uint j = 0; j < kColumns; j += 4) {
        vec4 weight = vec4(exact_exp(s[i][j] - base), exact_exp(s[i][j + 1] - base), exact_exp(s[i][j + 2] - base),
                           exact_exp(s[i][j + 3] - base));
        sum[i] += weight.x + weight.y + weight.z + weight.w;
#ifdef GRADIENT
        weight *= vec4(grad[i][j], grad[i][j + 1], grad[i][j + 2], grad[i][j + 3]);
#endif
        weights[((lane_m * kRows + i) * kKeys + lane_n * kColumns + j) / 4] = weight;
      }
    }
    barrier();
    for (uint k4 = 0; k4 < kKeys / 4; ++k4) {
      vec4 weight[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i) weight[i] = weights[(lane_m * kRows + i) * kKeys / 4 + k4];
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        int key = t0 + int(k4 * 4 + c);
        uint at_v = (pair * keys + uint(min(key, end - 1))) * RESULT_VEC4S;
        [[unroll]] for (uint f = 0; f < kVec4s; ++f) {
          vec4 v = load_result(at_v + min(first_vec4 + f * kLanesN, RESULT_VEC4S - 1));
          if (key >= end) v = vec4(0.0);  // the last value may be infinite, and 0 * inf is NaN
          [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][f] = fma(vec4(weight[i][c]), v, acc[i][f]);
        }
      }
    }
  }

  barrier();
  [[unroll]] for (uint i = 0; i < kRows; ++i) row_values[(lane_m * kRows + i) * kLanesN + lane_n] = sum[i];
  barrier();
  if (work.outside) return;
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    if (row + i >= rows) continue;
    float total = over_lanes(lane_m * kRows + i, true);
#ifdef GRADIENT
    uint at = pair * rows + row + i;
    float inverse = total == 0.0 ? 0.0 : 1.0 / total;
    if (lane_n == 0 && work.chunk == 0) {
      statistics[at * 3] = most[i] == -kInfinity ? 0.0 : most[i];
      statistics[at * 3 + 1] = inverse;
      statistics[at * 3 + 2] = dots[i];
    }
    [[unroll]] for (uint f = 0; f < kVec4s; ++f)
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        uint column = (first_vec4 + f * kLanesN) * 4 + c;
        if (column < d) grad_q[at * d + column] = acc[i][f][c] * inverse * scale;
      }
#else
    uint at = kParts ? ((pair * rows + row + i) * splits + work.split) * (e + 2) + 2 : (pair * rows + row + i) * e;
    float inverse = kParts ? 1.0 : (total == 0.0 ? 0.0 : 1.0 / total);
    if (kParts && lane_n == 0 && work.chunk == 0) {
      y[at - 2] = most[i];
      y[at - 1] = total;
    }
    [[unroll]] for (uint f = 0; f < kVec4s; ++f)
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        uint column = (first_vec4 + f * kLanesN) * 4 + c;
        if (column < e) y[at + column] = acc[i][f][c] * inverse;
      }
#endif
  }
}
