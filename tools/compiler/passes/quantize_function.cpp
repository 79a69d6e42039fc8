// Functions of one quantized tensor as tables of 256 entries.
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

/// The nodes from the first function to the QuantizeLinear `last`, each of which reads only the one before;
/// empty where they do not begin with a DequantizeLinear, whose result is `start`.
std::vector<NodeId> functions_before(GraphEdit& edit, NodeId last, ValueId& start) {
  std::vector<NodeId> chain{last};
  start = edit.node(last).inputs[0];
  for (;;) {
    const NodeId id = edit.producer_id(start);
    if (id == kNoNode) return {};
    if (edit.node(id).kind() == OpKind::DequantizeLinear) return chain;
    ValueId x = kNoValue;
    if (!is_inner(edit, start) || !is_function(edit, edit.node(id), x)) return {};
    chain.insert(chain.begin(), id);
    start = x;
  }
}

/// The 256 results of the chain after DequantizeLinear, by the bits of x.
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

}  // namespace

//   x8 - DQ - Sigmoid - Mul by 2 - Q - y8        ->        x8 - Lookup(256 entries) - y8
//   x8 - DQ - Q - x8                             ->        x8        the same scale and zero point
//
// with any chain of functions of one tensor.
bool quantize_function(GraphEdit& edit, const Target& target) {
  ValueId start = kNoValue;
  const std::vector<NodeId> chain = functions_before(edit, target.node, start);
  if (chain.empty()) return false;
  const auto x = whole_quantized(edit, start);
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

}  // namespace librt::compiler
