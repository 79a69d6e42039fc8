// quantize: operators between DequantizeLinear and QuantizeLinear are computed on integers.
//
//   matmul, conv   QuantizeLinear(activation(Conv or MatMul(DequantizeLinear x, DequantizeLinear weight)
//                  + bias)) becomes one QuantizedConv or QuantizedMatMul; where the weight's zero point is
//                  not 0, or the weight is not constant, ConvInteger or MatMulInteger and a Requantize.
//                  Without a QuantizeLinear after it, the result is f32.
//   movements      and MaxPool move above DequantizeLinear
//   functions      of one quantized tensor become a Lookup, also a change of the scale
//   additions      of two quantized tensors become a QuantizedAdd
//
// Not exact: a result may be one step off, because it is rounded once.
#include <algorithm>
#include <array>

#include "runtime/geometry/quantization.h"
#include "runtime/ops/evaluate.h"
#include "runtime/ops/page.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/passes/pattern.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler {
namespace {

using Epilogue = op::EpilogueAttributes;

constexpr DTypeSet kBytes{DType::U8, DType::I8};

/// A quantized tensor: its real values are scale (quantized value - zero); zero may be kNoValue.
struct Quantized {
  ValueId quantized = kNoValue, scale = kNoValue, zero = kNoValue;
  int64_t axis = -1;  ///< axis of a vector of scales
};

/// Whether one node reads the value, and nothing else.
bool is_inner(GraphEdit& edit, ValueId id) {
  return edit.use_count(id) == 1 && !edit.is_output(id);
}

bool is_number(GraphEdit& edit, ValueId id) {
  return id == kNoValue || edit.value(id).rank() == 0;
}

/// The operands of a DequantizeLinear from 8 bits to f32.
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

/// The same with one scale for the whole tensor.
std::optional<Quantized> whole_quantized(GraphEdit& edit, ValueId id) {
  auto found = quantized_of(edit, id);
  return found && found->axis < 0 ? found : std::nullopt;
}

/// The QuantizeLinear that is the only reader of a value, with one scale for the whole tensor.
struct Target {
  NodeId node = kNoNode;
  ValueId scale = kNoValue, zero = kNoValue;
  DType to = DType::F32;
};

std::optional<Target> target_of(GraphEdit& edit, NodeId id) {
  if (id == kNoNode || edit.node(id).kind() != OpKind::QuantizeLinear) return std::nullopt;
  const Node& node = edit.node(id);
  const auto& attributes = node.as<op::QuantizeLinearAttributes>();
  const Target target{id, node.inputs[1], edit.input(node, 2), static_cast<DType>(attributes.to)};
  const bool fits = attributes.block_size == 0 && kBytes.contains(target.to) &&
                    is_number(edit, target.scale) && edit.value(node.inputs[0]).dtype == DType::F32;
  return fits ? std::optional(target) : std::nullopt;
}

/// Whether two values are the same, or constants with the same bytes; absent zero points are 0.
bool same_number(GraphEdit& edit, ValueId a, ValueId b) {
  if (a == b) return true;
  const auto zero = [&](ValueId id) { return id == kNoValue || edit.uniform(id).value_or(1) == 0; };
  if (a == kNoValue || b == kNoValue) return zero(a) && zero(b);
  if (!edit.is_constant(a) || !edit.is_constant(b) || edit.value(a).dtype != edit.value(b).dtype)
    return false;
  const auto left = edit.uniform(a), right = edit.uniform(b);
  return left && right && *left == *right;
}

ValueId zero_or(GraphEdit& edit, ValueId zero, DType dtype) {
  return zero != kNoValue ? zero : edit.builder().scalar(0, dtype);
}

// --- MatMul and Conv

/// A constant weight as i8, if its zero point is then 0.
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

const Epilogue* epilogue_of(const Node& node) {
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

template <class Attributes>
Attributes with_window(const auto& from) {
  Attributes attributes;
  attributes.strides = from.strides;
  attributes.pads = from.pads;
  attributes.dilations = from.dilations;
  attributes.groups = from.groups;
  return attributes;
}

/// Replaces a Conv or MatMul of two dequantized tensors, with its bias, by an integer one with an f32 result.
/// What follows is fused when it is visited.
void quantize_matmul(GraphEdit& edit, NodeId id) {
  const bool is_conv = edit.node(id).kind() == OpKind::Conv;
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  const ValueId y = edit.node(id).outputs[0];
  const auto x = whole_quantized(edit, inputs[0]), weight = quantized_of(edit, inputs[1]);
  if (!x || !weight || edit.value(y).dtype != DType::F32) return;
  Epilogue epilogue;
  if (const Epilogue* own = epilogue_of(edit.node(id))) epilogue = *own;
  bool transpose_x = false, transpose_weight = false;
  int channel_axis = 0;
  if (!is_conv) {
    transpose_x = edit.node(id).as<op::MatMulAttributes>().transpose_a;
    transpose_weight = edit.node(id).as<op::MatMulAttributes>().transpose_b;
    const int rank = edit.value(weight->quantized).rank();
    if (rank < 2 || edit.value(x->quantized).rank() < 2) return;
    channel_axis = transpose_weight ? rank - 2 : rank - 1;
  }
  if (weight->axis >= 0 && weight->axis != channel_axis) return;
  const ValueId bias = epilogue.has_bias ? inputs[2] : kNoValue;
  if (bias != kNoValue &&
      (edit.value(bias).rank() != 1 || edit.value(bias).dims[0] != edit.value(y).dims.back()))
    return;
  edit.name_after(id);
  const ValueId scale = edit.builder().mul(x->scale, weight->scale);
  const ValueId symmetric = symmetric_weight(edit, weight->quantized, weight->zero);
  ValueId left = x->quantized, right = symmetric != kNoValue ? symmetric : weight->quantized;
  if (transpose_x) left = transposed_last(edit, left);
  if (transpose_weight) right = transposed_last(edit, right);
  // After an addition that is not fused, the activation becomes a separate node again.
  const bool active = epilogue.activation != op::Activation::None;
  const auto to_f32 = [&](auto attributes) {
    attributes.to = static_cast<uint8_t>(DType::F32);
    if (active && !epilogue.has_residual)
      attributes.epilogue = std::make_unique<Epilogue>(only_activation(epilogue));
    return attributes;
  };
  const auto conv = [&]() -> const op::ConvAttributes& { return edit.node(id).as<op::ConvAttributes>(); };
  ValueId result = kNoValue;
  if (symmetric == kNoValue) {
    const std::vector<ValueId> factors{left, right, x->zero, weight->zero};
    const ValueId sums = is_conv ? edit.emit(with_window<op::ConvIntegerAttributes>(conv()), factors)
                                 : edit.emit(op::MatMulIntegerAttributes{}, factors);
    result = edit.emit(to_f32(op::RequantizeAttributes{}), {sums, scale, bias});
  } else if (is_conv) {
    result = edit.emit(to_f32(with_window<op::QuantizedConvAttributes>(conv())),
                       {left, right, scale, x->zero, bias});
  } else {
    result = edit.emit(to_f32(op::QuantizedMatMulAttributes{}), {left, right, scale, x->zero, bias});
  }
  if (epilogue.has_residual) {
    result = edit.builder().add(result, inputs.back());
    if (active) result = edit.builder().emit_many(activation_node(epilogue), std::array{result}, 1)[0];
  }
  if (result != kNoValue) edit.replace(y, result);
}

/// Merges a Requantize into the integer matmul or convolution that only it reads, if its weight is constant
/// and symmetric.
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
    edit.rewrite(id, std::move(attributes), std::move(joined));
  };
  if (is_conv)
    finish(with_window<op::QuantizedConvAttributes>(edit.node(matmul).as<op::ConvIntegerAttributes>()));
  else
    finish(op::QuantizedMatMulAttributes{});
}

