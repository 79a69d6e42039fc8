#version 450
#extension GL_GOOGLE_include_directive : require
// Attention as in attention.comp (equations in attention.glsl), but each lane has its own kRows query rows with their
// maxima, sums and results, so that lanes exchange only loads: keys and values, the same for all lanes, are fetched
// once, each lane a part of a tile of kKeys, and shuffled from there. The workgroup is one subgroup of kLanes lanes;
// kKeys is a multiple of kLanes. A workgroup computes kVec4s groups of four result columns.
// variants: attention_{float T=float|bool T=uint8_t MASK_BOOL}_subgroup TEXEL SUBGROUP
#include "common.glsl"
#include "functions.glsl"
#include "load.glsl"
layout(constant_id = 1) const uint kRows = 2;
layout(constant_id = 2) const uint kKeys = 16;
layout(constant_id = 3) const uint kLanes = 8;
layout(constant_id = 4) const uint kVec4s = 16;
#include "attention.glsl"
const uint kLoads = kKeys / kLanes;

/// s = q k, with the keys shuffled from the lanes that load them.
void multiply_keys(uint row[kRows], uint own_key[kLoads], out float s[kRows][kKeys]) {
  uint at_q[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    at_q[i] = row[i] * d4;
    [[unroll]] for (uint j = 0; j < kKeys; ++j) s[i][j] = 0.0;
  }
  for (uint d = 0; d < d4; ++d) {
    vec4 q[kRows], share[kLoads];
    [[unroll]] for (uint i = 0; i < kRows; ++i) q[i] = load_a(at_q[i] + d);
    [[unroll]] for (uint l = 0; l < kLoads; ++l) share[l] = load_b(own_key[l] * d4 + d);
    [[unroll]] for (uint j = 0; j < kKeys; ++j)
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        float k = subgroupShuffle(share[j / kLanes][c], j % kLanes);
        [[unroll]] for (uint i = 0; i < kRows; ++i) s[i][j] = fma(q[i][c], k, s[i][j]);
      }
  }
}

/// One step of the online softmax of a row: products become scores, then exp(score - most), which are added to the
/// rescaled sum. Returns the factor for the result.
float soften(Query query, int key, int end, inout float most, inout float sum, inout float s[kKeys]) {
  float next = most;
  [[unroll]] for (uint j = 0; j < kKeys; ++j) {
    s[j] = score_of(s[j], query, key + int(j), end);
    next = max_keep_nan(next, s[j]);
  }
  float base = base_of(next);
  float factor = exact_exp(most - base);
  most = next;
  sum *= factor;
  [[unroll]] for (uint j = 0; j < kKeys; ++j) {
    s[j] = exact_exp(s[j] - base);
    sum += s[j];
  }
  return factor;
}

/// acc = factor acc + weights times values, which are shuffled from the lanes that load them.
void accumulate(Work work, int tile, uint own_key[kLoads], float weights[kRows][kKeys], float factor[kRows],
                inout vec4 acc[kRows][kVec4s]) {
  uint lane = gl_SubgroupInvocationID, first_vec4 = work.chunk * kVec4s;
  [[unroll]] for (uint f = 0; f < kVec4s; ++f) {
    vec4 share[kLoads];
    [[unroll]] for (uint l = 0; l < kLoads; ++l) {
      bool beyond = tile + int(l * kLanes + lane) >= work.end;  // 0 * inf is NaN
      share[l] = beyond ? vec4(0.0) : load_v(own_key[l] * e4 + min(first_vec4 + f, e4 - 1));
    }
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      float total[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i) total[i] = acc[i][f][c] * factor[i];
      [[unroll]] for (uint j = 0; j < kKeys; ++j) {
        float v = subgroupShuffle(share[j / kLanes][c], j % kLanes);
        [[unroll]] for (uint i = 0; i < kRows; ++i) total[i] = fma(weights[i][j], v, total[i]);
      }
      [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][f][c] = total[i];
    }
  }
}

void store(Work work, uint row, float most, float sum, vec4 acc[kVec4s]) {
  uint at = store_statistics(work, row, most, sum, true), first_vec4 = work.chunk * kVec4s;
  float inverse = kParts ? 1.0 : inverse_of(sum);
  [[unroll]] for (uint f = 0; f < kVec4s; ++f)
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint column = (first_vec4 + f) * 4 + c;
      if (column < e) y[at + column] = acc[f][c] * inverse;
    }
}

void main() {
  Work work = work_of(group_index(), kRows * kLanes);
  if (work.outside) return;
  uint lane = gl_SubgroupInvocationID, first_row = work.block * kRows * kLanes + lane;
  uint row[kRows];  // past the end: the last one again
  Query query[kRows];
  float most[kRows], sum[kRows];
  vec4 acc[kRows][kVec4s];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint own = min(first_row + i * kLanes, rows - 1);
    row[i] = work.pair * rows + own;
    query[i] = query_at(work, own);
    most[i] = -kInfinity;
    sum[i] = 0.0;
    [[unroll]] for (uint f = 0; f < kVec4s; ++f) acc[i][f] = vec4(0.0);
  }

  for (int tile = work.begin; tile < work.end; tile += int(kKeys)) {
    uint own_key[kLoads];
    [[unroll]] for (uint l = 0; l < kLoads; ++l)
      own_key[l] = work.pair * keys + uint(min(tile + int(l * kLanes + lane), work.end - 1));
    float s[kRows][kKeys], factor[kRows];
    multiply_keys(row, own_key, s);
    [[unroll]] for (uint i = 0; i < kRows; ++i)
      factor[i] = soften(query[i], tile, work.end, most[i], sum[i], s[i]);
    accumulate(work, tile, own_key, s, factor, acc);
  }

  [[unroll]] for (uint i = 0; i < kRows; ++i)
    if (first_row + i * kLanes < rows) store(work, first_row + i * kLanes, most[i], sum[i], acc[i]);
}
