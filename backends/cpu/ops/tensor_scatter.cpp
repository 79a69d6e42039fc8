// TensorScatter: writes rows into a cache, in place.
#include <algorithm>
#include <cstring>

#include "backends/cpu/device/device.h"
#include "backends/cpu/kernel.h"

namespace librt::cpu {
namespace {

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
        if (g.positions == 0) return;  // an empty cache
        const int64_t moved = call.in<std::byte>(0) == call.out<std::byte>() ? g.written : g.positions;
        parallel_for(g.batch * g.inner, moved * static_cast<int64_t>(g.row) / 8, 1,
                     [&](int64_t begin, int64_t end) noexcept {
                       for (int64_t i = begin; i < end; ++i) scatter(g, call, i);
                     });
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_tensor_scatter();
std::span<const KernelRow> rows_tensor_scatter() {
  static constexpr KernelRow kRows[] = {
      row<create_scatter>(OpKind::TensorScatter, "tensor_scatter", kAnyDType)};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