// --- nodes after a quantized matmul or convolution

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

/// Replaces `last` by the quantized operator with what was fused into it.
void put(GraphEdit& edit, Open open, ValueId matmul, NodeId last) {
  edit.name_after(edit.producer_id(matmul));
  const ValueId fresh = edit.builder().emit_many(std::move(open.op), open.inputs, 1)[0];
  if (fresh != kNoValue) edit.replace(edit.node(last).outputs[0], fresh);
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

/// Mul(Cast(i32 accumulators), scale), and a further factor
void take_scale(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  const ValueId y = edit.node(id).outputs[0];
  for (size_t i = 0; i < 2; ++i) {
    const ValueId matmul = inputs[i], factor = inputs[1 - i];
    if (!edit.same_info(matmul, y) || !is_inner(edit, matmul)) continue;
    const Node* cast = edit.producer(matmul, OpKind::Cast);
    const ValueId sums = cast == nullptr ? kNoValue : cast->inputs[0];
    const bool of_sums = sums != kNoValue && (edit.producer(sums, OpKind::MatMulInteger) != nullptr ||
                                              edit.producer(sums, OpKind::ConvInteger) != nullptr);
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
      put(edit, std::move(*open), matmul, id);
    }
    return;
  }
}

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
    put(edit, std::move(*open), inputs[i], id);
    return;
  }
}

