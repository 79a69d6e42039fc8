// Elementwise functions of one input. The result may alias the operand.
#include "kernels/unary.h"

#include "backends/cuda/kernel.h"
#include "runtime/geometry/function.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  UnaryArguments arguments{element_type(node.dtype(0)), with_open_bounds(function_call(node.node)), nullptr,
                           nullptr, node.output(0).elements()};
  return make_kernel(
      [arguments](const Call& call) {
        UnaryArguments a = arguments;
        a.x = call.in(0);
        a.y = call.out();
        return unary(a, call.stream);
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_unary();
std::span<const KernelRow> rows_unary() {
  static constexpr KernelRow kRows[] = {
#define RT_ROW_Floats(Name) row<create>(OpKind::Name, "unary." #Name, kFloats),
#define RT_ROW_Numbers(Name) row<create>(OpKind::Name, "unary." #Name, kNumericTypes),
#define RT_ROW_Booleans(Name) row<create>(OpKind::Name, "unary." #Name, DTypeSet{DType::Bool}),
#define RT_ROW_None(Name)
#define RT_FUNCTION(Name, operands) RT_ROW_##operands(Name)
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
  };
  return kRows;
}

}  // namespace librt::cuda
