// one_hot: one-hot vectors times constant weights become rows of the weights, and functions of rows of a
// constant become rows of the function of the constant.
//
//   before  MatMul(Where(Equal(i[..,1], [0..n)), 1, 0), W[n,D])      f(Gather(T, i))
//   after   Gather([W; 0], i where it is one of [0..n), else n)     Gather(f(T), i)
//
// Cast(Equal(..)) is the same as Where(Equal(..), 1, 0): ONNX's OneHot is imported as the latter, and JAX
// writes the former.
//
// Exact: a one-hot vector without a one gives the row of zeros, and weights that are not finite, which would
// turn the zeros beside the one into NaN, are left alone. Before epilogues are fused; constants are folded
// later.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/element.h"
#include "runtime/ops/page.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

/// A constant that other nodes read, too, is copied up to this size.
constexpr size_t kSharedBytes = size_t{1} << 20;

/// The constant 0, 1, .. as integers [1..,n], of at most `most_axes` axes: n, else 0.
int64_t range_of(GraphEdit& edit, ValueId id, int most_axes) {
  if (!edit.is_constant(id)) return 0;
  const Value& value = edit.value(id);
  if (value.dtype != DType::I64 && value.dtype != DType::I32) return 0;
  const int64_t count = value.info().elements();
  if (value.rank() < 1 || value.rank() > most_axes || value.dims.back().extent != count) return 0;
  for (int64_t i = 0; i < count; ++i)
    if (load_integer(value.data.data, value.dtype, i) != i) return 0;
  return count;
}

bool is_matrix(GraphEdit& edit, ValueId id) {
  const Value& value = edit.value(id);
  return value.dtype == DType::F32 && value.rank() == 2 && value.is_static();
}

/// A constant f32[n,D] of finite elements.
bool is_finite_matrix(GraphEdit& edit, ValueId id) {
  if (!edit.is_constant(id) || !is_matrix(edit, id)) return false;
  const Value& value = edit.value(id);
  for (int64_t i = 0; i < value.info().elements(); ++i)
    if (!std::isfinite(load_element(value.data.data, value.dtype, i))) return false;
  return true;
}

/// Whether folding will make it a constant.
bool is_computed_from_constants(GraphEdit& edit, ValueId id, int depth = 8) {
  if (edit.is_constant(id)) return true;
  const Node* node = id == kNoValue || depth == 0 ? nullptr : edit.producer(id);
  if (node == nullptr || ops::page_of(node->kind()) == nullptr || ops::page_of(node->kind())->impure)
    return false;
  const std::vector<ValueId> inputs = node->inputs;
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](ValueId input) { return is_computed_from_constants(edit, input, depth - 1); });
}

/// `value` without its last axis, whose extent is 1.
ValueId without_last_axis(GraphEdit& edit, ValueId value) {
  const Node* reshape = edit.producer(value, OpKind::Reshape);
  if (reshape == nullptr) return kNoValue;
  const auto &outer = edit.value(value).dims, &inner = edit.value(reshape->inputs[0]).dims;
  const bool same = outer.size() == inner.size() + 1 && outer.back().is_known() && outer.back().extent == 1 &&
                    std::equal(inner.begin(), inner.end(), outer.begin());
  return same ? reshape->inputs[0] : kNoValue;
}

/// Whether the product has no epilogue but a bias.
bool has_bias_alone(const Node& node) {
  const auto& epilogue = node.as<op::MatMulAttributes>().epilogue;
  return !epilogue ||
         (epilogue->has_bias && !epilogue->has_residual && epilogue->activation == op::Activation::None);
}

/// The Equal that the value is 1 where true, and else 0; null where it is not such a value.
const Node* equal_as_number(GraphEdit& edit, ValueId value) {
  const Node* made = edit.producer(value);
  if (made == nullptr) return nullptr;
  const bool selects = made->kind() == OpKind::Where && edit.uniform(made->inputs[1]) == 1 &&
                       edit.uniform(made->inputs[2]) == 0;
  return selects || made->kind() == OpKind::Cast ? edit.producer(made->inputs[0], OpKind::Equal) : nullptr;
}

