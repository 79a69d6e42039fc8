// SoftmaxCrossEntropy: the mean over rows of -log softmax(logits)[label]; CrossEntropy and CrossEntropyGrad.
#include "kernels/loss.h"

#include "backends/cuda/kernel.h"
#include "runtime/geometry/cross_entropy.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const Shape& logits = node.shape(0);
  const CrossEntropyArguments arguments{.type = element_type(node.dtype(0)),
                                        .wide_labels = node.dtype(1) == DType::I64,
                                        .rows = logits[0],
                                        .classes = logits[1]};
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(logits[0]) * sizeof(float);
  return make_kernel(
      [arguments](const Call& call) {
        CrossEntropyArguments a = arguments;
        a.logits = call.in(0);
        a.labels = call.in(1);
        a.result = call.out();
        a.losses = call.scratch<float>();
        return cross_entropy(a, call.stream);
      },
      requirements);
}

/// Without addresses, but for those of the first two operands and the weights.
ClassLossArguments arguments_of(const NodeView& node) {
  const CrossEntropyForm form = *cross_entropy_form(node);
  return {.wide_labels = node.dtype(1) == DType::I64,
          .outer = form.outer,
          .classes = form.classes,
          .inner = form.inner,
          .ignore_index = form.ignore_index,
          .of_label = form.of_label(),
          .of_class = form.of_class()};
}
ClassLossArguments with_operands(ClassLossArguments a, const Call& call, size_t weights) {
  a.logits = call.in<float>(0);
  a.labels = call.in(1);
  a.weights = call.in<float>(weights);
  return a;
}

Result<KernelPtr> create_by_row(CudaDevice&, const NodeView& node) {
  return make_kernel([arguments = arguments_of(node)](const Call& call) {
    return cross_entropy_by_row(
        with_operands(arguments, call, 2),
        {call.out<float>(0), call.out<float>(1), call.out<float>(2), call.out<float>(3)}, call.stream);
  });
}

/// (logits, labels, maximum, log_sum, grad_loss, [weights]) -> grad_logits
Result<KernelPtr> create_grad(CudaDevice&, const NodeView& node) {
  return make_kernel(
      [arguments = arguments_of(node)](const Call& call) {
        return cross_entropy_grad(with_operands(arguments, call, 5),
                                  {call.in<float>(2), call.in<float>(3), call.in<float>(4)},
                                  call.out<float>(), call.stream);
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_loss();
std::span<const KernelRow> rows_loss() {
  static constexpr KernelRow kRows[] = {
      row<create>(OpKind::SoftmaxCrossEntropy, "softmax_cross_entropy", kShortFloats),
      row<create_by_row>(OpKind::CrossEntropy, "cross_entropy", DTypeSet{DType::F32}),
      row<create_grad>(OpKind::CrossEntropyGrad, "cross_entropy_grad", DTypeSet{DType::F32}),
  };
  return kRows;
}

}  // namespace librt::cuda
