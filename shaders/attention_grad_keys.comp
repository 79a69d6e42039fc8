#version 450
#extension GL_GOOGLE_include_directive : require
// Gradients of attention's keys and values (attention.glsl has the equations): a workgroup takes a block of keys and
// iterates over tiles of the query rows. `statistics` of attention.comp has maximum, 1 / sum and D of each row.
// kLanesN lanes run along query rows and along the results' columns, the others along keys. A lane has kRows keys;
// kColumns consecutive rows of a tile; kVec4s groups of four columns of both results, kLanesN groups apart.
// variants: attention_grad_keys_{float T=float|bool T=uint8_t MASK_BOOL}_{buffer|texel TEXEL} GRADIENT
#include "common.glsl"
#include "functions.glsl"
#include "load.glsl"
layout(constant_id = 1) const uint kRows = 4;
layout(constant_id = 2) const uint kColumns = 4;  // a multiple of four
layout(constant_id = 3) const uint kLanesN = 8;
layout(constant_id = 4) const uint kVec4s = 2;
#include "attention.glsl"
layout(set = 0, binding = 7, std430) writeonly buffer GK { float grad_k[]; };
layout(set = 0, binding = 8, std430) writeonly buffer GV { float grad_v[]; };
layout(set = 0, binding = 9, std430) readonly buffer S { float statistics[]; };
const uint kLanesM = gl_WorkGroupSize.x / kLanesN;
const uint kBlock = kLanesM * kRows;
const uint kTile = kLanesN * kColumns;
shared vec4 weights[kBlock * kTile / 4];
shared vec4 grad_scores[kBlock * kTile / 4];

/// Whether any row of a tile sees any key of the block; the same in all lanes.
bool is_visible(Work work, uint first_row, int first_key, int end_key) {
  uint last_row = min(first_row + kTile, rows) - 1;
  if (first_row / queries != last_row / queries) return true;
  KeyRange visible =
      visible_keys(int(first_row % queries), int(last_row % queries), work.position, work.key_count);
  return visible.begin < end_key && visible.end > first_key;
}

uint lane_n() { return gl_LocalInvocationID.x % kLanesN; }
/// The i-th key of this lane, in the block.
uint block_key(uint i) { return gl_LocalInvocationID.x / kLanesN * kRows + i; }

/// s = q k
void multiply_queries(uint key[kRows], uint row[kColumns], inout float s[kRows][kColumns]) {
  for (uint f = 0; f < d4; ++f) {
    vec4 k[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) k[i] = load_b(key[i] * d4 + f);
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      vec4 q = load_a(row[j] * d4 + f);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint c = 0; c < 4; ++c) s[i][j] = fma(q[c], k[i][c], s[i][j]);
    }
  }
}

/// grad = grad_y v
void multiply_grads(uint key[kRows], uint row[kColumns], inout float grad[kRows][kColumns]) {
  for (uint f = 0; f < e4; ++f) {
    vec4 v[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) v[i] = load_v(key[i] * e4 + f);
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      vec4 g = load_grad(row[j] * e4 + f);
      [[unroll]] for (uint i = 0; i < kRows; ++i)
        [[unroll]] for (uint c = 0; c < 4; ++c) grad[i][j] = fma(g[c], v[i][c], grad[i][j]);
    }
  }
}

/// Products of one row become weights, in s, and gradients of scores, in grad; column j of both.
void weigh_row(Work work, uint first_key, uint row, bool outside, uint j, inout float s[kRows][kColumns],
               inout float grad[kRows][kColumns]) {
  Query query = query_at(work, row - work.pair * rows);
  float base = statistics[row * 3], inverse = statistics[row * 3 + 1], dot_y = statistics[row * 3 + 2];
  if (outside) inverse = 0.0;
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    float slope = slope_of(s[i][j]);
    s[i][j] = exact_exp(score_of(s[i][j], query, int(first_key + i), int(keys)) - base) * inverse;
    grad[i][j] = s[i][j] * (grad[i][j] - dot_y) * slope;
  }
}

