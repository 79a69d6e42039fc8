// Movement of data and DequantizeLinear change places, so that 8 bits are moved.
#include <algorithm>

#include "runtime/ops/page.h"
#include "tools/compiler/passes/quantize_rewrites.h"

namespace librt::compiler {
namespace {

ValueId dequantized(GraphEdit& edit, const Quantized& quantized) {
  op::DequantizeLinearAttributes attributes;
  attributes.to = static_cast<uint8_t>(DType::F32);
  return edit.emit(attributes, {quantized.quantized, quantized.scale, quantized.zero});
}

/// The axis of y that x's axis becomes when its elements stay in order; -1 if it is split or merged.
int64_t reshaped_axis(const Shape& x, int64_t axis, const Shape& y) {
  const int64_t before = x.elements(0, static_cast<int>(axis));
  for (int i = 0; i < y.rank(); ++i)
    if (y[i] == x[static_cast<int>(axis)] && y.elements(0, i) == before) return i;
  return -1;
}

/// The axis of the scales of `x` after a Transpose or Reshape; -1 if there is none.
int64_t moved_axis(GraphEdit& edit, const Node& node, const Quantized& x) {
  if (node.kind() == OpKind::Transpose) {
    const auto& permutation = node.as<op::TransposeAttributes>().permutation;
    return std::find(permutation.begin(), permutation.end(), x.axis) - permutation.begin();
  }
  return reshaped_axis(edit.value(x.quantized).info().shape, x.axis,
                       edit.value(node.outputs[0]).info().shape);
}

}  // namespace

// A function of each element, as DequantizeLinear is one, may as well come after a movement of elements. Also
// after MaxPool: the function is increasing.
bool moves_quantized(OpKind kind) {
  return ops::moves_elements(kind) || kind == OpKind::MaxPool;
}

//   x8 - DQ - Transpose - y        ->        x8 - Transpose - DQ - y        with one scale for the tensor
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

//   w8 - DQ - Transpose - y        ->        w8 - Transpose - DQ - y
//
// for a constant w8 with any scales, likewise Reshape: weights that an importer moved. The moved weight is
// folded, so that quantize_matmul() finds a DequantizeLinear of a constant.
Status move_constants(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) {
    if (!edit.is_alive(id, OpKind::Transpose) && !edit.is_alive(id, OpKind::Reshape)) continue;
    const auto x = quantized_of(edit, edit.node(id).inputs[0]);
    if (!x || !edit.is_constant(x->quantized) || !edit.value(edit.node(id).outputs[0]).is_static()) continue;
    op::DequantizeLinearAttributes real;
    real.to = static_cast<uint8_t>(DType::F32);
    if (x->axis >= 0) {
      real.axis = moved_axis(edit, edit.node(id), *x);
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

}  // namespace librt::compiler
