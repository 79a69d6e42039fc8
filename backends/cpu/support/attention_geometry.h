// Attention and its gradients as blocks of query rows: the keys and the mask row of each row of a block.
//
// The query heads that share a key head (GQA) are contiguous, so they are rows of one matrix.
#pragma once

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/attention.h"
#include "runtime/core/shape.h"

namespace librt::cpu {

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kKvLength, kQueryPosition, kOutput, kGradOutput };

struct AttentionGeometry {
  int64_t batch, heads, groups, queries, keys, d, e;
  int64_t rows, blocks;  ///< of one group of heads
  float scale, softcap;
  int64_t left, right;  ///< window sizes, -1: none
  bool one_position;
  bool has_mask, bool_mask;
  int64_t mask_strides[4];

  int64_t items() const { return batch * groups * blocks; }
  int64_t block_rows(int64_t block) const { return std::min(kAttentionRows, rows - block * kAttentionRows); }
};

/// For Attention or its gradient, which have the same operands.
template <class Attributes>
AttentionGeometry attention_geometry(const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  const Shape &q = node.shape(kQuery), &v = node.shape(kValue);
  AttentionGeometry g{};
  g.batch = q[0], g.heads = q[1], g.groups = v[1], g.queries = q[2], g.keys = v[2], g.d = q[3], g.e = v[3];
  g.rows = g.groups == 0 ? 0 : g.heads / g.groups * g.queries;
  g.blocks = (g.rows + kAttentionRows - 1) / kAttentionRows;
  g.scale = attributes.scale != 0 ? attributes.scale : 1 / std::sqrt(static_cast<float>(g.d));
  g.softcap = attributes.softcap;
  g.left = attributes.left_window;
  g.right = attributes.causal ? 0 : attributes.right_window;
  g.one_position = node.has(kQueryPosition) && node.input(kQueryPosition).elements() == 1;
  g.has_mask = node.has(kMask);
  if (g.has_mask) {
    g.bool_mask = node.dtype(kMask) == DType::Bool;
    const Shape& mask = node.shape(kMask);
    int64_t stride = 1;
    for (int axis = 3, own = mask.rank() - 1; own >= 0; --axis, --own) {
      g.mask_strides[axis] = mask[own] == 1 ? 0 : stride;
      stride *= mask[own];
    }
  }
  return g;
}

/// Per row of a block: the keys [first, last) that it sees and the offset of its mask row.
struct SeenBlock {
  int64_t first[kAttentionRows], last[kAttentionRows], mask_row[kAttentionRows];
};

/// Row block `block` of batch and group `pair`, without results and scratch. `seen` must outlive it.
AttentionRows block_of_rows(const AttentionGeometry& g, const Call& call, int64_t pair, int64_t block,
                            SeenBlock& seen);

Status supports_attention(const CpuDevice& device, const NodeView& node);

/// Interleaves long and short blocks of a causal mask, so that equal counts of items are about equal work.
inline int64_t spread(int64_t i, int64_t count) {
  return i % 2 == 0 ? i / 2 : count - 1 - i / 2;
}

}  // namespace librt::cpu
