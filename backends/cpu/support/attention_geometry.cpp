#include "backends/cpu/support/attention_geometry.h"

#include <algorithm>

namespace librt::cpu {
namespace {

/// A position given at run time, clamped so that sums of a few do not overflow.
int64_t bounded(int64_t position) noexcept {
  constexpr int64_t kFar = int64_t{1} << 61;
  return std::clamp(position, -kFar, kFar);
}

}  // namespace

AttentionRows block_of_rows(const AttentionGeometry& g, const Call& call, int64_t pair, int64_t block,
                            SeenBlock& seen) {
  const int64_t row = block * kAttentionRows, batch = pair / g.groups, group = pair % g.groups;
  AttentionRows task;
  task.rows = g.block_rows(block), task.d = g.d, task.e = g.e;
  task.scale = g.scale, task.softcap = g.softcap;
  task.q = call.in<float>(kQuery) + (pair * g.rows + row) * g.d;
  task.k = call.in<float>(kKey) + pair * g.keys * g.d;
  task.v = call.in<float>(kValue) + pair * g.keys * g.e;
  const auto* lengths = call.in<int64_t>(kKvLength);
  const auto* positions = call.in<int64_t>(kQueryPosition);
  const int64_t length = lengths == nullptr ? g.keys : std::clamp<int64_t>(lengths[batch], 0, g.keys);
  const int64_t from = positions != nullptr ? bounded(positions[g.one_position ? 0 : batch])
                       : lengths != nullptr ? bounded(lengths[batch]) - g.queries
                                            : 0;
  const int64_t left = bounded(g.left), right = bounded(g.right);
  for (int64_t i = 0; i < task.rows; ++i) {
    const int64_t query = (row + i) % g.queries, head = group * (g.heads / g.groups) + (row + i) / g.queries;
    const int64_t at = from + query;
    seen.first[i] = left < 0 ? 0 : std::clamp<int64_t>(at - left, 0, length);
    seen.last[i] = right < 0 ? length : std::clamp<int64_t>(at + right + 1, 0, length);
    seen.mask_row[i] = batch * g.mask_strides[0] + head * g.mask_strides[1] + query * g.mask_strides[2];
  }
  task.first = seen.first, task.last = seen.last, task.mask_row = seen.mask_row;
  task.mask_step = g.mask_strides[3];
  if (g.has_mask && g.bool_mask) task.keep = call.in<uint8_t>(kMask);
  if (g.has_mask && !g.bool_mask) task.bias = call.in<float>(kMask);
  return task;
}

Status supports_attention(const CpuDevice&, const NodeView& node) {
  if (node.has(kMask) && node.dtype(kMask) != DType::Bool && node.dtype(kMask) != DType::F32)
    return unsupported("no masks of ", name_of(node.dtype(kMask)));
  return {};
}

}  // namespace librt::cpu
