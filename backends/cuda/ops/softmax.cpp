// Softmax and LogSoftmax over any axis.
#include "kernels/softmax.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

template <class Attributes, bool kLogarithm>
Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(node.as<Attributes>().axis, x.rank());
  SoftmaxArguments arguments;
  arguments.type = element_type(node.dtype(0));
  arguments.outer = x.elements(0, axis);
  arguments.extent = x[axis];
  arguments.inner = x.elements(axis + 1, x.rank());
  arguments.logarithm = kLogarithm;
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
  };
  return kRows;
}

}  // namespace librt::cuda
