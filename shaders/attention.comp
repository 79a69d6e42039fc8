#version 450
#extension GL_GOOGLE_include_directive : require
// Attention without the matrix of scores (Dao et al. 2022): a workgroup takes a block of query rows and goes over the
// keys it sees, a tile at a time, with the maximum and the sum of each row so far.
// kLanesN lanes lie along keys and along the result's columns, the others along rows. A lane has kRows rows; kColumns
// neighbouring keys of a tile; kFours groups of four result columns, kLanesN groups apart. Query, key and value rows
// are whole vec4s. The query heads that share a key head are rows of one matrix [rows, D].
// With more than one split a workgroup sees a part of the keys and leaves maximum, sum and sum times y for
// attention_merge.comp.
#include "common.glsl"
#include "functions.glsl"
#include "load.glsl"
layout(constant_id = 1) const uint kRows = 8;
layout(constant_id = 2) const uint kColumns = 8;  // a multiple of four
layout(constant_id = 3) const uint kLanesN = 8;
layout(constant_id = 4) const uint kFours = 2;
layout(constant_id = 5) const bool kSoftcap = false;
layout(constant_id = 6) const bool kMasked = false;
layout(constant_id = 7) const bool kLengths = false;
layout(constant_id = 8) const bool kPositions = false;
layout(constant_id = 9) const bool kParts = false;
#ifdef TEXEL
layout(set = 0, binding = 12) uniform samplerBuffer texel_v;
vec4 load_v(uint i) { return texelFetch(texel_v, int(i)); }
#else
layout(set = 0, binding = 2, std430) readonly buffer V4 { vec4 v4[]; };
vec4 load_v(uint i) { return v4[i]; }
#endif
layout(set = 0, binding = 3, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 4, std430) readonly buffer M { T mask[]; };
layout(set = 0, binding = 5, std430) readonly buffer L { int lengths[]; };    // low words of i64
layout(set = 0, binding = 6, std430) readonly buffer Q { int positions[]; };  // low words of i64
layout(push_constant) uniform P {
  uint batch, rows, queries, heads_per_group, groups, keys;
  uint d4, e4, e;  // vec4s of a query and of a value row; columns of a result row
  uint blocks, chunks, splits;
  uint mask_strides[4];
  uint position_step;
  int left, right;
  float scale, softcap;
};
const uint kLanesM = gl_WorkGroupSize.x / kLanesN;
const uint kBlock = kLanesM * kRows;
const uint kKeys = kLanesN * kColumns;
shared float row_values[kBlock * kLanesN];
shared vec4 weights[kBlock * kKeys / 4];

struct Seen {
  int begin, end;
};
Seen seen_keys(int first_query, int last_query, int position, int length) {
  return Seen(left < 0 ? 0 : clamp(position + first_query - left, 0, length),
              right < 0 ? length : clamp(position + last_query + right + 1, 0, length));
}

/// Over the lanes of each row: what they put into row_values becomes their maximum or sum.
float over_lanes(uint row, bool sum) {
  float result = row_values[row * kLanesN];
  for (uint i = 1; i < kLanesN; ++i) {
    float other = row_values[row * kLanesN + i];
    result = sum ? result + other : max_keep_nan(result, other);
  }
  return result;
}

