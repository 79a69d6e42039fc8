// SoftmaxCrossEntropy in one pass over the logits: the mean over rows of log(sum exp(x - max)) - (x[label] -
// max). A label outside [0, C) contributes 0. Per-row losses are kept in scratch and summed in order.
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/norm.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/support/element_types.h"

namespace librt::cpu {
namespace {

Status supports(const CpuDevice&, const NodeView& node) {
  if (node.dtype(1) != DType::I32 && node.dtype(1) != DType::I64)
    return unsupported("labels must be i32 or i64, not ", name_of(node.dtype(1)));
  return {};
}

template <class Label>
KernelPtr make(const Simd& simd, int64_t rows, int64_t classes) {
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(rows * (classes + 1)) * sizeof(float);
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const float* logits = call.in<float>(0);
        const Label* labels = call.in<Label>(1);
        float* losses = call.scratch<float>();
        float* logarithms = losses + rows;
        parallel_for(rows, classes * 16, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t row = begin; row < end; ++row) {
            float* to = logarithms + row * classes;
            simd.loops<NormLoops>().softmax_row(logits + row * classes, to, classes, true);
            const auto label = static_cast<int64_t>(labels[row]);
            losses[row] = label >= 0 && label < classes ? -to[label] : 0.0f;
          }
        });
        const float sum =
            simd.loops<RowLoops>().reduce_row[static_cast<int>(ReduceFunction::Sum)](losses, rows);
        *call.out<float>() = sum / static_cast<float>(rows);
      },
      requirements);
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  if (node.dtype(1) == DType::I32) return make<int32_t>(device.simd(), x[0], x[1]);
  return make<int64_t>(device.simd(), x[0], x[1]);
}

}  // namespace

std::span<const KernelRow> rows_loss();
std::span<const KernelRow> rows_loss() {
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::SoftmaxCrossEntropy, "softmax_cross_entropy", DTypeSet{DType::F32})};
  return kRows;
}

}  // namespace librt::cpu