void store_weights(float s[kRows][kColumns], float grad[kRows][kColumns]) {
  [[unroll]] for (uint i = 0; i < kRows; ++i)
    [[unroll]] for (uint j = 0; j < kColumns; j += 4) {
      uint offset = (block_key(i) * kTile + lane_n() * kColumns + j) / 4;
      weights[offset] = vec4(s[i][j], s[i][j + 1], s[i][j + 2], s[i][j + 3]);
      grad_scores[offset] = vec4(grad[i][j], grad[i][j + 1], grad[i][j + 2], grad[i][j + 3]);
    }
}

/// acc_k += grad_scores q, acc_v += weights grad_y, over a tile of rows.
void accumulate(Work work, uint tile, uint first_vec4, inout vec4 acc_k[kRows][kVec4s],
                inout vec4 acc_v[kRows][kVec4s]) {
  for (uint r4 = 0; r4 < kTile / 4; ++r4) {
    vec4 weight[kRows], grad_score[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      weight[i] = weights[block_key(i) * kTile / 4 + r4];
      grad_score[i] = grad_scores[block_key(i) * kTile / 4 + r4];
    }
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint from = work.pair * rows + min(tile + r4 * 4 + c, rows - 1);
      [[unroll]] for (uint f = 0; f < kVec4s; ++f) {
        vec4 q = load_a(from * d4 + min(first_vec4 + f * kLanesN, d4 - 1));
        vec4 g = load_grad(from * e4 + min(first_vec4 + f * kLanesN, e4 - 1));
        [[unroll]] for (uint i = 0; i < kRows; ++i) {
          acc_k[i][f] = fma(vec4(grad_score[i][c]), q, acc_k[i][f]);
          acc_v[i][f] = fma(vec4(weight[i][c]), g, acc_v[i][f]);
        }
      }
    }
  }
}

void store(uint key, uint first_vec4, vec4 acc_k[kVec4s], vec4 acc_v[kVec4s]) {
  [[unroll]] for (uint f = 0; f < kVec4s; ++f)
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint column = (first_vec4 + f * kLanesN) * 4 + c;
      if (column < d) grad_k[key * d + column] = acc_k[f][c] * scale;
      if (column < e) grad_v[key * e + column] = acc_v[f][c];
    }
}

void main() {
  uint group = group_index();
  uint chunk = group % chunks;
  group /= chunks;
  uint block = group % blocks * kBlock, pair = group / blocks;
  if (pair / groups >= batch) return;  // the whole workgroup
  Work work;
  work.pair = pair;
  work.batch_index = pair / groups;
  work.key_count = key_count_of(work.batch_index);
  work.position = position_of(work.batch_index);
  uint first_key = block + block_key(0), first_vec4 = chunk * kVec4s * kLanesN + lane_n();

  uint key[kRows];  // past the end: the last one again
  vec4 acc_k[kRows][kVec4s], acc_v[kRows][kVec4s];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    key[i] = pair * keys + min(first_key + i, keys - 1);
    [[unroll]] for (uint f = 0; f < kVec4s; ++f) acc_k[i][f] = acc_v[i][f] = vec4(0.0);
  }

  for (uint tile = 0; tile < rows; tile += kTile) {
    if (!is_visible(work, tile, int(block), int(min(block + kBlock, keys)))) continue;
    uint first_row = tile + lane_n() * kColumns;
    uint row[kColumns];
    float s[kRows][kColumns], grad[kRows][kColumns];
    [[unroll]] for (uint j = 0; j < kColumns; ++j) {
      row[j] = pair * rows + min(first_row + j, rows - 1);
      [[unroll]] for (uint i = 0; i < kRows; ++i) s[i][j] = grad[i][j] = 0.0;
    }
    multiply_queries(key, row, s);
    multiply_grads(key, row, grad);
    [[unroll]] for (uint j = 0; j < kColumns; ++j)
      weigh_row(work, first_key, row[j], first_row + j >= rows, j, s, grad);
    store_weights(s, grad);
    barrier();
    accumulate(work, tile, first_vec4, acc_k, acc_v);
    barrier();
  }

  [[unroll]] for (uint i = 0; i < kRows; ++i)
    if (first_key + i < keys) store(key[i], first_vec4, acc_k[i], acc_v[i]);
}
