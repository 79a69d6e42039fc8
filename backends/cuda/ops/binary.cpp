// Arithmetic, comparison, logic and bits with broadcasting.
#include "kernels/binary.h"

#include "backends/cuda/kernel.h"
#include "backends/cuda/support/index_space.h"
#include "runtime/geometry/in_place.h"

namespace librt::cuda {
namespace {

/// In place over the first operand that has the result's shape and type.
Requirements over_operand(const NodeView& node) {
  const auto operand = operand_like_result(node);
  return operand ? in_place(*operand) : Requirements{};
}

BroadcastArguments arguments_of(const NodeView& node) {
  BroadcastArguments arguments{};
  arguments.space = index_space(broadcast_plan<2>(node.output(0).shape, {node.shape(0), node.shape(1)}));
  arguments.width = choose_width(arguments.space, node.dtype(0));
  arguments.count = node.output(0).elements();
  return arguments;
}

/// launcher(function, type, arguments, stream) on the node's operands.
template <class Launcher, class Function>
KernelPtr make_broadcast(const NodeView& node, Launcher launcher, Function function) {
  return make_kernel(
      [=, type = element_type(node.dtype(0)), arguments = arguments_of(node)](const Call& call) {
        BroadcastArguments a = arguments;
        a.a = call.in(0);
        a.b = call.in(1);
        a.y = call.out();
        return launcher(function, type, a, call.stream);
      },
      over_operand(node));
}

template <BinaryFunction kFunction>
Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  return make_broadcast(node, binary, kFunction);
}
Result<KernelPtr> create_mod(CudaDevice&, const NodeView& node) {
  const bool truncated = node.as<op::ModAttributes>().truncated;
  return make_broadcast(node, binary, truncated ? BinaryFunction::ModTruncated : BinaryFunction::Mod);
}
Result<KernelPtr> create_shift(CudaDevice&, const NodeView& node) {
  const bool left = node.as<op::BitShiftAttributes>().left;
  return make_broadcast(node, binary, left ? BinaryFunction::ShiftLeft : BinaryFunction::ShiftRight);
}
Result<KernelPtr> create_gelu_grad(CudaDevice&, const NodeView& node) {
  const bool tanh = node.as<op::GeluGradAttributes>().tanh_approximation;
  return make_broadcast(node, binary, tanh ? BinaryFunction::GeluTanhGrad : BinaryFunction::GeluGrad);
}
template <CompareFunction kFunction>
Result<KernelPtr> create_compare(CudaDevice&, const NodeView& node) {
  return make_broadcast(node, compare, kFunction);
}

}  // namespace

std::span<const KernelRow> rows_binary();
std::span<const KernelRow> rows_binary() {
#define RT_BINARY(Name, name, dtypes) row<create<BinaryFunction::Name>>(OpKind::Name, name, dtypes)
#define RT_COMPARE(Name, name) row<create_compare<CompareFunction::Name>>(OpKind::Name, name, kAnyDType)
  static constexpr DTypeSet kBool{DType::Bool};
  static constexpr KernelRow kRows[] = {
      RT_BINARY(Add, "add", kNumericTypes),
      RT_BINARY(Sub, "sub", kNumericTypes),
      RT_BINARY(Mul, "mul", kNumericTypes),
      RT_BINARY(Div, "div", kNumericTypes),
      RT_BINARY(Pow, "pow", kNumericTypes),
      RT_BINARY(Minimum, "minimum", kNumericTypes),
      RT_BINARY(Maximum, "maximum", kNumericTypes),
      row<create_mod>(OpKind::Mod, "mod", kNumericTypes),
      row<create_gelu_grad>(OpKind::GeluGrad, "gelu_grad", kFloats),
      RT_BINARY(SiluGrad, "silu_grad", kFloats),
      RT_BINARY(ReluGrad, "relu_grad", kFloats),
      RT_COMPARE(Equal, "equal"),
      RT_COMPARE(Less, "less"),
      RT_COMPARE(LessOrEqual, "less_or_equal"),
      RT_COMPARE(Greater, "greater"),
      RT_COMPARE(GreaterOrEqual, "greater_or_equal"),
      RT_BINARY(And, "and", kBool),
      RT_BINARY(Or, "or", kBool),
      RT_BINARY(Xor, "xor", kBool),
      RT_BINARY(BitwiseAnd, "bitwise_and", kIntegers),
      RT_BINARY(BitwiseOr, "bitwise_or", kIntegers),
      RT_BINARY(BitwiseXor, "bitwise_xor", kIntegers),
      row<create_shift>(OpKind::BitShift, "bit_shift", kIntegers),
  };
#undef RT_BINARY
#undef RT_COMPARE
  return kRows;
}

}  // namespace librt::cuda
