// Attention without materializing the score matrix: blocks of query rows, each with one pass over the keys it
// sees.
//
// Where there are fewer blocks than threads (a decode step), the keys are split too, and the partial results
// merged.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/simd/attention.h"
#include "backends/cpu/support/attention_geometry.h"

namespace librt::cpu {
namespace {

struct Geometry : AttentionGeometry {
  int64_t splits;  ///< parts of the keys
};

/// The least number of keys worth a part.
constexpr int64_t kLeastPart = 256;

Geometry geometry_of(const NodeView& node, int threads) {
  Geometry g{attention_geometry<op::AttentionAttributes>(node), 1};
  const int64_t parts = g.items() == 0 ? 1 : (threads + g.items() - 1) / g.items();
  g.splits = std::clamp<int64_t>(std::min(parts, g.keys / kLeastPart), 1, 256);
  return g;
}

/// Restricts the block to part `index` of `parts` of the keys that it sees.
void take_part(AttentionRows& task, SeenBlock& block, int64_t index, int64_t parts) {
  int64_t first = block.first[0], last = block.last[0];
  for (int64_t i = 1; i < task.rows; ++i) {
    first = std::min(first, block.first[i]);
    last = std::max(last, block.last[i]);
  }
  const Range part =
      part_of(std::max<int64_t>(last - first, 0), static_cast<int>(index), static_cast<int>(parts));
  for (int64_t i = 0; i < task.rows; ++i) {
    block.first[i] = std::max(block.first[i], first + part.begin);
    block.last[i] = std::min(block.last[i], first + part.end);
  }
}

void merge(const float* parts, int64_t count, int64_t stride, int64_t e, float* y) {
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t p = 0; p < count; ++p) most = std::max(most, parts[p * stride]);
  if (most == -std::numeric_limits<float>::infinity()) most = 0;
  float sum = 0;
  std::fill(y, y + e, 0.0f);
  for (int64_t p = 0; p < count; ++p) {
    const float* part = parts + p * stride;
    const float factor = std::exp(part[0] - most);
    sum += factor * part[1];
    for (int64_t i = 0; i < e; ++i) y[i] += factor * part[2 + i];
  }
  const float inverse = sum == 0 ? 0 : 1 / sum;
  for (int64_t i = 0; i < e; ++i) y[i] *= inverse;
}

struct Scratch {
  int64_t thread_floats, part_floats;  ///< of one thread; of one part of one block
};
Scratch scratch_of(const Geometry& g) {
  return {attention_scratch(g.d, g.e),
          g.splits == 1 ? 0 : std::min(kAttentionRows, g.rows) * attention_partial(g.e)};
}

void run_part(const Geometry& g, const Simd& simd, const Call& call, int64_t index, float* parts) {
  const int64_t split = index % g.splits, item = index / g.splits;
  const int64_t pair = item / g.blocks, block = spread(item % g.blocks, g.blocks),
                row = block * kAttentionRows;
  const Scratch scratch = scratch_of(g);
  SeenBlock seen;
  AttentionRows task = block_of_rows(g, call, pair, block, seen);
  task.y = call.out<float>() + (pair * g.rows + row) * g.e;
  task.scratch = call.scratch<float>() + thread_index() * scratch.thread_floats;
  if (g.splits > 1) task.partial = parts + index * scratch.part_floats;
  if (g.splits > 1) take_part(task, seen, split, g.splits);
  simd.loops<AttentionLoops>().attention(task);
}

/// The greatest number of valid keys over the batch: a KV cache has room for more.
int64_t valid_keys(const Geometry& g, const Call& call) {
  const auto* lengths = call.in<int64_t>(kKvLength);
  if (lengths == nullptr) return g.keys;
  return std::clamp<int64_t>(*std::max_element(lengths, lengths + g.batch), 0, g.keys);
}

void merge_block(const Geometry& g, const Call& call, int64_t item, const float* parts) {
  const int64_t block = spread(item % g.blocks, g.blocks);
  const int64_t floats = scratch_of(g).part_floats;
  for (int64_t i = 0; i < g.block_rows(block); ++i)
    merge(parts + item * g.splits * floats + i * attention_partial(g.e), g.splits, floats, g.e,
          call.out<float>() + (item / g.blocks * g.rows + block * kAttentionRows + i) * g.e);
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const int threads = max_threads();
  const Geometry g = geometry_of(node, threads);
  const Scratch scratch = scratch_of(g);
  const int64_t parts_at = threads * scratch.thread_floats;
  Requirements requirements;
  requirements.scratch =
      static_cast<size_t>(parts_at + (g.splits == 1 ? 0 : g.items() * g.splits * scratch.part_floats)) *
      sizeof(float);
  const Simd& simd = device.simd();
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        float* parts = call.scratch<float>() + parts_at;
        const int64_t rows = std::min(kAttentionRows, g.rows);
        parallel_for(g.items() * g.splits, rows * valid_keys(g, call) * (g.d + g.e) / g.splits / 4, 1,
                     [&](int64_t begin, int64_t end) noexcept {
                       for (int64_t i = begin; i < end; ++i) run_part(g, simd, call, i, parts);
                     });
        if (g.splits > 1)
          for (int64_t item = 0; item < g.items(); ++item) merge_block(g, call, item, parts);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_attention();
std::span<const KernelRow> rows_attention() {
  static constexpr KernelRow kRows[] = {
      row<create, supports_attention>(OpKind::Attention, "attention", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
