// SoftmaxCrossEntropy: the mean over rows of -log softmax(logits)[label].
#include "kernels/loss.h"

#include "backends/cuda/kernel.h"

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

}  // namespace

std::span<const KernelRow> rows_loss();
std::span<const KernelRow> rows_loss() {
  static constexpr KernelRow kRows[] = {
      row<create>(OpKind::SoftmaxCrossEntropy, "softmax_cross_entropy", kShortFloats),
  };
  return kRows;
}

}  // namespace librt::cuda
