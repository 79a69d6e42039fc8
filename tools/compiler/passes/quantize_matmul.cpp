// Matmuls and convolutions of dequantized tensors, computed on integers.
#include <array>

#include "tools/compiler/passes/pattern.h"
#include "tools/compiler/passes/quantize_rewrites.h"

namespace librt::compiler {
namespace {

using Epilogue = op::EpilogueAttributes;

const Epilogue* own_epilogue(const Node& node) {
  return node.kind() == OpKind::Conv ? node.as<op::ConvAttributes>().epilogue.get()
                                     : node.as<op::MatMulAttributes>().epilogue.get();
}

ValueId transposed_last(GraphEdit& edit, ValueId x) {
  op::TransposeAttributes attributes;
  const int rank = edit.value(x).rank();
  for (int i = 0; i < rank; ++i) attributes.permutation.push_back(i);
  std::swap(attributes.permutation[static_cast<size_t>(rank - 1)],
            attributes.permutation[static_cast<size_t>(rank - 2)]);
  return edit.emit(attributes, {x});
}

Epilogue only_activation(const Epilogue& epilogue) {
  Epilogue only;
  only.activation = epilogue.activation;
  only.alpha = epilogue.alpha;
  only.beta = epilogue.beta;
  return only;
}

/// The operands of a Conv or MatMul that can be computed on integers.
struct Factors {
  Quantized x, weight;
  Epilogue epilogue;        ///< the node's own
  ValueId bias = kNoValue;  ///< a vector over the channels
  bool is_conv = false, transpose_x = false, transpose_weight = false;
};

std::optional<Factors> factors_of(GraphEdit& edit, NodeId id) {
  const Node& node = edit.node(id);
  const ValueId y = node.outputs[0];
  const auto x = whole_quantized(edit, node.inputs[0]), weight = quantized_of(edit, node.inputs[1]);
  if (!x || !weight || edit.value(y).dtype != DType::F32) return std::nullopt;
  Factors found{.x = *x, .weight = *weight, .is_conv = node.kind() == OpKind::Conv};
  if (const Epilogue* own = own_epilogue(node)) found.epilogue = *own;
  int channel_axis = 0;
  if (!found.is_conv) {
    found.transpose_x = node.as<op::MatMulAttributes>().transpose_a;
    found.transpose_weight = node.as<op::MatMulAttributes>().transpose_b;
    const int rank = edit.value(weight->quantized).rank();
    if (rank < 2 || edit.value(x->quantized).rank() < 2) return std::nullopt;
    channel_axis = found.transpose_weight ? rank - 2 : rank - 1;
  }
  if (weight->axis >= 0 && weight->axis != channel_axis) return std::nullopt;
  if (found.epilogue.has_bias) found.bias = node.inputs[2];
  if (found.bias != kNoValue &&
      (edit.value(found.bias).rank() != 1 || edit.value(found.bias).dims[0] != edit.value(y).dims.back()))
    return std::nullopt;
  return found;
}

}  // namespace

//   x8 - DQ -.                                    x8 ------.
//            Conv or MatMul - y        ->                  QuantizedConv or QuantizedMatMul - y
//   w8 - DQ -'                                    w8 ------'
//
// The result is f32 with scale = scale of x * scale of w. Where w's zero point is not 0, or w is not
// constant:
//
//   x8, w8 - ConvInteger or MatMulInteger - y32 - Requantize - y
//
// A bias and an activation of the node's epilogue are kept; after a residual, which the integer operators
// lack, the activation becomes a node again. What follows is fused when it is visited.
void quantize_matmul(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  const ValueId y = edit.node(id).outputs[0];
  const auto factors = factors_of(edit, id);
  if (!factors) return;
  const auto& [x, weight, epilogue, bias, is_conv, transpose_x, transpose_weight] = *factors;
  edit.name_after(id);
  const ValueId scale = edit.builder().mul(x.scale, weight.scale);
  const ValueId symmetric = symmetric_weight(edit, weight.quantized, weight.zero);
  ValueId left = x.quantized, right = symmetric != kNoValue ? symmetric : weight.quantized;
  if (transpose_x) left = transposed_last(edit, left);
  if (transpose_weight) right = transposed_last(edit, right);
  const bool is_active = epilogue.activation != op::Activation::None;
  const auto to_f32 = [&, &own = epilogue](auto attributes) {
    attributes.to = static_cast<uint8_t>(DType::F32);
    if (is_active && !own.has_residual)
      attributes.epilogue = std::make_unique<Epilogue>(only_activation(own));
    return attributes;
  };
  const auto conv = [&]() -> const op::ConvAttributes& { return edit.node(id).as<op::ConvAttributes>(); };
  ValueId result = kNoValue;
  if (symmetric == kNoValue) {
    const std::vector<ValueId> operands{left, right, x.zero, weight.zero};
    const ValueId sums = is_conv ? edit.emit(with_window<op::ConvIntegerAttributes>(conv()), operands)
                                 : edit.emit(op::MatMulIntegerAttributes{}, operands);
    result = edit.emit(to_f32(op::RequantizeAttributes{}), {sums, scale, bias});
  } else if (is_conv) {
    result = edit.emit(to_f32(with_window<op::QuantizedConvAttributes>(conv())),
                       {left, right, scale, x.zero, bias});
  } else {
    result = edit.emit(to_f32(op::QuantizedMatMulAttributes{}), {left, right, scale, x.zero, bias});
  }
  if (epilogue.has_residual) {
    result = edit.builder().add(result, inputs.back());
    if (is_active)
      result = edit.builder().emit_many(operator_of(function_call(&epilogue)), std::array{result}, 1)[0];
  }
  if (result != kNoValue) edit.replace(y, result);
}

//   x8, w8 - ConvInteger - y32 - Requantize - y8        ->        x8, w8 - QuantizedConv - y8
//
// likewise MatMulInteger; only where the weight is constant and symmetric, and nothing else reads y32.
void fuse_requantize(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  const NodeId matmul = edit.producer_id(inputs[0]);
  if (matmul == kNoNode || !is_inner(edit, inputs[0])) return;
  const bool is_conv = edit.node(matmul).kind() == OpKind::ConvInteger;
  if (!is_conv && edit.node(matmul).kind() != OpKind::MatMulInteger) return;
  const Node& factors = edit.node(matmul);
  const ValueId x = factors.inputs[0], x_zero = edit.input(factors, 2), weight_zero = edit.input(factors, 3);
  const ValueId weight = symmetric_weight(edit, factors.inputs[1], weight_zero);
  if (weight == kNoValue || (x_zero != kNoValue && edit.value(x_zero).rank() != 0)) return;
  std::vector<ValueId> joined = {x, weight, inputs[1], x_zero};
  joined.insert(joined.end(), inputs.begin() + 2, inputs.end());
  const auto finish = [&](auto attributes) {
    const auto& own = edit.node(id).as<op::RequantizeAttributes>();
    attributes.to = own.to;
    if (own.epilogue) attributes.epilogue = std::make_unique<Epilogue>(*own.epilogue);
    edit.rewrite(id, std::move(attributes), joined);
  };
  if (is_conv)
    finish(with_window<op::QuantizedConvAttributes>(edit.node(matmul).as<op::ConvIntegerAttributes>()));
  else
    finish(op::QuantizedMatMulAttributes{});
}

}  // namespace librt::compiler