void use_rows(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  const Node* equal = equal_as_number(edit, inputs[0]);
  if (equal == nullptr || !has_bias_alone(edit.node(id))) return;
  const auto range_at = [&](size_t i) {
    return range_of(edit, equal->inputs[i], edit.value(equal->inputs[1 - i]).rank());
  };
  const size_t side = range_at(0) > 0 ? 0 : 1;
  const int64_t count = range_at(side);
  const ValueId index = without_last_axis(edit, equal->inputs[1 - side]);
  if (count == 0 || index == kNoValue || !is_finite_matrix(edit, inputs[1]) ||
      edit.value(inputs[1]).dims[0].extent != count)
    return;
  Builder& builder = edit.builder();
  edit.name_after(id);
  const int64_t columns = edit.value(inputs[1]).dims[1].extent;
  const size_t bytes = edit.value(inputs[1]).info().bytes();
  std::vector<std::byte> rows(bytes + static_cast<size_t>(columns) * sizeof(float));
  std::memcpy(rows.data(), edit.value(inputs[1]).data.data, bytes);
  ValueId table = builder.constant({DType::F32, {count + 1, columns}}, Blob::own(std::move(rows)));
  if (inputs.size() > 2) table = edit.emit(op::AddAttributes{}, {table, inputs[2]});
  const auto number = [&](int64_t value) {
    return builder.scalar(static_cast<double>(value), edit.value(index).dtype);
  };
  const ValueId outside =
      edit.emit(op::OrAttributes{}, {edit.emit(op::LessAttributes{}, {index, number(0)}),
                                     edit.emit(op::GreaterAttributes{}, {index, number(count - 1)})});
  const ValueId row = edit.emit(op::WhereAttributes{}, {outside, number(count), index});
  edit.rewrite(id, op::GatherAttributes{}, {table, row});
}

/// f(Gather(T, i)), where f is a function of one operand, or of constants beside it that are the same for all
/// rows.
void move_into_table(GraphEdit& edit, NodeId id) {
  const OpAttributes function = edit.node(id).op;
  std::vector<ValueId> operands = edit.node(id).inputs;
  if (ops::form_of(function.type) == ops::Form::Opaque && function.type != OpKind::Gelu) return;
  if (edit.node(id).outputs.size() != 1 || !edit.node(id).bodies.empty()) return;
  const ValueId result = edit.node(id).outputs[0];
  std::optional<size_t> at;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == kNoValue) return;
    const Value& operand = edit.value(operands[i]);
    if (edit.is_constant(operands[i])) {
      if (operand.rank() > 1) return;
    } else if (at) {
      return;
    } else {
      at = i;
    }
  }
  const Node* gather = at ? edit.producer(operands[*at], OpKind::Gather) : nullptr;
  if (gather == nullptr || gather->as<op::GatherAttributes>().axis != 0) return;
  const ValueId table = gather->inputs[0], index = gather->inputs[1];
  if (!is_matrix(edit, table) || !is_computed_from_constants(edit, table)) return;
  if (edit.use_count(operands[*at]) != 1 || edit.is_output(operands[*at])) return;
  if (edit.use_count(table) != 1 && edit.value(table).info().bytes() > kSharedBytes) return;
  if (!edit.same_info(operands[*at], result)) return;
  operands[*at] = table;
  edit.name_after(id);
  const ValueId rows = edit.builder().emit_many(function, operands, 1)[0];
  if (rows != kNoValue && edit.same_info(rows, table))
    edit.rewrite(id, op::GatherAttributes{}, {rows, index});
}

}  // namespace

Status one_hot(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) {
    if (edit.is_alive(id, OpKind::MatMul))
      use_rows(edit, id);
    else if (edit.is_alive(id))
      move_into_table(edit, id);
  }
  return edit.finish();
}

}  // namespace librt::compiler
