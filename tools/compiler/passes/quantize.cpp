// quantize: operators between DequantizeLinear and QuantizeLinear are computed on integers.
//
//   matmul, conv   QuantizeLinear(activation(Conv or MatMul(DequantizeLinear x, DequantizeLinear weight)
//                  + bias)) becomes one QuantizedConv or QuantizedMatMul; where the weight's zero point is
//                  not 0, or the weight is not constant, ConvInteger or MatMulInteger and a Requantize.
//                  Without a QuantizeLinear after it, the result is f32.
//   ConvTranspose  whose windows lie side by side becomes a QuantizedMatMul and movements
//   movements      and MaxPool move above DequantizeLinear
//   functions      of one quantized tensor become a Lookup, also a change of the scale
//   channels       of one quantized tensor, each with a factor and an offset, become a Requantize
//   additions      of two quantized tensors become a QuantizedAdd
//
// The rewrites are in quantize_rewrites.h. Not exact: a result may be one step off, because it is rounded
// once.
#include <algorithm>

#include "tools/compiler/passes/passes.h"
#include "tools/compiler/passes/quantize_rewrites.h"

namespace librt::compiler {
namespace {

constexpr DTypeSet kBytes{DType::U8, DType::I8};

/// Whether it is absent or a scalar.
bool is_number(GraphEdit& edit, ValueId id) {
  return id == kNoValue || edit.value(id).rank() == 0;
}

}  // namespace

bool is_inner(GraphEdit& edit, ValueId id) {
  return edit.use_count(id) == 1 && !edit.is_output(id);
}

std::optional<Quantized> quantized_of(GraphEdit& edit, ValueId id) {
  const Node* node = edit.producer(id, OpKind::DequantizeLinear);
  if (node == nullptr) return std::nullopt;
  const auto& attributes = node->as<op::DequantizeLinearAttributes>();
  const ValueId quantized = node->inputs[0], scale = node->inputs[1], zero = edit.input(*node, 2);
  if (attributes.block_size != 0 || edit.value(id).dtype != DType::F32) return std::nullopt;
  if (!kBytes.contains(edit.value(quantized).dtype) || edit.value(scale).dtype != DType::F32)
    return std::nullopt;
  Quantized found{quantized, scale, zero, -1};
  if (is_number(edit, scale)) return found;
  const int rank = edit.value(quantized).rank();
  found.axis = attributes.axis < 0 ? attributes.axis + rank : attributes.axis;
  return edit.value(scale).rank() == 1 ? std::optional(found) : std::nullopt;
}

std::optional<Quantized> whole_quantized(GraphEdit& edit, ValueId id) {
  auto found = quantized_of(edit, id);
  return found && found->axis < 0 ? found : std::nullopt;
}

std::optional<Target> target_of(GraphEdit& edit, NodeId id) {
  if (id == kNoNode || edit.node(id).kind() != OpKind::QuantizeLinear) return std::nullopt;
  const Node& node = edit.node(id);
  const auto& attributes = node.as<op::QuantizeLinearAttributes>();
  const Target target{id, node.inputs[1], edit.input(node, 2), static_cast<DType>(attributes.to)};
  const bool fits = attributes.block_size == 0 && kBytes.contains(target.to) &&
                    is_number(edit, target.scale) && edit.value(node.inputs[0]).dtype == DType::F32;
  return fits ? std::optional(target) : std::nullopt;
}

ValueId zero_or(GraphEdit& edit, ValueId zero, DType dtype) {
  return zero != kNoValue ? zero : edit.builder().scalar(0, dtype);
}

ValueId symmetric_weight(GraphEdit& edit, ValueId quantized, ValueId zero) {
  if (!edit.is_constant(quantized)) return kNoValue;
  const bool flipped = edit.value(quantized).dtype == DType::U8;
  if (zero == kNoValue ? flipped : edit.uniform(zero).value_or(-1) != (flipped ? 128 : 0)) return kNoValue;
  if (!flipped) return quantized;
  const Blob data = edit.value(quantized).data;
  TensorInfo info = edit.value(quantized).info();
  info.dtype = DType::I8;
  std::vector<std::byte> bytes(data.data, data.data + data.size);
  for (std::byte& byte : bytes) byte ^= std::byte{0x80};
  return edit.builder().constant(info, Blob::own(std::move(bytes)));
}

namespace {

void quantize_node(GraphEdit& edit, NodeId id) {
  switch (edit.node(id).kind()) {
    case OpKind::Conv:
    case OpKind::MatMul: return quantize_matmul(edit, id);
    case OpKind::ConvTranspose: return quantize_conv_transpose(edit, id);
    case OpKind::Mul: return take_scale(edit, id);
    case OpKind::Add: return take_bias(edit, id);
    case OpKind::Requantize: return fuse_requantize(edit, id);
    case OpKind::QuantizeLinear:
      if (const auto target = target_of(edit, id))
        if (!take_quantize(edit, *target) && !quantize_function(edit, *target) &&
            !quantize_affine(edit, *target) && !quantize_sum(edit, *target))
          quantize_concat(edit, *target);
      return;
    default:
      if (moves_quantized(edit.node(id).kind()))
        move_quantized(edit, id);
      else
        take_activation(edit, id);
  }
}

}  // namespace

Status quantize(Graph& graph, const PassContext& context) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.kind() == OpKind::DequantizeLinear || node.kind() == OpKind::MatMulInteger ||
           node.kind() == OpKind::ConvInteger;
  });
  if (!any) return {};
  RT_TRY(move_constants(graph, context));
  RT_TRY(fold_known(graph, context));
  GraphEdit edit(graph, context.states, context.inferred);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id)
    if (edit.is_alive(id)) quantize_node(edit, id);
  return edit.finish();
}

}  // namespace librt::compiler
