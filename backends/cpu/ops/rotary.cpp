// Rotary embedding in one pass over x, in place.
#include <algorithm>

#include "backends/cpu/device/device.h"
#include "backends/cpu/kernel.h"

namespace librt::cpu {
namespace {

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

}  // namespace

std::span<const KernelRow> rows_rotary();
std::span<const KernelRow> rows_rotary() {
  static constexpr KernelRow kRows[] = {
      row<create_rotary>(OpKind::RotaryEmbedding, "rotary", DTypeSet{DType::F32})};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
