// Attention without materializing the score matrix: blocks of query rows, each with one pass over the keys it
// sees.
//
// Where there are fewer blocks than threads (a decode step), the keys are split too, and the partial results
// merged.
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
  task.scratch = call.scratch<float>() + omp_get_thread_num() * scratch.thread_floats;
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

// --- RotaryEmbedding

void rotate(const float* x, float* y, const float* cos, const float* sin, int64_t pairs, bool interleaved) {
  const int64_t step = interleaved ? 2 : 1, apart = interleaved ? 1 : pairs;
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = x[i * step], b = x[i * step + apart];
    y[i * step] = a * cos[i] - b * sin[i];
    y[i * step + apart] = a * sin[i] + b * cos[i];
  }
}

Result<KernelPtr> create_rotary(CpuDevice&, const NodeView& node, Producers) {
  const Shape &x = node.shape(0), &table = node.shape(1);
  const int64_t rows = x.elements(0, 3), heads = x[1], queries = x[2], width = x[3], pairs = table[2];
  const int64_t per_batch = table[0] == 1 ? 0 : queries;
  const bool interleaved = node.as<op::RotaryEmbeddingAttributes>().interleaved;
  return make_kernel(
      [=](const Call& call) noexcept {
        parallel_for(rows, width, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t row = begin; row < end; ++row) {
            const int64_t at = (row / (heads * queries) * per_batch + row % queries) * pairs;
            const float* from = call.in<float>(0) + row * width;
            float* to = call.out<float>() + row * width;
            rotate(from, to, call.in<float>(1) + at, call.in<float>(2) + at, pairs, interleaved);
            if (from != to) std::copy(from + 2 * pairs, from + width, to + 2 * pairs);
          }
        });
      },
      in_place());
}

// --- TensorScatter

/// A cache as bytes [outer, positions, row], where batch n has outer / N consecutive entries.
struct ScatterGeometry {
  int64_t batch, inner, positions, written;
  size_t row;
  bool circular, wide_indices;
};

int64_t write_index(const ScatterGeometry& g, const Call& call, int64_t batch) {
  if (call.in<std::byte>(2) == nullptr) return 0;
  return g.wide_indices ? call.in<int64_t>(2)[batch] : call.in<int32_t>(2)[batch];
}

/// Writes rows [begin, end) of an update at position `at`; rows outside the cache are dropped.
void write_rows(const ScatterGeometry& g, std::byte* cache, const std::byte* update, int64_t begin,
                int64_t end, int64_t at) {
  if (at < 0) {
    begin -= at;
    at = 0;
  }
  end = std::min(end, begin + g.positions - at);
  if (begin < end)
    std::memcpy(cache + static_cast<size_t>(at) * g.row, update + static_cast<size_t>(begin) * g.row,
                static_cast<size_t>(end - begin) * g.row);
}

void scatter(const ScatterGeometry& g, const Call& call, int64_t outer) {
  const size_t size = static_cast<size_t>(g.positions) * g.row;
  std::byte* to = call.out<std::byte>() + static_cast<size_t>(outer) * size;
  const std::byte* cache = call.in<std::byte>(0) + static_cast<size_t>(outer) * size;
  const std::byte* update = call.in<std::byte>(1) + static_cast<size_t>(outer * g.written) * g.row;
  if (to != cache) std::memcpy(to, cache, size);
  int64_t at = write_index(g, call, outer / g.inner);
  if (!g.circular) return write_rows(g, to, update, 0, g.written, std::clamp(at, -g.written, g.positions));
  at = (at % g.positions + g.positions) % g.positions;
  const int64_t before_end = std::min(g.written, g.positions - at);
  write_rows(g, to, update, 0, before_end, at);
  write_rows(g, to, update, before_end, g.written, 0);
}

Result<KernelPtr> create_scatter(CpuDevice&, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::TensorScatterAttributes>();
  const Shape& cache = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, cache.rank());
  const ScatterGeometry g{
      .batch = cache[0],
      .inner = cache.elements(1, axis),
      .positions = cache[axis],
      .written = node.shape(1)[axis],
      .row = static_cast<size_t>(cache.elements(axis + 1, cache.rank())) * size_of(node.dtype(0)),
      .circular = attributes.circular,
      .wide_indices = node.has(2) && node.dtype(2) == DType::I64};
  return make_kernel(
      [g](const Call& call) noexcept {
        const int64_t moved = call.in<std::byte>(0) == call.out<std::byte>() ? g.written : g.positions;
        parallel_for(g.batch * g.inner, moved * static_cast<int64_t>(g.row) / 8, 1,
                     [&](int64_t begin, int64_t end) noexcept {
                       for (int64_t i = begin; i < end; ++i) scatter(g, call, i);
                     });
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_attention();
std::span<const KernelRow> rows_attention() {
  static constexpr KernelRow kRows[] = {
      row<create, supports_attention>(OpKind::Attention, "attention", DTypeSet{DType::F32}),
      row<create_rotary>(OpKind::RotaryEmbedding, "rotary", DTypeSet{DType::F32}),
      row<create_scatter>(OpKind::TensorScatter, "tensor_scatter", kAnyDType),
  };
  return kRows;
}

}  // namespace librt::cpu
