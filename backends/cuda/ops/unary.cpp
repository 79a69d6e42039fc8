// Elementwise functions of one input. The result may alias the operand.
#include "kernels/unary.h"

#include <limits>

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

/// The function of a node, with its attributes.
FunctionCall call_of(Function function, const NodeView& node) {
  switch (node.kind()) {
    case OpKind::LeakyRelu: return {function, static_cast<double>(node.as<op::LeakyReluAttributes>().alpha)};
    case OpKind::Elu: return {function, static_cast<double>(node.as<op::EluAttributes>().alpha)};
    case OpKind::HardSigmoid: {
      const auto& attributes = node.as<op::HardSigmoidAttributes>();
      return {function, static_cast<double>(attributes.alpha), static_cast<double>(attributes.beta)};
    }
    case OpKind::Clip: {
      const auto& attributes = node.as<op::ClipAttributes>();
      constexpr float kMax = std::numeric_limits<float>::max();  // means no limit
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      return {function, attributes.minimum == -kMax ? -kInfinity : static_cast<double>(attributes.minimum),
              attributes.maximum == kMax ? kInfinity : static_cast<double>(attributes.maximum)};
    }
    case OpKind::Gelu:
      return {node.as<op::GeluAttributes>().tanh_approximation ? Function::GeluTanh : function};
    default: return {function};
  }
}

template <Function kFunction>
Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  UnaryArguments arguments{element_type(node.dtype(0)), call_of(kFunction, node), nullptr, nullptr,
                           node.output(0).elements()};
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
#define RT_UNARY(Name, name, dtypes) row<create<Function::Name>>(OpKind::Name, name, dtypes)
  static constexpr KernelRow kRows[] = {
      RT_UNARY(Abs, "abs", kNumericTypes),
      RT_UNARY(Neg, "neg", kNumericTypes),
      RT_UNARY(Exp, "exp", kFloats),
      RT_UNARY(Log, "log", kFloats),
      RT_UNARY(Sqrt, "sqrt", kFloats),
      RT_UNARY(Reciprocal, "reciprocal", kFloats),
      RT_UNARY(Sin, "sin", kFloats),
      RT_UNARY(Cos, "cos", kFloats),
      RT_UNARY(Tanh, "tanh", kFloats),
      RT_UNARY(Sigmoid, "sigmoid", kFloats),
      RT_UNARY(Relu, "relu", kNumericTypes),
      RT_UNARY(Erf, "erf", kFloats),
      RT_UNARY(Floor, "floor", kFloats),
      RT_UNARY(Ceil, "ceil", kFloats),
      RT_UNARY(Round, "round", kFloats),
      RT_UNARY(Sign, "sign", kNumericTypes),
      RT_UNARY(Softplus, "softplus", kFloats),
      RT_UNARY(LeakyRelu, "leaky_relu", kFloats),
      RT_UNARY(Elu, "elu", kFloats),
      RT_UNARY(HardSigmoid, "hard_sigmoid", kFloats),
      RT_UNARY(HardSwish, "hard_swish", kFloats),
      RT_UNARY(Clip, "clip", kNumericTypes),
      RT_UNARY(Gelu, "gelu", kFloats),
      RT_UNARY(Silu, "silu", kFloats),
      RT_UNARY(Atan, "atan", kFloats),
      RT_UNARY(Not, "not", DTypeSet{DType::Bool}),
  };
#undef RT_UNARY
  return kRows;
}

}  // namespace librt::cuda