void take_activation(GraphEdit& edit, NodeId id) {
  const auto activation = activation_of(edit.node(id));
  if (!activation) return;
  const ValueId matmul = edit.node(id).inputs[0];
  auto open = open_matmul(edit, matmul);
  if (!open || open->epilogue() != nullptr) return;
  open->epilogue() = std::make_unique<Epilogue>(*activation);
  put(edit, std::move(*open), matmul, id);
}

/// QuantizeLinear of a quantized operator's f32 result, also past a MaxPool or movement (then in 8 bits).
bool take_quantize(GraphEdit& edit, const Target& target) {
  std::vector<NodeId> moves;
  ValueId at = edit.node(target.node).inputs[0];
  for (;;) {
    const NodeId id = edit.producer_id(at);
    if (id == kNoNode || !is_inner(edit, at)) return false;
    const OpKind kind = edit.node(id).kind();
    if (kind != OpKind::MaxPool && kind != OpKind::Reshape && kind != OpKind::Transpose) break;
    moves.push_back(id);
    at = edit.node(id).inputs[0];
  }
  auto open = open_matmul(edit, at);
  if (!open) return false;
  edit.name_after(edit.producer_id(at));
  open->to() = static_cast<uint8_t>(target.to);
  open->inputs[open->bias() + 1] = target.scale;
  open->inputs[open->bias() + 2] = target.zero;
  ValueId y = edit.builder().emit_many(std::move(open->op), open->inputs, 1)[0];
  for (size_t i = moves.size(); i-- > 0;) {
    std::vector<ValueId> inputs = edit.node(moves[i]).inputs;
    inputs[0] = y;
    edit.name_after(moves[i]);
    y = edit.builder().emit_many(OpAttributes(edit.node(moves[i]).op), inputs, 1)[0];
  }
  if (y != kNoValue) edit.replace(edit.node(target.node).outputs[0], y);
  return y != kNoValue;
}

// --- movements

bool moves_one(OpKind kind) {
  switch (kind) {
    case OpKind::MaxPool:
    case OpKind::Identity:
    case OpKind::Reshape:
    case OpKind::Transpose:
    case OpKind::Slice:
    case OpKind::Expand:
    case OpKind::Tile:
    case OpKind::Gather: return true;
    default: return false;
  }
}

ValueId dequantized(GraphEdit& edit, const Quantized& quantized) {
  op::DequantizeLinearAttributes attributes;
  attributes.to = static_cast<uint8_t>(DType::F32);
  return edit.emit(attributes, {quantized.quantized, quantized.scale, quantized.zero});
}

/// move(DequantizeLinear x) as DequantizeLinear(move x).
void move_quantized(GraphEdit& edit, NodeId id) {
  std::vector<ValueId> inputs = edit.node(id).inputs;
  if (edit.producer(inputs[0], OpKind::DequantizeLinear) == nullptr) return;
  auto x = whole_quantized(edit, inputs[0]);
  if (!x) return;
  const ValueId y = edit.node(id).outputs[0];
  edit.name_after(id);
  inputs[0] = x->quantized;
  OpAttributes op = edit.node(id).op;
  x->quantized = edit.builder().emit_many(std::move(op), inputs, 1)[0];
  const ValueId real = dequantized(edit, *x);
  if (real != kNoValue) edit.replace(y, real);
}

// --- functions of one tensor

/// f(x) of one operand x, of its shape and type; any other operand is a scalar constant.
bool is_function(GraphEdit& edit, const Node& node, ValueId& x) {
  const ops::Form form = ops::form_of(node.kind());
  if (form == ops::Form::Unary) {
    x = node.inputs[0];
    return true;
  }
  if (form != ops::Form::Broadcast || node.inputs.size() != 2) return false;
  const bool second = edit.uniform(node.inputs[1]).has_value();
  if (!second && !edit.uniform(node.inputs[0])) return false;
  x = node.inputs[second ? 0 : 1];
  return edit.same_info(x, node.outputs[0]);
}

