// Elementwise functions of one input.
#include "backends/vulkan/kernel.h"
#include "backends/vulkan/steps/functions.h"

namespace librt::vulkan {
namespace {

struct Parameters {
  Function function;
  float alpha = 0;
  float beta = 0;
};

Parameters parameters_of(const NodeView& node) {
  switch (node.kind()) {
    case OpKind::Abs: return {Function::Abs};
    case OpKind::Neg: return {Function::Neg};
    case OpKind::Exp: return {Function::Exp};
    case OpKind::Log: return {Function::Log};
    case OpKind::Sqrt: return {Function::Sqrt};
    case OpKind::Reciprocal: return {Function::Reciprocal};
    case OpKind::Sin: return {Function::Sin};
    case OpKind::Cos: return {Function::Cos};
    case OpKind::Tanh: return {Function::Tanh};
    case OpKind::Sigmoid: return {Function::Sigmoid};
    case OpKind::Relu: return {Function::Relu};
    case OpKind::Erf: return {Function::Erf};
    case OpKind::Floor: return {Function::Floor};
    case OpKind::Ceil: return {Function::Ceil};
    case OpKind::Round: return {Function::Round};
    case OpKind::Sign: return {Function::Sign};
    case OpKind::Not: return {Function::Not};
    case OpKind::Softplus: return {Function::Softplus};
    case OpKind::HardSwish: return {Function::HardSwish};
    case OpKind::Silu: return {Function::Silu};
    case OpKind::Atan: return {Function::Atan};
    case OpKind::LeakyRelu: return {Function::LeakyRelu, node.as<op::LeakyReluAttributes>().alpha};
    case OpKind::Elu: return {Function::Elu, node.as<op::EluAttributes>().alpha};
    case OpKind::Gelu:
      return {node.as<op::GeluAttributes>().tanh_approximation ? Function::GeluTanh : Function::Gelu};
    case OpKind::HardSigmoid: {
      const auto& attributes = node.as<op::HardSigmoidAttributes>();
      return {Function::HardSigmoid, attributes.alpha, attributes.beta};
    }
    case OpKind::Clip: {
      const auto& attributes = node.as<op::ClipAttributes>();
      return {Function::Clip, attributes.minimum, attributes.maximum};
    }
    default: return {Function::Identity};
  }
}

Result<KernelPtr> create_float(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const Parameters parameters = parameters_of(node);
  const int64_t count = ceil_div(node.output(0).elements(), 4);
  auto program = std::make_unique<Program>("unary");
  const DType dtype = node.dtype(0);
  program
      ->dispatch_each(dtype == DType::F32 ? Shader::unary : Shader::unary_halves, count,
                      cast(device).plan().elementwise_lanes)
      .spec(static_cast<uint32_t>(parameters.function))
      .spec(element_of(dtype))
      .push(count)
      .push(parameters.alpha)
      .push(parameters.beta)
      .read(0, in(0))
      .write(1, out(0));
  program->in_place(0);
  return finish(std::move(program));
}

Result<KernelPtr> create_integer(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const DType dtype = node.dtype(0);
  const Shader shader = dtype == DType::I32   ? Shader::unary_i32
                        : dtype == DType::I64 ? Shader::unary_i64
                                              : Shader::unary_u8;
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("unary");
  program->dispatch_each(shader, count, cast(device).plan().elementwise_lanes)
      .spec(static_cast<uint32_t>(parameters_of(node).function))
      .push(count)
      .read(0, in(0))
      .write(1, out(0));
  program->in_place(0);
  return finish(std::move(program));
}

constexpr DTypeSet kFloats{DType::F32, DType::F16, DType::BF16};
constexpr DTypeSet kInts{DType::I32, DType::I64, DType::U8};

#define RT_FLOAT_ROW(Name) \
  { OpKind::Name, "unary." #Name, kFloats, all_storable, create_float }
#define RT_INTEGER_ROW(Name) \
  { OpKind::Name, "unary_integer." #Name, kInts, all_storable, create_integer }

constexpr KernelRow kRows[] = {
    RT_FLOAT_ROW(Abs),
    RT_FLOAT_ROW(Neg),
    RT_FLOAT_ROW(Exp),
    RT_FLOAT_ROW(Log),
    RT_FLOAT_ROW(Sqrt),
    RT_FLOAT_ROW(Reciprocal),
    RT_FLOAT_ROW(Sin),
    RT_FLOAT_ROW(Cos),
    RT_FLOAT_ROW(Tanh),
    RT_FLOAT_ROW(Sigmoid),
    RT_FLOAT_ROW(Relu),
    RT_FLOAT_ROW(Erf),
    RT_FLOAT_ROW(Floor),
    RT_FLOAT_ROW(Ceil),
    RT_FLOAT_ROW(Round),
    RT_FLOAT_ROW(Sign),
    RT_FLOAT_ROW(Softplus),
    RT_FLOAT_ROW(LeakyRelu),
    RT_FLOAT_ROW(Elu),
    RT_FLOAT_ROW(HardSigmoid),
    RT_FLOAT_ROW(HardSwish),
    RT_FLOAT_ROW(Clip),
    RT_FLOAT_ROW(Gelu),
    RT_FLOAT_ROW(Silu),
    RT_FLOAT_ROW(Atan),
    RT_INTEGER_ROW(Abs),
    RT_INTEGER_ROW(Neg),
    RT_INTEGER_ROW(Sign),
    RT_INTEGER_ROW(Relu),
    {OpKind::Not, "unary_integer.Not", DTypeSet{DType::Bool}, all_storable, create_integer},
};

}  // namespace

std::span<const KernelRow> rows_unary() {
  return kRows;
}

}  // namespace librt::vulkan
