// Operators of several quantized tensors: additions and Concat.
#include "tools/compiler/passes/pattern.h"
#include "tools/compiler/passes/quantize_rewrites.h"

namespace librt::compiler {

//   a8 - DQ -.                              a8 -.
//            Add - Relu - Q - y8     ->         QuantizedAdd(Relu) - y8
//   b8 - DQ -'                              b8 -'
//
// for two tensors of one shape; with no activation, or one that bounds the sum.
bool quantize_sum(GraphEdit& edit, const Target& target) {
  ValueId sum = edit.node(target.node).inputs[0];
  const Node* node = edit.producer(sum);
  if (node == nullptr || !is_inner(edit, sum)) return false;
  op::QuantizedAddAttributes attributes;
  if (const auto bound = activation_of(*node); bound && bound->activation <= op::Activation::Clip) {
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>(*bound);
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

//   a8 - DQ -.                              a8 - DQ - Q -.
//            Concat - Q - y8         ->                  Concat - y8
//   b8 - DQ -'                              b8 - DQ - Q -'
//
// Each part takes the scale of the result: quantize_function() turns DQ - Q into a Lookup, or nothing.
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
  for (ValueId& part : parts) part = edit.emit(quantize, {part, target.scale, target.zero});
  const ValueId fresh = edit.emit(attributes, parts);
  if (fresh == kNoValue) return false;
  edit.replace(y, fresh);
  return true;
}

}  // namespace librt::compiler