/// The 256 results of the nodes from DequantizeLinear `first` to QuantizeLinear `last`, by the bits of x.
std::optional<Blob> table_of(GraphEdit& edit, const Quantized& x, std::span<const NodeId> chain) {
  const std::optional<double> scale = edit.uniform(x.scale);
  if (!scale) return std::nullopt;
  const DType dtype = edit.value(x.quantized).dtype;
  Graph graph;
  Builder b(graph);
  ValueId at = b.input("x", dtype, {Dim{.extent = 256, .symbol = -1}});
  const auto copy = [&](ValueId id) {
    return id == kNoValue ? kNoValue : b.scalar(*edit.uniform(id), edit.value(id).dtype);
  };
  op::DequantizeLinearAttributes real;
  real.to = static_cast<uint8_t>(DType::F32);
  at = b.emit(real, {at, copy(x.scale), copy(x.zero)});
  for (const NodeId id : chain) {
    const Node& node = edit.node(id);
    std::vector<ValueId> inputs;
    ValueId operand = node.inputs[0];
    if (node.kind() != OpKind::QuantizeLinear) is_function(edit, node, operand);
    for (const ValueId input : node.inputs) {
      if (input == operand) {
        inputs.push_back(at);
        continue;
      }
      if (input != kNoValue && !edit.uniform(input)) return std::nullopt;
      inputs.push_back(copy(input));
    }
    at = b.emit_many(OpAttributes(node.op), inputs, 1)[0];
  }
  if (at == kNoValue) return std::nullopt;
  b.output(at);
  if (!expand_composites(graph, {}).ok()) return std::nullopt;
  std::vector<std::byte> quantized(256);
  for (size_t i = 0; i < quantized.size(); ++i) quantized[i] = static_cast<std::byte>(i);
  const ConstTensorView view{quantized.data(), {.dtype = dtype, .shape = {256}}};
  auto results = ops::evaluate_graph(graph, std::span(&view, 1));
  if (!results.ok()) return std::nullopt;
  return Blob::own(std::move((*results)[0].bytes));
}

/// QuantizeLinear(f(DequantizeLinear x)) as a Lookup, or as x where nothing changes.
bool quantize_function(GraphEdit& edit, const Target& target) {
  std::vector<NodeId> chain{target.node};
  ValueId at = edit.node(target.node).inputs[0];
  for (;;) {
    const NodeId id = edit.producer_id(at);
    if (id == kNoNode || edit.node(id).kind() == OpKind::DequantizeLinear) break;
    ValueId x = kNoValue;
    if (edit.use_count(at) != 1 || edit.is_output(at) || !is_function(edit, edit.node(id), x)) return false;
    chain.insert(chain.begin(), id);
    at = x;
  }
  const NodeId source = edit.producer_id(at);
  if (source == kNoNode || edit.node(source).kind() != OpKind::DequantizeLinear) return false;
  const auto x = whole_quantized(edit, at);
  if (!x || edit.is_constant(x->quantized)) return false;
  const ValueId y = edit.node(target.node).outputs[0];
  const bool same = edit.value(x->quantized).dtype == target.to &&
                    same_number(edit, x->scale, target.scale) && same_number(edit, x->zero, target.zero);
  if (chain.size() == 1 && same) {
    edit.replace(y, x->quantized);
    return true;
  }
  const auto table = table_of(edit, *x, chain);
  if (!table) return false;
  edit.name_after(chain.front());
  const ValueId entries = edit.builder().constant({.dtype = target.to, .shape = {256}}, *table);
  const ValueId fresh = edit.emit(op::LookupAttributes{}, {x->quantized, entries});
  if (fresh == kNoValue) return false;
  edit.replace(y, fresh);
  return true;
}

// --- operators of several tensors

/// QuantizeLinear(activation(DequantizeLinear a + DequantizeLinear b))
bool quantize_sum(GraphEdit& edit, const Target& target) {
  ValueId sum = edit.node(target.node).inputs[0];
  const Node* node = edit.producer(sum);
  if (node == nullptr || !is_inner(edit, sum)) return false;
  op::QuantizedAddAttributes attributes;
  if (const auto bound = activation_of(*node); bound && bound->activation <= op::Activation::Clip) {
    attributes.epilogue = std::make_unique<Epilogue>(*bound);
    sum = node->inputs[0];
    node = edit.producer(sum);
  }
  if (node == nullptr || node->kind() != OpKind::Add || !is_inner(edit, sum)) return false;
  const ValueId left = node->inputs[0], right = node->inputs[1];
  if (!edit.same_info(left, right)) return false;
  const auto a = whole_quantized(edit, left), b = whole_quantized(edit, right);
  if (!a || !b) return false;
  edit.name_after(edit.producer_id(sum));
  const auto zero_of = [&](const Quantized& x) {
    return zero_or(edit, x.zero, edit.value(x.quantized).dtype);
  };
  const ValueId y = edit.node(target.node).outputs[0];
  const ValueId fresh =
      edit.emit(std::move(attributes), {a->quantized, b->quantized, a->scale, zero_of(*a), b->scale,
                                        zero_of(*b), target.scale, zero_or(edit, target.zero, target.to)});
  if (fresh == kNoValue) return false;
  edit.replace(y, fresh);
  return true;
}

