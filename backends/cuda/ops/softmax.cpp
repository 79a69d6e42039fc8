// Softmax and LogSoftmax, and their gradients, over any axis.
#include "kernels/softmax.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

SoftmaxArguments arguments_of(const NodeView& node, int64_t of_axis, bool logarithm) {
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(of_axis, x.rank());
  SoftmaxArguments arguments;
  arguments.type = element_type(node.dtype(0));
  arguments.outer = x.elements(0, axis);
  arguments.extent = x[axis];
  arguments.inner = x.elements(axis + 1, x.rank());
  arguments.logarithm = logarithm;
  return arguments;
}

/// (y, grad_y) -> grad_x
Result<KernelPtr> create_grad(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::SoftmaxGradAttributes>();
  return make_kernel(
      [arguments = arguments_of(node, attributes.axis, attributes.logarithm)](const Call& call) {
        SoftmaxArguments a = arguments;
        a.x = call.in(0);
        a.y = call.out();
        return softmax_grad(a, call.in(1), call.stream);
      },
      in_place(1));
}

template <class Attributes, bool kLogarithm>
Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const SoftmaxArguments arguments = arguments_of(node, node.as<Attributes>().axis, kLogarithm);
  return make_kernel(
      [arguments](const Call& call) {
        SoftmaxArguments a = arguments;
        a.x = call.in(0);
        a.y = call.out();
        return softmax(a, call.stream);
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_softmax();
std::span<const KernelRow> rows_softmax() {
  static constexpr KernelRow kRows[] = {
      row<create<op::SoftmaxAttributes, false>>(OpKind::Softmax, "softmax", kFloats),
      row<create<op::LogSoftmaxAttributes, true>>(OpKind::LogSoftmax, "log_softmax", kFloats),
      row<create_grad>(OpKind::SoftmaxGrad, "softmax_grad", kFloats),
  };
  return kRows;
}

}  // namespace librt::cuda
