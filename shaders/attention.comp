#version 450
#extension GL_GOOGLE_include_directive : require
// Attention (attention.glsl has the equations): a workgroup takes a block of query rows and iterates over tiles of the
// keys they see.
// kLanesN lanes run along keys and along the result's columns, the others along rows. A lane has kRows rows; kColumns
// consecutive keys of a tile; kVec4s groups of four result columns, kLanesN groups apart.
// With more than one split a workgroup sees a part of the keys and stores maximum, sum and sum * y for
// attention_merge.comp.
// GRADIENT: accumulates grad_q in the same way, sum of exp(score - most) (grad_y v - D) slope k. `statistics` receives
// what attention_grad_keys.comp needs per row: maximum, 1 / sum, D.
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

uint lane_n() { return gl_LocalInvocationID.x % kLanesN; }
/// The i-th row of this lane, in the block.
uint block_row(uint i) { return gl_LocalInvocationID.x / kLanesN * kRows + i; }
/// The first of this lane's vec4s of a result row.
uint first_vec4(Work work) { return work.chunk * kVec4s * kLanesN + lane_n(); }

/// Shares a value of this lane with the lanes of the same row.
void share(uint i, float value) { row_values[block_row(i) * kLanesN + lane_n()] = value; }
/// The sum or maximum of the shared values of the lanes of a row.
float over_lanes(uint i, bool sum) {
  uint row = block_row(i);
  float result = row_values[row * kLanesN];
  for (uint lane = 1; lane < kLanesN; ++lane) {
    float other = row_values[row * kLanesN + lane];
    result = sum ? result + other : max_keep_nan(result, other);
  }
  return result;
}

/// s = q k
void multiply_keys(uint row[kRows], uint key[kColumns], out float s[kRows][kColumns]) {
  uint at_q[kRows], at_k[kColumns];
  [[unroll]] for (uint i = 0; i < kRows; ++i) at_q[i] = row[i] * d4;
  [[unroll]] for (uint j = 0; j < kColumns; ++j) {
    at_k[j] = key[j] * d4;
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
}

/// Products become scores; shares this lane's greatest score of each row.
void score_keys(Query query[kRows], int key, int end, inout float s[kRows][kColumns]) {
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    float best = -kInfinity;
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      s[i][j] = score_of(s[i][j], query[i], key + int(j), end);
      best = max_keep_nan(best, s[i][j]);
    }
    share(i, best);
  }
}

/// One step of the online softmax of row i: raises the running maximum, rescales the running sum and result, and adds
/// the exponentials of the scores, which are returned in s, to the sum.
void soften(uint i, inout float most, inout float sum, inout vec4 acc[kVec4s], inout float s[kColumns]) {
  float next = max_keep_nan(most, over_lanes(i, false));
  float base = base_of(next);
  float factor = exact_exp(most - base);
  most = next;
  sum *= factor;
  [[unroll]] for (uint f = 0; f < kVec4s; ++f) acc[f] *= factor;
  [[unroll]] for (uint j = 0; j < kColumns; j += 4) {
    [[unroll]] for (uint c = 0; c < 4; ++c) s[j + c] = exact_exp(s[j + c] - base);
    sum += s[j] + s[j + 1] + s[j + 2] + s[j + 3];
  }
}

void store_weights(uint i, float s[kColumns]) {
  [[unroll]] for (uint j = 0; j < kColumns; j += 4)
    weights[(block_row(i) * kKeys + lane_n() * kColumns + j) / 4] = vec4(s[j], s[j + 1], s[j + 2], s[j + 3]);
}

#ifdef GRADIENT
#define RESULT_VEC4S d4
#define load_result load_b
#else
#define RESULT_VEC4S e4
#define load_result load_v
#endif
/// acc += weights of a tile of keys times their values, or for the gradient times the keys themselves.
void accumulate(Work work, int tile, inout vec4 acc[kRows][kVec4s]) {
  uint first = first_vec4(work);
  for (uint k4 = 0; k4 < kKeys / 4; ++k4) {
    vec4 weight[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) weight[i] = weights[block_row(i) * kKeys / 4 + k4];
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      int key = tile + int(k4 * 4 + c);
      uint at_v = (work.pair * keys + uint(min(key, work.end - 1))) * RESULT_VEC4S;
      [[unroll]] for (uint f = 0; f < kVec4s; ++f) {
        vec4 v = load_result(at_v + min(first + f * kLanesN, RESULT_VEC4S - 1));
        if (key >= work.end) v = vec4(0.0);  // the last value may be infinite, and 0 * inf is NaN
        [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][f] = fma(vec4(weight[i][c]), v, acc[i][f]);
      }
    }
  }
}

