// batch_norm: folds a constant factor and offset per channel into the preceding Conv's or MatMul's weights.
//
//   BatchNorm(Conv(x, W) + b) = Conv(x, W f) + (b - mean) f + bias
//     with f = scale / sqrt(variance + epsilon)
//
// and likewise for Mul, Div, Add and Sub by a constant per channel, after Conv, ConvTranspose and MatMul.
// Reassociates: the factor is applied to the weights (in double, rounded once) instead of to the results.
// Weights under training are states, not constants, and stay as they are.
#include <algorithm>
#include <functional>

#include "runtime/core/element.h"
#include "tools/compiler/passes/affine.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

/// The channel of each element of a weight is (i / inner) % channels, or for ConvTranspose with groups
/// group(i / outer) channels_per_group + (i % channels_per_group).
struct LinearLayer {
  ValueId weight = kNoValue;
  ValueId bias = kNoValue;
  size_t bias_input = 2;
  int64_t channels = 0;
  std::function<int64_t(int64_t)> channel_of;
};

std::optional<LinearLayer> linear_layer_of(GraphEdit& edit, const Node& node) {
  LinearLayer layer;
  if (node.inputs.size() < 2 || !edit.is_constant(node.inputs[1])) return std::nullopt;
  layer.weight = node.inputs[1];
  if (edit.use_count(layer.weight) != 1 || !is_float(edit.value(layer.weight).dtype)) return std::nullopt;
  const Shape weight = edit.value(layer.weight).info().shape;
  const op::EpilogueAttributes* epilogue = nullptr;
  switch (node.kind()) {
    case OpKind::Conv: {
      epilogue = node.as<op::ConvAttributes>().epilogue.get();
      layer.channels = weight[0];
      layer.channel_of = [per = weight.elements(1, weight.rank())](int64_t i) { return i / per; };
      break;
    }
    case OpKind::MatMul: {
      const auto& attributes = node.as<op::MatMulAttributes>();
      epilogue = attributes.epilogue.get();
      if (weight.rank() < 2) return std::nullopt;
      layer.channels = weight[weight.rank() - (attributes.transpose_b ? 2 : 1)];
      layer.channel_of = [inner = attributes.transpose_b ? weight.back() : 1,
                          channels = layer.channels](int64_t i) { return i / inner % channels; };
      break;
    }
    case OpKind::ConvTranspose: {
      const int64_t groups = node.as<op::ConvTransposeAttributes>().groups;
      const int64_t per_group = weight.back();
      layer.channels = per_group * groups;
      layer.bias_input = 3;
      layer.bias = edit.input(node, 3);
      layer.channel_of = [per_group, each = weight.elements() / std::max<int64_t>(groups, 1)](int64_t i) {
        return i / each * per_group + i % per_group;
      };
      break;
    }
    default: return std::nullopt;
  }
  if (!has_plain_epilogue(epilogue)) return std::nullopt;
  if (epilogue != nullptr && epilogue->has_bias) layer.bias = node.inputs[2];
  if (layer.channels == 0 ||
      (layer.bias != kNoValue && !numbers_per_channel(edit, layer.bias, layer.channels)))
    return std::nullopt;
  return layer;
}

ValueId scaled_weight(GraphEdit& edit, const LinearLayer& layer, const Affine& affine) {
  const Value& weight = edit.value(layer.weight);
  const TensorInfo info = weight.info();
  const std::string name = weight.name;
  std::vector<std::byte> bytes(info.bytes());
  for (int64_t i = 0; i < info.elements(); ++i)
    store_element(bytes.data(), info.dtype, i,
                  load_element(weight.data.data, info.dtype, i) *
                      affine.factor[static_cast<size_t>(layer.channel_of(i))]);
  const ValueId scaled = edit.builder().constant(info, Blob::own(std::move(bytes)));
  if (scaled != kNoValue) edit.builder().graph()[scaled].name = name;
  return scaled;
}

ValueId moved_bias(GraphEdit& edit, const LinearLayer& layer, const Affine& affine, std::string name) {
  std::vector<double> bias(static_cast<size_t>(layer.channels), 0);
  if (layer.bias != kNoValue) bias = *numbers_per_channel(edit, layer.bias, layer.channels);
  const DType dtype = edit.value(layer.bias != kNoValue ? layer.bias : layer.weight).dtype;
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = bias[i] * affine.factor[i] + affine.offset[i];
  return constant_of(edit, {.dtype = dtype, .shape = {layer.channels}}, bias, std::move(name));
}

template <class Attributes>
void mark_bias(OpAttributes& op) {
  auto& epilogue = static_cast<Attributes*>(op.value)->epilogue;
  if (epilogue == nullptr) epilogue = std::make_unique<op::EpilogueAttributes>();
  epilogue->has_bias = true;
}

void absorb(GraphEdit& edit, NodeId id) {
  for (size_t operand = 0; operand < 2; ++operand) {
    const Node& node = edit.node(id);
    if (operand >= node.inputs.size() || (operand == 1 && node.kind() == OpKind::BatchNorm)) return;
    const ValueId layer_value = node.inputs[operand];
    const Node* producer = edit.producer(layer_value);
    if (producer == nullptr || edit.use_count(layer_value) != 1 ||
        !edit.same_info(layer_value, node.outputs[0]))
      continue;
    const auto layer = linear_layer_of(edit, *producer);
    if (!layer) continue;
    const auto affine = affine_of(edit, node, operand, layer->channels);
    if (!affine) continue;
    const ValueId result = node.outputs[0];
    OpAttributes op = producer->op;
    std::vector<ValueId> inputs = producer->inputs;
    const std::string bias_name = text(producer->name, ".bias");
    edit.name_after(edit.producer_id(layer_value));
    const bool scales =
        std::any_of(affine->factor.begin(), affine->factor.end(), [](double f) { return f != 1; });
    if (scales) inputs[1] = scaled_weight(edit, *layer, *affine);
    inputs.resize(std::max(inputs.size(), layer->bias_input + 1), kNoValue);
    inputs[layer->bias_input] = moved_bias(edit, *layer, *affine, bias_name);
    if (op.type == OpKind::Conv) mark_bias<op::ConvAttributes>(op);
    if (op.type == OpKind::MatMul) mark_bias<op::MatMulAttributes>(op);
    const ValueId fused = edit.builder().emit_many(std::move(op), inputs, 1)[0];
    if (fused != kNoValue) edit.replace(result, fused);
    return;
  }
}

}  // namespace

Status batch_norm(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) {
    if (!edit.is_alive(id)) continue;
    switch (edit.node(id).kind()) {
      case OpKind::BatchNorm:
      case OpKind::Mul:
      case OpKind::Div:
      case OpKind::Add:
      case OpKind::Sub: absorb(edit, id); break;
      default: break;
    }
  }
  return edit.finish();
}

}  // namespace librt::compiler