/// QuantizeLinear(Concat(DequantizeLinear..)): each part takes the scale of the result.
bool quantize_concat(GraphEdit& edit, const Target& target) {
  const ValueId joined = edit.node(target.node).inputs[0];
  const Node* node = edit.producer(joined, OpKind::Concat);
  if (node == nullptr || !is_inner(edit, joined)) return false;
  const op::ConcatAttributes attributes = node->as<op::ConcatAttributes>();
  std::vector<ValueId> parts = node->inputs;
  for (const ValueId part : parts)
    if (!whole_quantized(edit, part)) return false;
  const op::QuantizeLinearAttributes quantize = edit.node(target.node).as<op::QuantizeLinearAttributes>();
  const ValueId y = edit.node(target.node).outputs[0];
  edit.name_after(edit.producer_id(joined));
  // Each becomes a Lookup, or nothing, when it is visited.
  for (ValueId& part : parts) part = edit.emit(quantize, {part, target.scale, target.zero});
  const ValueId fresh = edit.emit(attributes, parts);
  if (fresh == kNoValue) return false;
  edit.replace(y, fresh);
  return true;
}

void visit(GraphEdit& edit, NodeId id) {
  switch (edit.node(id).kind()) {
    case OpKind::Conv:
    case OpKind::MatMul: return quantize_matmul(edit, id);
    case OpKind::Mul: return take_scale(edit, id);
    case OpKind::Add: return take_bias(edit, id);
    case OpKind::Requantize: return fuse_requantize(edit, id);
    case OpKind::QuantizeLinear:
      if (const auto target = target_of(edit, id))
        if (!take_quantize(edit, *target) && !quantize_function(edit, *target) &&
            !quantize_sum(edit, *target))
          quantize_concat(edit, *target);
      return;
    default:
      if (moves_one(edit.node(id).kind()))
        move_quantized(edit, id);
      else
        take_activation(edit, id);
  }
}

/// The axis of y that x's axis becomes when its elements stay in order; -1 if it is split or merged.
int64_t reshaped_axis(const Shape& x, int64_t axis, const Shape& y) {
  const int64_t before = x.elements(0, static_cast<int>(axis));
  for (int i = 0; i < y.rank(); ++i)
    if (y[i] == x[static_cast<int>(axis)] && y.elements(0, i) == before) return i;
  return -1;
}

/// Transpose(DequantizeLinear constant) as DequantizeLinear(Transpose constant), likewise for Reshape:
/// weights that an importer moved.
Status move_constants(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) {
    const bool transposes = edit.is_alive(id, OpKind::Transpose);
    if (!transposes && !edit.is_alive(id, OpKind::Reshape)) continue;
    const auto x = quantized_of(edit, edit.node(id).inputs[0]);
    if (!x || !edit.is_constant(x->quantized) || !edit.value(edit.node(id).outputs[0]).is_static()) continue;
    op::DequantizeLinearAttributes real;
    real.to = static_cast<uint8_t>(DType::F32);
    if (x->axis >= 0) {
      const Shape from = edit.value(x->quantized).info().shape,
                  to = edit.value(edit.node(id).outputs[0]).info().shape;
      if (transposes) {
        const auto& moved = edit.node(id).as<op::TransposeAttributes>().permutation;
        real.axis = std::find(moved.begin(), moved.end(), x->axis) - moved.begin();
      } else {
        real.axis = reshaped_axis(from, x->axis, to);
      }
      if (real.axis < 0) continue;
    }
    edit.name_after(id);
    std::vector<ValueId> inputs = edit.node(id).inputs;
    inputs[0] = x->quantized;
    const ValueId quantized = edit.builder().emit_many(OpAttributes(edit.node(id).op), inputs, 1)[0];
    edit.rewrite(id, real, {quantized, x->scale, x->zero});
  }
  return edit.finish();
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
  GraphEdit edit(graph, context.states);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id)
    if (edit.is_alive(id)) visit(edit, id);
  return edit.finish();
}

}  // namespace librt::compiler
