// Softmax and LogSoftmax, and their gradients, over any axis.
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/norm.h"
#include "backends/cpu/support/axis_walk.h"

namespace librt::cpu {
namespace {

AxisWalk walk_of(const Shape& x, int64_t attribute) {
  return {x, *normalized_axis(attribute, x.rank())};
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
        const NormLoops& loops = simd.loops<NormLoops>();
        parallel_for(walk.units(), walk.unit_elements() * 16, 1, [&](int64_t begin, int64_t end) noexcept {
          float* mine = buffer > 0 ? call.scratch<float>() + thread_index() * buffer : nullptr;
          using Inputs = std::array<const float*, 1>;
          for (int64_t i = begin; i < end; ++i)
            walk.run<1>(
                simd, i, {call.in<float>(0)}, call.out<float>(), mine,
                [&](const Inputs& x, float* y) noexcept {
                  loops.softmax_row[kLogarithm ? 1 : 0](x[0], y, walk.extent);
                },
                [&](const Inputs& x, float* y, int64_t stride, int64_t n) noexcept {
                  loops.softmax_columns[kLogarithm ? 1 : 0](x[0], y, walk.extent, stride, n,
                                                            copies ? mine : nullptr,
                                                            past_caches && !walk.transposes());
                });
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
        const NormLoops& loops = simd.loops<NormLoops>();
        parallel_for(walk.units(), walk.unit_elements() * work, 1, [&](int64_t begin, int64_t end) noexcept {
          float* mine = buffer > 0 ? call.scratch<float>() + thread_index() * buffer : nullptr;
          using Inputs = std::array<const float*, 2>;
          for (int64_t i = begin; i < end; ++i)
            walk.run<2>(
                simd, i, {call.in<float>(0), call.in<float>(1)}, call.out<float>(), mine,
                [&](const Inputs& x, float* grad) noexcept {
                  loops.softmax_grad_row[logarithm ? 1 : 0](x[0], x[1], grad, walk.extent);
                },
                [&](const Inputs& x, float* grad, int64_t stride, int64_t n) noexcept {
                  loops.softmax_grad_columns(x[0], x[1], grad, walk.extent, stride, n, logarithm);
                });
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
