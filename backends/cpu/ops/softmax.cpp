// Softmax and LogSoftmax, and their gradients, over any axis.
#include <cmath>
#include <limits>

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

/// One line of f64, whose elements are `step` apart; y may be x.
template <bool kLogarithm>
void softmax_line(const double* x, double* y, int64_t extent, int64_t step) noexcept {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < extent; ++i) largest = x[i * step] > largest ? x[i * step] : largest;
  for (int64_t i = 0; i < extent; ++i) {
    const double power = std::exp(x[i * step] - largest);
    sum += power;
    if (!kLogarithm) y[i * step] = power;
  }
  const double log_sum = kLogarithm ? std::log(sum) : 0;
  for (int64_t i = 0; i < extent; ++i)
    y[i * step] = kLogarithm ? x[i * step] - largest - log_sum : y[i * step] / sum;
}

template <class Attributes, bool kLogarithm>
Result<KernelPtr> create_wide(CpuDevice&, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(node.as<Attributes>().axis, x.rank());
  const int64_t outer = x.elements(0, axis), extent = x[axis], inner = x.elements(axis + 1, x.rank());
  return make_kernel(
      [=](const Call& call) noexcept {
        parallel_for(outer * inner, extent * 32, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i / inner * extent * inner + i % inner;
            softmax_line<kLogarithm>(call.in<double>(0) + first, call.out<double>() + first, extent, inner);
          }
        });
      },
      in_place());
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
      row<create_wide<op::SoftmaxAttributes, false>>(OpKind::Softmax, "softmax.f64", DTypeSet{DType::F64}),
      row<create<op::LogSoftmaxAttributes, true>>(OpKind::LogSoftmax, "log_softmax", DTypeSet{DType::F32}),
      row<create_wide<op::LogSoftmaxAttributes, true>>(OpKind::LogSoftmax, "log_softmax.f64",
                                                       DTypeSet{DType::F64}),
      row<create_grad>(OpKind::SoftmaxGrad, "softmax_grad", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
