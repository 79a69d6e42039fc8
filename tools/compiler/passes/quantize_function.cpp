// Functions of one quantized tensor as tables of 256 entries.
#include <algorithm>
#include <map>

#include "runtime/ops/evaluate.h"
#include "runtime/ops/page.h"
#include "tools/compiler/passes/quantize_rewrites.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler {
namespace {

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

/// The operands of a function of each element, all of the result's shape and type; any other operand is a
/// number. Empty for all other nodes.
std::vector<ValueId> operands_of(GraphEdit& edit, const Node& node) {
  const ops::Form form = ops::form_of(node.kind());
  if (form == ops::Form::Unary) return {node.inputs[0]};
  if (form != ops::Form::Broadcast || node.inputs.size() != 2) return {};
  std::vector<ValueId> operands;
  for (const ValueId input : node.inputs) {
    if (edit.uniform(input)) continue;
    if (!edit.same_info(input, node.outputs[0])) return {};
    operands.push_back(input);
  }
  return operands;
}

/// What a QuantizeLinear reads, as a function of one quantized tensor: nodes of f32 and the values that they
/// read, down to a tensor in 8 bits.
struct Functions {
  std::vector<NodeId> nodes;     ///< each after those that it reads; without DequantizeLinear
  std::vector<ValueId> sources;  ///< in 8 bits, what is dequantized; in the end the same one
};
constexpr size_t kMostFunctions = 32;

/// Goes up from `value` to DequantizeLinear nodes. Only they, and what is inside of the function alone, may
/// have other readers.
bool collect(GraphEdit& edit, ValueId value, Functions& found) {
  const NodeId id = edit.producer_id(value);
  if (id == kNoNode || found.nodes.size() > kMostFunctions) return false;
  if (edit.node(id).kind() == OpKind::DequantizeLinear) {
    const auto x = whole_quantized(edit, value);
    if (!x || edit.is_constant(x->quantized)) return false;
    found.sources.push_back(x->quantized);
    return true;
  }
  if (!is_inner(edit, value)) return false;
  const std::vector<ValueId> operands = operands_of(edit, edit.node(id));
  for (const ValueId operand : operands)
    if (!collect(edit, operand, found)) return false;
  found.nodes.push_back(id);
  return !operands.empty();
}

/// What a Lookup in a constant table reads; kNoValue for anything else.
ValueId looked_up(GraphEdit& edit, ValueId value) {
  const Node* node = edit.producer(value, OpKind::Lookup);
  return node != nullptr && edit.is_constant(node->inputs[1]) ? node->inputs[0] : kNoValue;
}

/// Where x8 and a function of x8 are read, x8: its function is a Lookup by now. kNoValue where there are
/// several.
ValueId one_source(GraphEdit& edit, std::vector<ValueId> sources) {
  for (size_t steps = 0; steps < kMostFunctions; ++steps) {
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    if (sources.size() == 1) return sources[0];
    const auto function = std::find_if(sources.begin(), sources.end(),
                                       [&](ValueId source) { return looked_up(edit, source) != kNoValue; });
    if (function == sources.end()) return kNoValue;
    *function = looked_up(edit, *function);
  }
  return kNoValue;
}

/// Copies the nodes that compute a value from `source` into a graph whose x stands for it.
class Copy {
 public:
  Copy(GraphEdit& edit, Builder& b, ValueId source, ValueId x) : edit_(edit), b_(b) { copied_[source] = x; }

  ValueId of(ValueId value) {
    if (value == kNoValue) return kNoValue;
    if (const auto found = copied_.find(value); found != copied_.end()) return found->second;
    return copied_[value] = made(value);
  }

 private:
  ValueId made(ValueId value) {
    if (const ValueId constant = number(value); constant != kNoValue) return constant;
    const Node* node = edit_.producer(value);
    if (node == nullptr) return kNoValue;
    const OpAttributes op = node->op;
    const bool broadcasts = ops::form_of(op.type) == ops::Form::Broadcast;
    std::vector<ValueId> inputs;
    for (const ValueId input : std::vector<ValueId>(node->inputs)) {
      // Whatever else a node reads is a number, or it is no function of x alone.
      const bool is_table = op.type == OpKind::Lookup && inputs.size() == 1;
      inputs.push_back(is_table ? table(input) : inputs.empty() || broadcasts ? of(input) : number(input));
      if (input != kNoValue && inputs.back() == kNoValue) return kNoValue;
    }
    return b_.emit_many(OpAttributes(op), inputs, 1)[0];
  }

  /// The number of a constant: it may fill a tensor of another shape than the 256 elements here.
  ValueId number(ValueId value) {
    const auto found = value == kNoValue ? std::nullopt : edit_.uniform(value);
    return found ? b_.scalar(*found, edit_.value(value).dtype) : kNoValue;
  }
  ValueId table(ValueId value) { return b_.constant(edit_.value(value).info(), edit_.value(value).data); }

  GraphEdit& edit_;
  Builder& b_;
  std::map<ValueId, ValueId> copied_;
};

/// The 256 values of y by the bits of `source`, of which it is a function.
std::optional<Blob> table_of(GraphEdit& edit, ValueId source, ValueId y) {
  const DType dtype = edit.value(source).dtype;
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", dtype, {Dim{.extent = 256, .symbol = -1}});
  const ValueId result = Copy(edit, b, source, x).of(y);
  if (result == kNoValue) return std::nullopt;
  b.output(result);
  if (!expand_composites(graph, {}).ok()) return std::nullopt;
  std::vector<std::byte> quantized(256);
  for (size_t i = 0; i < quantized.size(); ++i) quantized[i] = static_cast<std::byte>(i);
  const ConstTensorView view{quantized.data(), {.dtype = dtype, .shape = {256}}};
  auto results = ops::evaluate_graph(graph, std::span(&view, 1));
  if (!results.ok()) return std::nullopt;
  return Blob::own(std::move((*results)[0].bytes));
}

}  // namespace

//   x8 - DQ - Sigmoid - Mul by 2 - Q - y8        ->        x8 - Lookup(256 entries) - y8
//   x8 - DQ - Q - x8                             ->        x8        the same scale and zero point
//
//   x8 - DQ -------------------- Mul - Q - y8    ->        x8 - Lookup(256 entries) - y8
//     '- DQ - Sigmoid - Q - DQ -'
//
// with any functions of one tensor.
bool quantize_function(GraphEdit& edit, const Target& target) {
  const ValueId real = edit.node(target.node).inputs[0], y = edit.node(target.node).outputs[0];
  Functions found;
  if (!collect(edit, real, found)) return false;
  ValueId source = one_source(edit, found.sources);
  if (source == kNoValue || edit.is_constant(source)) return false;  // folded afterwards
  if (found.nodes.empty()) {
    const auto x = whole_quantized(edit, real);
    if (edit.value(source).dtype == target.to && same_number(edit, x->scale, target.scale) &&
        same_number(edit, x->zero, target.zero)) {
      edit.replace(y, source);
      return true;
    }
  }
  // One table for a Lookup of a Lookup.
  for (ValueId x = looked_up(edit, source); x != kNoValue; x = looked_up(edit, source)) source = x;
  const auto table = table_of(edit, source, y);
  if (!table) return false;
  edit.name_after(found.nodes.empty() ? target.node : found.nodes.front());
  const ValueId entries = edit.builder().constant({.dtype = target.to, .shape = {256}}, *table);
  const ValueId fresh = edit.emit(op::LookupAttributes{}, {source, entries});
  if (fresh == kNoValue) return false;
  edit.replace(y, fresh);
  return true;
}

}  // namespace librt::compiler
