// Softmax and LogSoftmax, and their gradients, over any axis.
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/norm.h"
#include "backends/cpu/support/axis_walk.h"

namespace librt::cpu {
namespace {

AxisWalk walk_of(const Shape& x, int64_t attribute) {
  const int axis = *normalized_axis(attribute, x.rank());
  return {x.elements(0, axis), x[axis], x.elements(axis + 1, x.rank())};
}

template <class Attributes, bool kLogarithm>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const AxisWalk walk = walk_of(node.shape(0), node.as<Attributes>().axis);
  const Simd& simd = device.simd();
  Requirements requirements = in_place();
  // Between the passes down columns a copy per thread, where it stays in its L2.
  constexpr int64_t kMostCopied = (int64_t{1} << 20) / int64_t{sizeof(float)};
  const bool copies = walk.way == AxisWalk::Way::Columns && walk.unit_elements() <= kMostCopied;
  const int64_t buffer = copies ? walk.unit_elements() : walk.buffer();
  const bool past_caches = static_cast<int64_t>(node.output(0).bytes()) >= kPastCaches;
  requirements.scratch = static_cast<size_t>(max_threads() * buffer) * sizeof(float);
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const float* in = call.in<float>(0);
        float* out = call.out<float>();
        const NormLoops& loops = simd.loops<NormLoops>();
        parallel_for(walk.units(), walk.unit_elements() * 16, 1, [&](int64_t begin, int64_t end) noexcept {
          float* mine = buffer > 0 ? call.scratch<float>() + thread_index() * buffer : nullptr;
          const int64_t extent = walk.extent, inner = walk.inner;
          for (int64_t i = begin; i < end; ++i) {
            switch (walk.way) {
              case AxisWalk::Way::Rows:
                loops.softmax_row(in + i * extent, out + i * extent, extent, kLogarithm);
                break;
              case AxisWalk::Way::Columns: {
                const int64_t column = i % walk.blocks() * Simd::kColumns,
                              first = i / walk.blocks() * extent * inner + column;
                loops.softmax_columns[kLogarithm ? 1 : 0](in + first, out + first, extent, inner,
                                                          std::min(Simd::kColumns, inner - column), mine,
                                                          past_caches);
                break;
              }
              case AxisWalk::Way::TransposedRows:
                walk.gather(simd, i, in, mine);
                for (int64_t k = 0; k < inner; ++k)
                  loops.softmax_row(mine + k * extent, mine + k * extent, extent, kLogarithm);
                walk.scatter(simd, i, mine, out);
                break;
              case AxisWalk::Way::TransposedColumns: {
                const int64_t columns = walk.count(i) * inner;
                walk.gather(simd, i, in, mine);
                loops.softmax_columns[kLogarithm ? 1 : 0](mine, mine, extent, columns, columns, nullptr,
                                                          false);
                walk.scatter(simd, i, mine, out);
              }
            }
          }
        });
      },
      requirements);
}

/// (y, grad_y) -> grad_x
Result<KernelPtr> create_grad(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::SoftmaxGradAttributes>();
  const AxisWalk walk = walk_of(node.shape(0), attributes.axis);
  const Simd& simd = device.simd();
  Requirements requirements = in_place(1);
  const int64_t buffer = 2 * walk.buffer();
  requirements.scratch = static_cast<size_t>(max_threads() * buffer) * sizeof(float);
  const int64_t work = attributes.logarithm ? 8 : 2;
  return make_kernel(
      [=, logarithm = attributes.logarithm, &simd](const Call& call) noexcept {
        const float *result = call.in<float>(0), *g = call.in<float>(1);
        float* grad = call.out<float>();
        const NormLoops& loops = simd.loops<NormLoops>();
        parallel_for(walk.units(), walk.unit_elements() * work, 1, [&](int64_t begin, int64_t end) noexcept {
          float* y = buffer > 0 ? call.scratch<float>() + thread_index() * buffer : nullptr;
          float* g_and_grad = y + buffer / 2;
          const int64_t extent = walk.extent, inner = walk.inner;
          for (int64_t i = begin; i < end; ++i) {
            if (buffer > 0) {
              walk.gather(simd, i, result, y);
              walk.gather(simd, i, g, g_and_grad);
            }
            switch (walk.way) {
              case AxisWalk::Way::Rows:
                loops.softmax_grad_row(result + i * extent, g + i * extent, grad + i * extent, extent,
                                       logarithm);
                break;
              case AxisWalk::Way::Columns: {
                const int64_t column = i % walk.blocks() * Simd::kColumns,
                              at = i / walk.blocks() * extent * inner + column;
                loops.softmax_grad_columns(result + at, g + at, grad + at, extent, inner,
                                           std::min(Simd::kColumns, inner - column), logarithm);
                break;
              }
              case AxisWalk::Way::TransposedRows:
                for (int64_t at = 0; at < inner * extent; at += extent)
                  loops.softmax_grad_row(y + at, g_and_grad + at, g_and_grad + at, extent, logarithm);
                break;
              case AxisWalk::Way::TransposedColumns: {
                const int64_t columns = walk.count(i) * inner;
                loops.softmax_grad_columns(y, g_and_grad, g_and_grad, extent, columns, columns, logarithm);
              }
            }
            if (buffer > 0) walk.scatter(simd, i, g_and_grad, grad);
          }
        });
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_softmax();
std::span<const KernelRow> rows_softmax() {
  static constexpr KernelRow kRows[] = {
      row<create<op::SoftmaxAttributes, false>>(OpKind::Softmax, "softmax", DTypeSet{DType::F32}),
      row<create<op::LogSoftmaxAttributes, true>>(OpKind::LogSoftmax, "log_softmax", DTypeSet{DType::F32}),
      row<create_grad>(OpKind::SoftmaxGrad, "softmax_grad", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
