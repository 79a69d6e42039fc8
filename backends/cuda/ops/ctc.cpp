// CtcLoss: loss and gradient.
#include "kernels/ctc.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::CtcLossAttributes>();
  const Shape& x = node.shape(0);
  const auto wide = [&](size_t i) { return node.dtype(i) == DType::I64; };
  const CtcArguments arguments{.type = element_type(node.dtype(0)),
                               .wide_labels = wide(1),
                               .wide_input_lengths = wide(2),
                               .wide_label_lengths = wide(3),
                               .zero_infinity = attributes.zero_infinity,
                               .blank = attributes.blank,
                               .steps = x[0],
                               .batch = x[1],
                               .classes = x[2],
                               .max_labels = node.shape(1)[1]};
  Requirements requirements;
  requirements.scratch = ctc_scratch_bytes(arguments);
  return make_kernel(
      [arguments](const Call& call) {
        CtcArguments a = arguments;
        a.log_probabilities = call.in(0);
        a.labels = call.in(1);
        a.input_lengths = call.in(2);
        a.label_lengths = call.in(3);
        a.loss = call.out(0);
        a.gradient = call.out(1);
        a.scratch = call.scratch();
        return ctc_loss(a, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_ctc();
std::span<const KernelRow> rows_ctc() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::CtcLoss, "ctc_loss", kShortFloats)};
  return kRows;
}

}  // namespace librt::cuda
