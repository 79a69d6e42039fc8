// Nodes after a quantized matmul or convolution become part of it: scale, bias, activation, QuantizeLinear.
//
// In the pictures QMatMul is any QuantizedMatMul, QuantizedConv or Requantize with an f32 result that one
// node reads.
#include <algorithm>
#include <array>

#include "tools/compiler/passes/pattern.h"
#include "tools/compiler/passes/quantize_rewrites.h"

namespace librt::compiler {
namespace {

using Epilogue = op::EpilogueAttributes;

/// A Requantize, QuantizedConv or QuantizedMatMul with a result in f32 that one node reads.
struct Open {
  OpAttributes op;
  std::vector<ValueId> inputs;  ///< all seven, or five
  size_t scale = 1;             ///< index; bias, y_scale and y_zero_point follow
  size_t bias() const { return scale == 1 ? 2 : 4; }

  template <class F>
  auto& visit(F f) {
    switch (op.type) {
      case OpKind::QuantizedConv: return f(*static_cast<op::QuantizedConvAttributes*>(op.value));
      case OpKind::QuantizedMatMul: return f(*static_cast<op::QuantizedMatMulAttributes*>(op.value));
      default: return f(*static_cast<op::RequantizeAttributes*>(op.value));
    }
  }
  std::unique_ptr<Epilogue>& epilogue() {
    return visit([](auto& a) -> auto& { return a.epilogue; });
  }
  uint8_t& to() {
    return visit([](auto& a) -> auto& { return a.to; });
  }
};

std::optional<Open> open_matmul(GraphEdit& edit, ValueId y) {
  const Node* node = edit.producer(y);
  if (node == nullptr || edit.value(y).dtype != DType::F32 || !is_inner(edit, y)) return std::nullopt;
  const bool sums = node->kind() == OpKind::Requantize;
  if (!sums && node->kind() != OpKind::QuantizedConv && node->kind() != OpKind::QuantizedMatMul)
    return std::nullopt;
  Open open{.op = node->op, .inputs = node->inputs, .scale = sums ? 1u : 2u};
  open.inputs.resize(sums ? 5 : 7, kNoValue);
  return open;
}

/// Movements between a value and the first one before it that none of these makes, from the last one to the
/// first; each reads the one before alone.
struct Moves {
  std::vector<NodeId> nodes;
  ValueId source = kNoValue;
};

Moves moves_before(GraphEdit& edit, ValueId at, std::initializer_list<OpKind> kinds) {
  Moves moves{.nodes = {}, .source = at};
  for (;;) {
    const NodeId id = edit.producer_id(moves.source);
    if (id == kNoNode || !is_inner(edit, moves.source) ||
        std::find(kinds.begin(), kinds.end(), edit.node(id).kind()) == kinds.end())
      return moves;
    moves.nodes.push_back(id);
    moves.source = edit.node(id).inputs[0];
  }
}

/// Replaces `last`, after the movements, by the quantized operator with what was fused into it, and the
/// movements.
bool put(GraphEdit& edit, Open open, const Moves& moves, NodeId last) {
  edit.name_after(edit.producer_id(moves.source));
  ValueId y = edit.builder().emit_many(std::move(open.op), open.inputs, 1)[0];
  for (size_t i = moves.nodes.size(); i-- > 0;) {
    std::vector<ValueId> inputs = edit.node(moves.nodes[i]).inputs;
    inputs[0] = y;
    edit.name_after(moves.nodes[i]);
    y = edit.builder().emit_many(OpAttributes(edit.node(moves.nodes[i]).op), inputs, 1)[0];
  }
  if (y != kNoValue) edit.replace(edit.node(last).outputs[0], y);
  return y != kNoValue;
}

/// A vector over the last axis of y, or a scalar, as an operand of a quantized operator; kNoValue for
/// anything else.
ValueId per_channel(GraphEdit& edit, ValueId id, ValueId y, bool one_number) {
  const Value& value = edit.value(id);
  if (!value.is_static() || value.dtype != DType::F32) return kNoValue;
  const Shape shape = value.info().shape;
  if (one_number && shape.elements() == 1)
    return shape.rank() == 0 ? id : edit.builder().reshape(id, edit.builder().ints({}));
  const int64_t channels = edit.value(y).dims.back().extent;
  if (shape.rank() == 0 || shape.elements() != channels || shape.back() != channels) return kNoValue;
  return shape.rank() == 1 ? id : edit.builder().reshape(id, edit.builder().ints(std::array{channels}));
}

/// Whether the value is a sum of products of integers, cast to f32.
ValueId integer_sums(GraphEdit& edit, ValueId id) {
  const Node* cast = edit.producer(id, OpKind::Cast);
  if (cast == nullptr) return kNoValue;
  const ValueId sums = cast->inputs[0];
  const bool found = edit.producer(sums, OpKind::MatMulInteger) != nullptr ||
                     edit.producer(sums, OpKind::ConvInteger) != nullptr;
  return found ? sums : kNoValue;
}

}  // namespace

//   y32 - Cast - Mul by scale        ->        y32 - Requantize(scale)
//   QMatMul(s) - Mul by scale        ->        QMatMul(s * scale)
//
// with y32 of ConvInteger or MatMulInteger, and a QMatMul that has no bias and no activation yet.
void take_scale(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  const ValueId y = edit.node(id).outputs[0];
  for (size_t i = 0; i < 2; ++i) {
    const ValueId matmul = inputs[i], factor = inputs[1 - i];
    if (!edit.same_info(matmul, y) || !is_inner(edit, matmul)) continue;
    const ValueId sums = integer_sums(edit, matmul);
    const bool of_sums = sums != kNoValue;
    auto open = open_matmul(edit, matmul);
    if (!of_sums && (!open || open->epilogue() != nullptr || open->inputs[open->bias()] != kNoValue))
      continue;
    edit.name_after(id);
    const ValueId scale = per_channel(edit, factor, y, true);
    if (scale == kNoValue) continue;
    if (of_sums) {
      op::RequantizeAttributes attributes;
      attributes.to = static_cast<uint8_t>(DType::F32);
      const ValueId fresh = edit.emit(std::move(attributes), {sums, scale});
      if (fresh != kNoValue) edit.replace(y, fresh);
    } else {
      open->inputs[open->scale] = edit.builder().mul(open->inputs[open->scale], scale);
      put(edit, std::move(*open), {.nodes = {}, .source = matmul}, id);
    }
    return;
  }
}

//   QMatMul - Add a vector over the channels        ->        QMatMul(bias)
void take_bias(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  for (size_t i = 0; i < 2; ++i) {
    auto open = open_matmul(edit, inputs[i]);
    if (!open || open->epilogue() != nullptr || open->inputs[open->bias()] != kNoValue ||
        !edit.same_info(inputs[i], edit.node(id).outputs[0]))
      continue;
    edit.name_after(id);
    const ValueId bias = per_channel(edit, inputs[1 - i], inputs[i], false);
    if (bias == kNoValue) continue;
    open->inputs[open->bias()] = bias;
    put(edit, std::move(*open), {.nodes = {}, .source = inputs[i]}, id);
    return;
  }
}

//   QMatMul - Relu (or another activation of an epilogue)        ->        QMatMul(activation)
//   QMatMul - Reshape - Relu                                     ->        QMatMul(activation) - Reshape
//
// with any chain of Reshape and Transpose.
void take_activation(GraphEdit& edit, NodeId id) {
  const auto activation = activation_of(edit.node(id));
  if (!activation) return;
  const Moves moves = moves_before(edit, edit.node(id).inputs[0], {OpKind::Reshape, OpKind::Transpose});
  auto open = open_matmul(edit, moves.source);
  if (!open || open->epilogue() != nullptr) return;
  open->epilogue() = std::make_unique<Epilogue>(*activation);
  put(edit, std::move(*open), moves, id);
}

//   QMatMul - Q - y8                      ->        QMatMul(scale and zero point of y8) - y8
//   QMatMul - MaxPool - Reshape - Q - y8  ->        QMatMul(scale and zero point of y8) - MaxPool - Reshape -
//   y8
//
// with any chain of MaxPool, Reshape and Transpose, which then moves 8 bits.
bool take_quantize(GraphEdit& edit, const Target& target) {
  const Moves moves = moves_before(edit, edit.node(target.node).inputs[0],
                                   {OpKind::MaxPool, OpKind::Reshape, OpKind::Transpose});
  auto open = open_matmul(edit, moves.source);
  if (!open) return false;
  open->to() = static_cast<uint8_t>(target.to);
  open->inputs[open->bias() + 1] = target.scale;
  open->inputs[open->bias() + 2] = target.zero;
  return put(edit, std::move(*open), moves, target.node);
}

}  // namespace librt::compiler
