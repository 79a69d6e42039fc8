#include "runtime/geometry/function.h"

#include <limits>

namespace librt {

// RT_OPERATOR(Name) for every function that is an operator too.
#define RT_OPERATOR_Floats(Name) RT_OPERATOR(Name)
#define RT_OPERATOR_Numbers(Name) RT_OPERATOR(Name)
#define RT_OPERATOR_Booleans(Name) RT_OPERATOR(Name)
#define RT_OPERATOR_None(Name)
#define RT_FUNCTION(Name, operands) RT_OPERATOR_##operands(Name)

Function function_of(OpKind kind) noexcept {
  switch (kind) {
#define RT_OPERATOR(Name) \
  case OpKind::Name:      \
    return Function::Name;
#include "runtime/core/function_list.inc"
#undef RT_OPERATOR
    default: return Function::Identity;
  }
}

Function function_of(op::Activation activation) noexcept {
  using op::Activation;
  switch (activation) {
    case Activation::None: break;
    case Activation::Relu: return Function::Relu;
    case Activation::Clip: return Function::Clip;
    case Activation::Sigmoid: return Function::Sigmoid;
    case Activation::Tanh: return Function::Tanh;
    case Activation::HardSwish: return Function::HardSwish;
    case Activation::Silu: return Function::Silu;
    case Activation::Gelu: return Function::Gelu;
    case Activation::GeluTanh: return Function::GeluTanh;
    case Activation::LeakyRelu: return Function::LeakyRelu;
    case Activation::HardSigmoid: return Function::HardSigmoid;
  }
  return Function::Identity;
}

Function function_of(op::RecurrentActivation activation) noexcept {
  using Cell = op::RecurrentActivation;
  switch (activation) {
    case Cell::Default: break;
    case Cell::Relu: return Function::Relu;
    case Cell::Tanh: return Function::Tanh;
    case Cell::Sigmoid: return Function::Sigmoid;
    case Cell::Affine: return Function::Affine;
    case Cell::LeakyRelu: return Function::LeakyRelu;
    case Cell::ThresholdedRelu: return Function::ThresholdedRelu;
    case Cell::ScaledTanh: return Function::ScaledTanh;
    case Cell::HardSigmoid: return Function::HardSigmoid;
    case Cell::Elu: return Function::Elu;
    case Cell::Softsign: return Function::Softsign;
    case Cell::Softplus: return Function::Softplus;
  }
  return Function::Identity;
}

std::optional<op::Activation> activation_of(Function function) noexcept {
  for (int i = 0; i <= static_cast<int>(op::Activation::MAX); ++i)
    if (function_of(static_cast<op::Activation>(i)) == function) return static_cast<op::Activation>(i);
  return std::nullopt;
}

FunctionCall function_call(const Node& node) noexcept {
  switch (node.kind()) {
    case OpKind::LeakyRelu: return {Function::LeakyRelu, node.as<op::LeakyReluAttributes>().alpha};
    case OpKind::Elu: return {Function::Elu, node.as<op::EluAttributes>().alpha};
    case OpKind::HardSigmoid: {
      const auto& attributes = node.as<op::HardSigmoidAttributes>();
      return {Function::HardSigmoid, attributes.alpha, attributes.beta};
    }
    case OpKind::Clip: {
      const auto& attributes = node.as<op::ClipAttributes>();
      return {Function::Clip, attributes.minimum, attributes.maximum};
    }
    case OpKind::Gelu: return {has_other_form(node) ? Function::GeluTanh : Function::Gelu};
    default: return {function_of(node.kind())};
  }
}

FunctionCall function_call(const op::EpilogueAttributes* epilogue) noexcept {
  if (epilogue == nullptr) return {};
  return {function_of(epilogue->activation), epilogue->alpha, epilogue->beta};
}

FunctionCall with_open_bounds(FunctionCall call) noexcept {
  constexpr float kMost = std::numeric_limits<float>::max(),
                  kInfinity = std::numeric_limits<float>::infinity();
  if (call.function != Function::Clip) return call;
  if (call.alpha == -kMost) call.alpha = -kInfinity;
  if (call.beta == kMost) call.beta = kInfinity;
  return call;
}

bool has_other_form(const Node& node) noexcept {
  switch (node.kind()) {
    case OpKind::Gelu: return node.as<op::GeluAttributes>().tanh_approximation;
    case OpKind::GeluGrad: return node.as<op::GeluGradAttributes>().tanh_approximation;
    case OpKind::Mod: return node.as<op::ModAttributes>().truncated;
    case OpKind::BitShift: return node.as<op::BitShiftAttributes>().left;
    default: return false;
  }
}

std::optional<BinaryFunction> binary_function(OpKind kind, bool other_form) noexcept {
  switch (kind) {
#define RT_SAME(Name) \
  case OpKind::Name: return BinaryFunction::Name;
    RT_SAME(Add)
    RT_SAME(Sub)
    RT_SAME(Mul)
    RT_SAME(Div)
    RT_SAME(Pow)
    RT_SAME(Minimum)
    RT_SAME(Maximum)
    RT_SAME(SiluGrad)
    RT_SAME(ReluGrad)
    RT_SAME(And)
    RT_SAME(Or)
    RT_SAME(Xor)
    RT_SAME(BitwiseAnd)
    RT_SAME(BitwiseOr)
    RT_SAME(BitwiseXor)
#undef RT_SAME
    case OpKind::Mod: return other_form ? BinaryFunction::ModTruncated : BinaryFunction::Mod;
    case OpKind::GeluGrad: return other_form ? BinaryFunction::GeluTanhGrad : BinaryFunction::GeluGrad;
    case OpKind::BitShift: return other_form ? BinaryFunction::ShiftLeft : BinaryFunction::ShiftRight;
    default: return std::nullopt;
  }
}

std::optional<CompareFunction> compare_function(OpKind kind) noexcept {
  switch (kind) {
#define RT_SAME(Name) \
  case OpKind::Name: return CompareFunction::Name;
    RT_SAME(Equal)
    RT_SAME(Less)
    RT_SAME(LessOrEqual)
    RT_SAME(Greater)
    RT_SAME(GreaterOrEqual)
#undef RT_SAME
    default: return std::nullopt;
  }
}

OpAttributes operator_of(const FunctionCall& call) {
  const auto with = [&](auto attributes, float decltype(attributes)::*first,
                        float decltype(attributes)::*second = nullptr) {
    attributes.*first = call.alpha;
    if (second != nullptr) attributes.*second = call.beta;
    return make_op(attributes);
  };
  switch (call.function) {
    case Function::LeakyRelu: return with(op::LeakyReluAttributes{}, &op::LeakyReluAttributes::alpha);
    case Function::Elu: return with(op::EluAttributes{}, &op::EluAttributes::alpha);
    case Function::HardSigmoid:
      return with(op::HardSigmoidAttributes{}, &op::HardSigmoidAttributes::alpha,
                  &op::HardSigmoidAttributes::beta);
    case Function::Clip:
      return with(op::ClipAttributes{}, &op::ClipAttributes::minimum, &op::ClipAttributes::maximum);
    case Function::GeluTanh: {
      op::GeluAttributes gelu;
      gelu.tanh_approximation = true;
      return make_op(gelu);
    }
    default: break;
  }
  switch (call.function) {
#define RT_OPERATOR(Name) \
  case Function::Name:    \
    return make_op(op::Name##Attributes{});
#include "runtime/core/function_list.inc"
#undef RT_OPERATOR
    default: return make_op(op::IdentityAttributes{});
  }
}

}  // namespace librt
