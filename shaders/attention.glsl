// Shared by the attention shaders: operands, key windows, scores, the online softmax.
//
// FlashAttention (Dao et al. 2022): keys come in tiles, and the score matrix is never stored. For each query row q,
// over the keys t that it sees:
//   score[t] = scale q k[t] + mask[t], with a soft cap c: c tanh(scale q k[t] / c) + mask[t]
//   most = max score[t],  sum = sum exp(score[t] - most),  y = sum exp(score[t] - most) v[t] / sum
// When a tile raises the running maximum, the running sum and result are multiplied by exp(old most - new most).
// Gradients (Dao 2023: FlashAttention-2), with weight[t] = exp(score[t] - most) / sum and D = grad_y y:
//   grad_score[t] = weight[t] (grad_y v[t] - D) slope[t],  slope = 1, with a soft cap 1 - tanh^2
//   grad_q = scale sum over t of grad_score[t] k[t]
//   grad_k[t] = scale sum over rows of grad_score[t] q,  grad_v[t] = sum over rows of weight[t] grad_y
//
// Query, key and value rows are whole vec4s. The query heads that share a key head (GQA) are rows of a matrix
// [rows, D].
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
#ifndef GRADIENT
layout(set = 0, binding = 3, std430) writeonly buffer Y { float y[]; };
#elif defined TEXEL
layout(set = 0, binding = 13) uniform samplerBuffer texel_grad;
vec4 load_grad(uint i) { return texelFetch(texel_grad, int(i)); }
#else
layout(set = 0, binding = 3, std430) readonly buffer G4 { vec4 grad4[]; };
vec4 load_grad(uint i) { return grad4[i]; }
#endif
layout(set = 0, binding = 4, std430) readonly buffer M { T mask[]; };
layout(set = 0, binding = 5, std430) readonly buffer L { ivec2 lengths[]; };    // i64, low word first
layout(set = 0, binding = 6, std430) readonly buffer Q { ivec2 positions[]; };  // i64, low word first
layout(push_constant) uniform P {
  uint batch, rows, queries, heads_per_group, groups, keys;
  uint d4, e4, d, e;  // vec4s and columns of a query and of a value row
  uint blocks, chunks, splits;
  uint mask_strides[4];
  uint position_step;
  int left, right;
  float scale, softcap;
};

struct KeyRange {
  int begin, end;
};
KeyRange visible_keys(int first_query, int last_query, int position, int length) {
  return KeyRange(left < 0 ? 0 : clamp(position + first_query - left, 0, length),
              right < 0 ? length : clamp(position + last_query + right + 1, 0, length));
}

/// The work of a workgroup: a block of rows of one key head, a chunk of result columns, a split of the keys.
struct Work {
  uint pair, batch_index, block, chunk, split;
  bool outside;
  int key_count, position;  // position: key index of the first query
  int begin, end;        // the keys that any of the rows sees
};
// An i64 known only at run time, clamped so that sums of a few do not overflow.
int bounded(ivec2 words) {
  const int kUnbounded = 1 << 29;
  if (words.y != words.x >> 31) return words.y < 0 ? -kUnbounded : kUnbounded;
  return clamp(words.x, -kUnbounded, kUnbounded);
}
int key_count_of(uint batch_index) {
  return kLengths ? clamp(bounded(lengths[batch_index]), 0, int(keys)) : int(keys);
}
int position_of(uint batch_index) {
  return kPositions ? bounded(positions[batch_index * position_step])
                    : (kLengths ? bounded(lengths[batch_index]) - int(queries) : 0);
}
Work work_of(uint group, uint block_rows) {
  Work w;
  w.split = group % splits;
  group /= splits;
  w.chunk = group % chunks;
  group /= chunks;
  w.block = group % blocks;
  w.pair = group / blocks;
  w.batch_index = w.pair / groups;
  w.outside = w.batch_index >= batch;
  if (w.outside) w.batch_index = 0;
  w.key_count = key_count_of(w.batch_index);
  w.position = position_of(w.batch_index);
  uint first_row = w.block * block_rows, last_row = min(first_row + block_rows, rows) - 1;
  bool one_head = first_row / queries == last_row / queries;
  KeyRange all = visible_keys(one_head ? int(first_row % queries) : 0, int(one_head ? last_row % queries : queries - 1),
                       w.position, w.key_count);
  int part = (max(all.end - all.begin, 0) + int(splits) - 1) / int(splits);
  w.begin = all.begin + int(w.split) * part;
  w.end = w.outside ? w.begin : min(w.begin + part, all.end);
  return w;
}

/// A query row: the keys it sees and where its mask begins.
struct Query {
  KeyRange visible;
  uint mask;
};
Query query_at(Work w, uint row) {
  uint query = row % queries, head = w.pair % groups * heads_per_group + row / queries;
  return Query(visible_keys(int(query), int(query), w.position, w.key_count),
               w.batch_index * mask_strides[0] + head * mask_strides[1] + query * mask_strides[2]);
}

/// The derivative of a score with respect to its dot product, without the factor `scale`.
float slope_of(float product) {
  if (!kSoftcap) return 1.0;
  float t = exact_tanh(product * scale / softcap);
  return 1.0 - t * t;
}

/// The score of a key from its dot product with the query; -infinity if the key is masked or at or past `end`.
float score_of(float product, Query query, int key, int end) {
  float score = product * scale;
  if (kSoftcap) score = exact_tanh(score / softcap) * softcap;
  if (kMasked) {
    uint at = query.mask + uint(min(key, end - 1)) * mask_strides[3];
#ifdef MASK_BOOL
    score = uint(mask[at]) != 0 ? score : -kInfinity;
#else
    float m = mask[at];
    score = m == -kInfinity ? m : score + m;
#endif
  }
  return key < end && key >= query.visible.begin && key < query.visible.end ? score : -kInfinity;
}

/// exp(score - base_of(most)) needs a finite number to subtract even where no key is visible.
float base_of(float most) { return most == -kInfinity ? 0.0 : most; }
float inverse_of(float sum) { return sum == 0.0 ? 0.0 : 1.0 / sum; }

#ifndef GRADIENT
/// Stores the running maximum and sum of a row that is one of several splits, and returns where its result begins in y.
uint store_statistics(Work work, uint row, float most, float sum, bool first_lane) {
  if (!kParts) return (work.pair * rows + row) * e;
  uint at = ((work.pair * rows + row) * splits + work.split) * (e + 2) + 2;
  if (first_lane && work.chunk == 0) {
    y[at - 2] = most;
    y[at - 1] = sum;
  }
  return at;
}
#endif
