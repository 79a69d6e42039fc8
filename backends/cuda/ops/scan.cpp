// CumSum and CumProd along any axis. The result may alias the operand.
#include "kernels/scan.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

template <class Attributes, bool kProduct>
Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const ScanArguments arguments{.type = element_type(node.dtype(0)),
                                .product = kProduct,
                                .exclusive = attributes.exclusive,
                                .reverse = attributes.reverse,
                                .outer = x.elements(0, axis),
                                .extent = x[axis],
                                .inner = x.elements(axis + 1, x.rank())};
  Requirements requirements = in_place();
  requirements.scratch = scan_scratch_bytes(arguments);
  return make_kernel(
      [arguments](const Call& call) {
        ScanArguments a = arguments;
        a.data = call.in(0);
        a.result = call.out();
        return scan(a, call.scratch(), call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_scan();
std::span<const KernelRow> rows_scan() {
  static constexpr KernelRow kRows[] = {
      row<create<op::CumSumAttributes, false>>(OpKind::CumSum, "cum_sum", kNumericTypes),
      row<create<op::CumProdAttributes, true>>(OpKind::CumProd, "cum_prod", kNumericTypes),
  };
  return kRows;
}

}  // namespace librt::cuda