#ifdef GRADIENT
/// This lane's part of D = grad_y y.
float dot_of(uint row) {
  float sum = 0.0;
  for (uint four = lane_n(); four < e4; four += kLanesN) {
    vec4 grad = load_grad(row * e4 + four);
    [[unroll]] for (uint c = 0; c < 4; ++c)
      if (four * 4 + c < e) sum = fma(grad[c], y[row * e + four * 4 + c], sum);
  }
  return sum;
}

/// grad = (grad_y v - D) slope, from s = q k
void multiply_values(uint row[kRows], uint key[kColumns], float dots[kRows], float s[kRows][kColumns],
                     out float grad[kRows][kColumns]) {
  [[unroll]] for (uint i = 0; i < kRows; ++i)
    [[unroll]] for (uint j = 0; j < kColumns; ++j) grad[i][j] = -dots[i];
  for (uint f = 0; f < e4; ++f) {
    vec4 g[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) g[i] = load_grad(row[i] * e4 + f);
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      vec4 v = load_v(key[j] * e4 + f);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint c = 0; c < 4; ++c) grad[i][j] = fma(g[i][c], v[c], grad[i][j]);
    }
  }
  [[unroll]] for (uint i = 0; i < kRows; ++i)
    [[unroll]] for (uint j = 0; j < kColumns; ++j) grad[i][j] *= slope_of(s[i][j]);
}

void store(Work work, uint row, float most, float total, float dot_y, vec4 acc[kVec4s]) {
  uint at = work.pair * rows + row, first = first_vec4(work);
  float inverse = inverse_of(total);
  if (lane_n() == 0 && work.chunk == 0) {
    statistics[at * 3] = base_of(most);
    statistics[at * 3 + 1] = inverse;
    statistics[at * 3 + 2] = dot_y;
  }
  [[unroll]] for (uint f = 0; f < kVec4s; ++f)
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint column = (first + f * kLanesN) * 4 + c;
      if (column < d) grad_q[at * d + column] = acc[f][c] * inverse * scale;
    }
}
#else
void store(Work work, uint row, float most, float total, vec4 acc[kVec4s]) {
  uint at = store_statistics(work, row, most, total, lane_n() == 0), first = first_vec4(work);
  float inverse = kParts ? 1.0 : inverse_of(total);
  [[unroll]] for (uint f = 0; f < kVec4s; ++f)
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint column = (first + f * kLanesN) * 4 + c;
      if (column < e) y[at + column] = acc[f][c] * inverse;
    }
}
#endif

void main() {
  Work work = work_of(group_index(), kBlock);
  uint first_row = work.block * kBlock + block_row(0);
  uint row[kRows];  // past the end: the last one again
  Query query[kRows];
  float most[kRows], sum[kRows];
  vec4 acc[kRows][kVec4s];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint own = min(first_row + i, rows - 1);
    row[i] = work.pair * rows + own;
    query[i] = query_at(work, own);
    most[i] = -kInfinity;
    sum[i] = 0.0;
    [[unroll]] for (uint f = 0; f < kVec4s; ++f) acc[i][f] = vec4(0.0);
  }
#ifdef GRADIENT
  float dots[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) share(i, work.outside ? 0.0 : dot_of(row[i]));
  barrier();
  [[unroll]] for (uint i = 0; i < kRows; ++i) dots[i] = over_lanes(i, true);
  barrier();
#endif

  for (int tile = work.begin; tile < work.end; tile += int(kKeys)) {
    int first_key = tile + int(lane_n() * kColumns);
    uint key[kColumns];
    [[unroll]] for (uint j = 0; j < kColumns; ++j)
      key[j] = work.pair * keys + uint(min(first_key + int(j), work.end - 1));
    float s[kRows][kColumns];
    multiply_keys(row, key, s);
#ifdef GRADIENT
    float grad[kRows][kColumns];
    multiply_values(row, key, dots, s, grad);
#endif
    score_keys(query, first_key, work.end, s);
    barrier();
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      soften(i, most[i], sum[i], acc[i], s[i]);
#ifdef GRADIENT
      [[unroll]] for (uint j = 0; j < kColumns; ++j) s[i][j] *= grad[i][j];
#endif
      store_weights(i, s[i]);
    }
    barrier();
    accumulate(work, tile, acc);
  }

  barrier();
  [[unroll]] for (uint i = 0; i < kRows; ++i) share(i, sum[i]);
  barrier();
  if (work.outside) return;
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    if (first_row + i >= rows) continue;
    float total = over_lanes(i, true);
#ifdef GRADIENT
    store(work, first_row + i, most[i], total, dots[i], acc[i]);
#else
    store(work, first_row + i, most[i], total, acc[i]);
#endif
  }
}
