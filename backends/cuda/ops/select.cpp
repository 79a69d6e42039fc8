// Selection by condition, with broadcasting.
#include "kernels/binary.h"

#include "backends/cuda/kernel.h"
#include "backends/cuda/support/index_space.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  WhereArguments arguments{};
  arguments.space =
      index_space(broadcast_plan<3>(node.output(0).shape, {node.shape(0), node.shape(1), node.shape(2)}));
  arguments.width = choose_width(arguments.space, node.output(0).dtype);
  arguments.count = node.output(0).elements();
  arguments.element_bytes = size_of(node.output(0).dtype);
  Requirements requirements;
  for (const uint8_t i : {uint8_t{1}, uint8_t{2}})
    if (node.input(i) == node.output(0)) {
      requirements = in_place(i);
      break;
    }
  return make_kernel(
      [arguments](const Call& call) {
        WhereArguments a = arguments;
        a.condition = call.in(0);
        a.a = call.in(1);
        a.b = call.in(2);
        a.y = call.out();
        return where(a, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_select();
std::span<const KernelRow> rows_select() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::Where, "where", DTypeSet{DType::Bool})};
  return kRows;
}

}  // namespace librt::cuda
