// Cast between all element types.
#include "kernels/cast.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const DType from = node.dtype(0), to = node.output(0).dtype;
  if (from == to) return make_copy(node.input(0).bytes());
  const CastArguments arguments{element_type(from), element_type(to), nullptr, nullptr,
                                node.output(0).elements()};
  return make_kernel([arguments](const Call& call) {
    CastArguments a = arguments;
    a.x = call.in(0);
    a.y = call.out();
    return cast(a, call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_cast();
std::span<const KernelRow> rows_cast() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::Cast, "cast", kAnyDType)};
  return kRows;
}

}  // namespace librt::cuda
