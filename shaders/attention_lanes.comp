#version 450
#extension GL_GOOGLE_include_directive : require
// FlashAttention as in attention.comp, but each lane has its own kRows query rows with their maxima, sums and results,
// so that lanes exchange only loads: keys and values, the same for all lanes, are fetched once, each lane a part of a
// tile of kKeys, and shuffled from there. The workgroup is one subgroup of kLanes lanes; kKeys is a multiple of kLanes.
// A workgroup computes kVec4s groups of four result columns.
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

void main() {
  Work work = work_of(group_index(), kRows * kLanes);
  if (work.outside) return;
  uint lane = gl_SubgroupInvocationID;
  uint row = work.block * kRows * kLanes + lane;
  uint at_q[kRows];
  Query query[kRows];
  float most[kRows], sum[kRows];
  vec4 acc[kRows][kVec4s];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint own = min(row + i * kLanes, rows - 1);
    at_q[i] = (work.pair * rows + own) * d4;
    query[i] = query_at(work, own);
    most[i] = -kInfinity;
    sum[i] = 0.0;
    [[unroll]] for (uint f = 0; f < kVec4s; ++f) acc[i][f] = vec4(0.0);
  }
  uint first_vec4 = work.chunk * kVec4s;

  for (int t = work.begin; t < work.end; t += int(kKeys)) {
    uint own_key[kLoads];
    [[unroll]] for (uint l = 0; l < kLoads; ++l)
      own_key[l] = work.pair * keys + uint(min(t + int(l * kLanes + lane), work.end - 1));
    float s[kRows][kKeys];
    [[unroll]] for (uint i = 0; i < kRows; ++i) [[unroll]] for (uint j = 0; j < kKeys; ++j) s[i][j] = 0.0;
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
    float factor[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      float next = most[i];
      [[unroll]] for (uint j = 0; j < kKeys; ++j) {
        s[i][j] = score_of(s[i][j], query[i], t + int(j), work.end);
        next = max_keep_nan(next, s[i][j]);
      }
      float base = next == -kInfinity ? 0.0 : next;
      factor[i] = exact_exp(most[i] - base);
      most[i] = next;
      sum[i] *= factor[i];
      [[unroll]] for (uint j = 0; j < kKeys; ++j) {
        s[i][j] = exact_exp(s[i][j] - base);
        sum[i] += s[i][j];
      }
    }
    [[unroll]] for (uint f = 0; f < kVec4s; ++f) {
      vec4 share[kLoads];
      [[unroll]] for (uint l = 0; l < kLoads; ++l) {
        bool beyond = t + int(l * kLanes + lane) >= work.end;  // 0 * inf is NaN
        share[l] = beyond ? vec4(0.0) : load_v(own_key[l] * e4 + min(first_vec4 + f, e4 - 1));
      }
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        float total[kRows];
        [[unroll]] for (uint i = 0; i < kRows; ++i) total[i] = acc[i][f][c] * factor[i];
        [[unroll]] for (uint j = 0; j < kKeys; ++j) {
          float v = subgroupShuffle(share[j / kLanes][c], j % kLanes);
          [[unroll]] for (uint i = 0; i < kRows; ++i) total[i] = fma(s[i][j], v, total[i]);
        }
        [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][f][c] = total[i];
      }
    }
  }

  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint own = row + i * kLanes;
    if (own >= rows) continue;
    uint at = kParts ? ((work.pair * rows + own) * splits + work.split) * (e + 2) + 2 : (work.pair * rows + own) * e;
    float inverse = kParts ? 1.0 : (sum[i] == 0.0 ? 0.0 : 1.0 / sum[i]);
    if (kParts && work.chunk == 0) {
      y[at - 2] = most[i];
      y[at - 1] = sum[i];
    }
    [[unroll]] for (uint f = 0; f < kVec4s; ++f)
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        uint column = (first_vec4 + f) * 4 + c;
        if (column < e) y[at + column] = acc[i][f][c] * inverse;
      }
  }
}