void main() {
  uint group = group_number();
  uint split = group % splits;
  group /= splits;
  uint chunk = group % chunks;
  group /= chunks;
  uint block = group % blocks;
  uint pair = group / blocks;
  uint b = pair / groups;
  bool outside = b >= batch;
  if (outside) b = 0;
  uint lane_n = gl_LocalInvocationID.x % kLanesN, lane_m = gl_LocalInvocationID.x / kLanesN;
  uint row = block * kBlock + lane_m * kRows;

  int length = kLengths ? clamp(lengths[2 * b], 0, int(keys)) : int(keys);
  int position = kPositions ? positions[2 * b * position_step] : (kLengths ? lengths[2 * b] - int(queries) : 0);
  uint first_row = block * kBlock, last_row = min(first_row + kBlock, rows) - 1;
  bool one_head = first_row / queries == last_row / queries;
  Seen all = seen_keys(one_head ? int(first_row % queries) : 0, int(one_head ? last_row % queries : queries - 1),
                       position, length);
  int part = (max(all.end - all.begin, 0) + int(splits) - 1) / int(splits);
  int begin = all.begin + int(split) * part;
  int end = outside ? begin : min(begin + part, all.end);

  uint at_q[kRows], at_mask[kRows];
  Seen seen[kRows];
  float most[kRows], sum[kRows];
  vec4 acc[kRows][kFours];
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    uint own = min(row + i, rows - 1);
    at_q[i] = (pair * rows + own) * d4;
    uint query = own % queries, head = pair % groups * heads_per_group + own / queries;
    seen[i] = seen_keys(int(query), int(query), position, length);
    at_mask[i] = b * mask_strides[0] + head * mask_strides[1] + query * mask_strides[2];
    most[i] = -kInfinity;
    sum[i] = 0.0;
    [[unroll]] for (uint f = 0; f < kFours; ++f) acc[i][f] = vec4(0.0);
  }
  uint first_four = chunk * kFours * kLanesN + lane_n;

  for (int t0 = begin; t0 < end; t0 += int(kKeys)) {
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
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      float best = -kInfinity;
      [[unroll]] for (uint j = 0; j < kColumns; ++j) {
        int key = t + int(j);
        float score = s[i][j] * scale;
        if (kSoftcap) score = exact_tanh(score / softcap) * softcap;
        if (kMasked) {
          T m = mask[at_mask[i] + uint(min(key, end - 1)) * mask_strides[3]];
#ifdef MASK_BOOL
          score = m != T(0) ? score : -kInfinity;
#else
          score = m == -kInfinity ? m : score + m;
#endif
        }
        s[i][j] = key < end && key >= seen[i].begin && key < seen[i].end ? score : -kInfinity;
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
      [[unroll]] for (uint f = 0; f < kFours; ++f) acc[i][f] *= factor;
      [[unroll]] for (uint j = 0; j < kColumns; j += 4) {
        vec4 weight = vec4(exact_exp(s[i][j] - base), exact_exp(s[i][j + 1] - base), exact_exp(s[i][j + 2] - base),
                           exact_exp(s[i][j + 3] - base));
        sum[i] += weight.x + weight.y + weight.z + weight.w;
        weights[((lane_m * kRows + i) * kKeys + lane_n * kColumns + j) / 4] = weight;
      }
    }
    barrier();
    for (uint k4 = 0; k4 < kKeys / 4; ++k4) {
      vec4 weight[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i) weight[i] = weights[(lane_m * kRows + i) * kKeys / 4 + k4];
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        uint at_v = (pair * keys + uint(min(t0 + int(k4 * 4 + c), end - 1))) * e4;
        [[unroll]] for (uint f = 0; f < kFours; ++f) {
          vec4 v = load_v(at_v + min(first_four + f * kLanesN, e4 - 1));
          [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i][f] = fma(vec4(weight[i][c]), v, acc[i][f]);
        }
      }
    }
  }

  barrier();
  [[unroll]] for (uint i = 0; i < kRows; ++i) row_values[(lane_m * kRows + i) * kLanesN + lane_n] = sum[i];
  barrier();
  if (outside) return;
  [[unroll]] for (uint i = 0; i < kRows; ++i) {
    if (row + i >= rows) continue;
    float total = over_lanes(lane_m * kRows + i, true);
    uint at = kParts ? ((pair * rows + row + i) * splits + split) * (e + 2) + 2 : (pair * rows + row + i) * e;
    float inverse = kParts ? 1.0 : (total == 0.0 ? 0.0 : 1.0 / total);
    if (kParts && lane_n == 0 && chunk == 0) {
      y[at - 2] = most[i];
      y[at - 1] = total;
    }
    [[unroll]] for (uint f = 0; f < kFours; ++f)
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        uint column = (first_four + f * kLanesN) * 4 + c;
        if (column < e) y[at + column] = acc[i][f][c] * inverse;
      }
  }
}
