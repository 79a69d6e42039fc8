// canonicalize: drops nodes that do nothing and normalizes the rest, so that later passes meet fewer forms.
//
// Exact, but for the sign of a zero (x + 0 -> x) and Pow's corner cases (Pow(x, 0.5) -> Sqrt, Pow(x, 2) -> x
// x).
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "runtime/ops/page.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/movement.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

ValueId first_input(GraphEdit& edit, NodeId id) {
  return edit.node(id).inputs[0];
}
ValueId result(GraphEdit& edit, NodeId id) {
  return edit.node(id).outputs[0];
}

/// The result is the input itself.
void drop(GraphEdit& edit, NodeId id) {
  edit.replace(result(edit, id), first_input(edit, id));
}

void drop_if_same(GraphEdit& edit, NodeId id) {
  if (edit.same_info(first_input(edit, id), result(edit, id))) drop(edit, id);
}

/// One that requires a shape stays, unless the shape is proven.
void drop_identity(GraphEdit& edit, NodeId id) {
  if (edit.node(id).inputs.size() < 2) return drop(edit, id);
  drop_if_same(edit, id);
}

// --- arithmetic

/// x op c -> x where c is the operator's neutral element.
void drop_neutral(GraphEdit& edit, NodeId id) {
  const Node& node = edit.node(id);
  const OpKind kind = node.kind();
  const double neutral = kind == OpKind::Add || kind == OpKind::Sub ? 0 : 1;
  const ValueId a = node.inputs[0], b = node.inputs[1], y = node.outputs[0];
  if (edit.uniform(b) == neutral && edit.same_info(a, y)) return edit.replace(y, a);
  const bool commutes = kind == OpKind::Add || kind == OpKind::Mul;
  if (commutes && edit.uniform(a) == neutral && edit.same_info(b, y)) return edit.replace(y, b);
  if (kind == OpKind::Sub && edit.uniform(a) == 0 && edit.same_info(b, y))
    edit.rewrite(id, op::NegAttributes{}, {b});
  if (!is_float(edit.value(y).dtype)) return;
  if (kind == OpKind::Div && edit.uniform(a) == 1 && edit.same_info(b, y))
    edit.rewrite(id, op::ReciprocalAttributes{}, {b});
  if (kind == OpKind::Mul && edit.uniform(b) == -1 && edit.same_info(a, y))
    edit.rewrite(id, op::NegAttributes{}, {a});
  if (kind == OpKind::Mul && edit.uniform(a) == -1 && edit.same_info(b, y))
    edit.rewrite(id, op::NegAttributes{}, {b});
}

void simplify_pow(GraphEdit& edit, NodeId id) {
  const ValueId x = edit.node(id).inputs[0], y = result(edit, id);
  const auto exponent = edit.uniform(edit.node(id).inputs[1]);
  if (!exponent || !edit.same_info(x, y)) return;
  if (*exponent == 1) return edit.replace(y, x);
  if (*exponent == 2) edit.rewrite(id, op::MulAttributes{}, {x, x});
  if (!is_float(edit.value(y).dtype)) return;
  if (*exponent == 0.5) edit.rewrite(id, op::SqrtAttributes{}, {x});
  if (*exponent == -1) edit.rewrite(id, op::ReciprocalAttributes{}, {x});
}

/// f(f(x)) -> x
void drop_involution(GraphEdit& edit, NodeId id) {
  const Node* inner = edit.producer(first_input(edit, id), edit.node(id).kind());
  if (inner != nullptr) edit.replace(result(edit, id), inner->inputs[0]);
}

/// f(f(x)) -> f(x)
void drop_idempotent(GraphEdit& edit, NodeId id) {
  if (edit.producer(first_input(edit, id), edit.node(id).kind()) != nullptr) drop(edit, id);
}

void simplify_clip(GraphEdit& edit, NodeId id) {
  const auto outer = edit.node(id).as<op::ClipAttributes>();
  const ValueId x = first_input(edit, id);
  constexpr float kMost = std::numeric_limits<float>::max();
  if (outer.minimum <= -kMost && outer.maximum >= kMost) return drop(edit, id);
  if (const Node* inner = edit.producer(x, OpKind::Clip)) {
    const auto range = inner->as<op::ClipAttributes>();
    op::ClipAttributes both;
    both.minimum = std::clamp(range.minimum, outer.minimum, std::max(outer.minimum, outer.maximum));
    both.maximum = std::clamp(range.maximum, outer.minimum, std::max(outer.minimum, outer.maximum));
    edit.rewrite(id, both, {inner->inputs[0]});
  } else if (outer.minimum == 0 && outer.maximum >= kMost && is_float(edit.value(x).dtype)) {
    edit.rewrite(id, op::ReluAttributes{}, {x});
  }
}

/// Every value of `from` is exact in `to`.
bool is_lossless(DType from, DType to) {
  if (from == to || from == DType::Bool) return true;
  const auto bits = [](DType dtype) { return 8 * size_of(dtype); };
  if (is_float(from))
    return to == DType::F64 || (to == DType::F32 && (from == DType::F16 || from == DType::BF16));
  if (is_float(to)) return (to == DType::F32 && bits(from) <= 16) || (to == DType::F64 && bits(from) <= 32);
  if (is_unsigned_integer(from)) return is_integer(to) && bits(to) > bits(from);
  return is_signed_integer(to) && bits(to) > bits(from);
}

void simplify_cast(GraphEdit& edit, NodeId id) {
  const ValueId x = first_input(edit, id);
  const auto to = static_cast<DType>(edit.node(id).as<op::CastAttributes>().to);
  if (edit.value(x).dtype == to) return drop(edit, id);
  const Node* inner = edit.producer(x, OpKind::Cast);
  if (inner == nullptr || !is_lossless(edit.value(inner->inputs[0]).dtype, edit.value(x).dtype)) return;
  const ValueId source = inner->inputs[0];
  if (edit.value(source).dtype == to) return edit.replace(result(edit, id), source);
  edit.rewrite(id, edit.node(id).as<op::CastAttributes>(), {source});
}

// --- movement

void fix_expand(GraphEdit& edit, NodeId id) {
  const ValueId x = first_input(edit, id), y = result(edit, id);
  if (edit.same_info(x, y)) return drop(edit, id);
  if (edit.is_constant(edit.node(id).inputs[1]) || !edit.value(y).is_static()) return;
  const Shape shape = edit.value(y).info().shape;
  edit.set_input(id, 1, edit.builder().ints(shape.dims()));
}

/// a op Expand(b) -> a op b where the operator broadcasts b by itself.
void drop_expanded_operand(GraphEdit& edit, NodeId id) {
  for (size_t i = 0; i < edit.node(id).inputs.size(); ++i) {
    const Node* expand = edit.producer(edit.node(id).inputs[i], OpKind::Expand);
    if (expand == nullptr) continue;
    std::optional<Shape> shape = edit.builder().comparable_shape(expand->inputs[0]);
    for (size_t k = 0; k < edit.node(id).inputs.size(); ++k)
      if (k != i && shape)
        shape = broadcast(*shape, edit.builder().comparable_shape(edit.node(id).inputs[k]));
    if (shape && *shape == edit.builder().comparable_shape(result(edit, id)))
      edit.set_input(id, i, expand->inputs[0]);
  }
}

/// Whether the parts alone still show what the extents of their Concat are, but for `axis`. An operand that
/// is left out may be the only one that does: of f32[2,0] and f32[n,3], joined along axis 1, n is 2.
bool show_extents(GraphEdit& edit, const std::vector<ValueId>& parts, ValueId result, int axis) {
  const Shape wanted = edit.builder().comparable_shape(result);
  for (int i = 0; i < wanted.rank(); ++i)
    if (i != axis && std::none_of(parts.begin(), parts.end(), [&](ValueId part) {
          return edit.builder().comparable_shape(part)[i] == wanted[i];
        }))
      return false;
  return true;
}

void simplify_concat(GraphEdit& edit, NodeId id) {
  const Node& node = edit.node(id);
  if (node.inputs.size() == 1) return drop(edit, id);
  const auto axis = normalized_axis(node.as<op::ConcatAttributes>().axis, edit.value(node.outputs[0]).rank());
  if (!axis) return;
  std::vector<ValueId> parts;
  bool flattened = false;
  for (ValueId input : node.inputs) {
    const Value& part = edit.value(input);
    if (part.dims[static_cast<size_t>(*axis)].extent == 0) {
      flattened = true;
      continue;
    }
    const Node* inner = edit.producer(input, OpKind::Concat);
    if (inner != nullptr && edit.use_count(input) == 1 &&
        normalized_axis(inner->as<op::ConcatAttributes>().axis, part.rank()) == axis) {
      parts.insert(parts.end(), inner->inputs.begin(), inner->inputs.end());
      flattened = true;
    } else {
      parts.push_back(input);
    }
  }
  if (flattened && !parts.empty() && show_extents(edit, parts, node.outputs[0], *axis))
    edit.rewrite(id, op::ConcatAttributes{node.as<op::ConcatAttributes>()}, parts);
}

void drop_slice(GraphEdit& edit, NodeId id) {
  const auto& steps = edit.node(id).as<op::SliceAttributes>().steps;
  if (std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; })) drop_if_same(edit, id);
}

/// A reduction over axes that all have extent 1 combines no values.
void drop_reduction(GraphEdit& edit, NodeId id) {
  const ValueId x = first_input(edit, id), y = result(edit, id);
  if (!edit.builder().same_elements(x, y)) return;
  if (edit.same_info(x, y)) return drop(edit, id);
  if (edit.value(x).dtype != edit.value(y).dtype) return;
  if (const auto target = reshape_target(edit.value(y)))
    edit.rewrite(id, op::ReshapeAttributes{}, {x, edit.builder().ints(*target)});
}

/// f(Reshape(x)) -> Reshape(f(x)) for elementwise f, so that f meets the operator before the Reshape.
void sink_reshape(GraphEdit& edit, NodeId id) {
  const ValueId reshaped = first_input(edit, id);
  const Node* reshape = edit.producer(reshaped, OpKind::Reshape);
  if (reshape == nullptr || edit.use_count(reshaped) != 1) return;
  const ValueId source = reshape->inputs[0], shape = reshape->inputs[1];
  const Names names = names_of(edit, id);
  edit.name_after(id);
  const ValueId moved = edit.builder().emit_many(OpAttributes(edit.node(id).op), std::array{source}, 1)[0];
  if (moved == kNoValue) return;
  keep_names(edit, names, moved, edit.rewrite(id, op::ReshapeAttributes{}, {moved, shape}));
}

// --- absorption into other operators

/// Padding of spatial axes alone, by a constant that `accepts` takes. Returns pads in the order of attributes
/// of windows.
template <class Accepts>
std::optional<std::vector<int64_t>> spatial_padding(GraphEdit& edit, const Node& pad,
                                                    const Accepts& accepts) {
  const int rank = edit.value(pad.inputs[0]).rank();
  const auto pads = edit.ints(pad.inputs[1]);
  if (pad.as<op::PadAttributes>().mode != op::PadMode::Constant || !pads || rank < 3) return std::nullopt;
  const ValueId fill = edit.input(pad, 2);
  const std::optional<double> number = fill == kNoValue ? 0 : edit.uniform(fill);
  if (!number || !accepts(*number)) return std::nullopt;
  std::vector<int64_t> spatial;
  for (int side = 0; side < 2; ++side)
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t count = (*pads)[static_cast<size_t>(side * rank + axis)];
      const bool is_spatial = axis > 0 && axis + 1 < rank;
      if (count < 0 || (!is_spatial && count != 0)) return std::nullopt;
      if (is_spatial) spatial.push_back(count);
    }
  return spatial;
}

std::optional<std::vector<int64_t>> spatial_zero_padding(GraphEdit& edit, const Node& pad) {
  return spatial_padding(edit, pad, [](double fill) { return fill == 0; });
}

/// A pool refuses padding that could hold a whole window.
bool pads_whole_windows(const std::vector<int64_t>& pads, const std::vector<int64_t>& kernel) {
  for (size_t i = 0; i < pads.size(); ++i)
    if (pads[i] >= kernel[i % kernel.size()]) return true;
  return false;
}

void add_pads(std::vector<int64_t>& pads, const std::vector<int64_t>& more) {
  pads.resize(more.size(), 0);
  for (size_t i = 0; i < pads.size(); ++i) pads[i] += more[i];
}

void absorb_pad_in_conv(GraphEdit& edit, NodeId id) {
  const Node* pad = edit.producer(first_input(edit, id), OpKind::Pad);
  if (pad == nullptr) return;
  const auto more = spatial_zero_padding(edit, *pad);
  if (!more) return;
  op::ConvAttributes attributes = edit.node(id).as<op::ConvAttributes>();
  add_pads(attributes.pads, *more);
  std::vector<ValueId> inputs = edit.node(id).inputs;
  inputs[0] = pad->inputs[0];
  edit.rewrite(id, std::move(attributes), inputs);
}

void absorb_pad_in_average(GraphEdit& edit, NodeId id) {
  const Node* pad = edit.producer(first_input(edit, id), OpKind::Pad);
  op::AveragePoolAttributes attributes = edit.node(id).as<op::AveragePoolAttributes>();
  const bool unpadded =
      std::all_of(attributes.pads.begin(), attributes.pads.end(), [](int64_t count) { return count == 0; });
  if (pad == nullptr || attributes.ceil_mode || (!unpadded && !attributes.count_include_pad)) return;
  const auto more = spatial_zero_padding(edit, *pad);
  if (!more) return;
  add_pads(attributes.pads, *more);
  if (pads_whole_windows(attributes.pads, attributes.kernel)) return;
  attributes.count_include_pad = true;
  edit.rewrite(id, std::move(attributes), {pad->inputs[0]});
}

/// A maximum is not changed by the lowest number, nor by zeros if none is negative and each window has one.
void absorb_pad_in_max(GraphEdit& edit, NodeId id) {
  const Node* pad = edit.producer(first_input(edit, id), OpKind::Pad);
  op::MaxPoolAttributes attributes = edit.node(id).as<op::MaxPoolAttributes>();
  const bool dilated =
      std::any_of(attributes.dilations.begin(), attributes.dilations.end(), [](int64_t d) { return d != 1; });
  if (pad == nullptr || attributes.ceil_mode || dilated) return;
  const DType dtype = edit.value(pad->inputs[0]).dtype;
  const bool positive = dtype == DType::U8 || edit.producer(pad->inputs[0], OpKind::Relu) != nullptr;
  const double lowest = dtype == DType::I8 ? -128 : -std::numeric_limits<double>::infinity();
  const auto more =
      spatial_padding(edit, *pad, [=](double fill) { return fill == lowest || (fill == 0 && positive); });
  if (!more) return;
  add_pads(attributes.pads, *more);
  if (pads_whole_windows(attributes.pads, attributes.kernel)) return;
  edit.rewrite(id, std::move(attributes), {pad->inputs[0]});
}

void drop_pad(GraphEdit& edit, NodeId id) {
  const auto pads = edit.ints(edit.node(id).inputs[1]);
  if (pads && std::all_of(pads->begin(), pads->end(), [](int64_t count) { return count == 0; }))
    drop(edit, id);
}

/// MatMul can read its operands transposed.
void absorb_transpose_in_matmul(GraphEdit& edit, NodeId id) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* transpose = edit.producer(edit.node(id).inputs[i], OpKind::Transpose);
    if (transpose == nullptr) continue;
    std::vector<int64_t> permutation = transpose->as<op::TransposeAttributes>().permutation;
    if (permutation.size() < 2) continue;
    std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
    if (!is_identity(permutation)) continue;
    std::vector<ValueId> inputs = edit.node(id).inputs;
    inputs[i] = transpose->inputs[0];
    op::MatMulAttributes attributes = edit.node(id).as<op::MatMulAttributes>();
    (i == 0 ? attributes.transpose_a : attributes.transpose_b) ^= true;
    edit.rewrite(id, std::move(attributes), inputs);
    return;
  }
}

/// y = f(x), element by element, of any type.
bool is_unary(OpKind kind) {
  return ops::form_of(kind) == ops::Form::Unary || kind == OpKind::Cast;
}

struct Rule {
  OpKind kind;
  void (*apply)(GraphEdit&, NodeId);
};

constexpr Rule kRules[] = {
    {OpKind::Identity, drop_identity},
    {OpKind::Add, drop_neutral},
    {OpKind::Sub, drop_neutral},
    {OpKind::Mul, drop_neutral},
    {OpKind::Div, drop_neutral},
    {OpKind::Pow, simplify_pow},
    {OpKind::Neg, drop_involution},
    {OpKind::Not, drop_involution},
    {OpKind::Abs, drop_idempotent},
    {OpKind::Relu, drop_idempotent},
    {OpKind::Floor, drop_idempotent},
    {OpKind::Ceil, drop_idempotent},
    {OpKind::Round, drop_idempotent},
    {OpKind::Clip, simplify_clip},
    {OpKind::Cast, simplify_cast},
    {OpKind::Reshape, simplify_reshape},
    {OpKind::Expand, fix_expand},
    {OpKind::Tile, drop_if_same},
    {OpKind::Transpose, simplify_transpose},
    {OpKind::Concat, simplify_concat},
    {OpKind::Slice, drop_slice},
    {OpKind::Pad, drop_pad},
    {OpKind::ReduceSum, drop_reduction},
    {OpKind::ReduceMean, drop_reduction},
    {OpKind::ReduceMax, drop_reduction},
    {OpKind::ReduceMin, drop_reduction},
    {OpKind::ReduceProd, drop_reduction},
    {OpKind::Conv, absorb_pad_in_conv},
    {OpKind::AveragePool, absorb_pad_in_average},
    {OpKind::MaxPool, absorb_pad_in_max},
    {OpKind::MatMul, absorb_transpose_in_matmul},
    {OpKind::Add, drop_expanded_operand},
    {OpKind::Sub, drop_expanded_operand},
    {OpKind::Mul, drop_expanded_operand},
    {OpKind::Div, drop_expanded_operand},
    {OpKind::Where, drop_expanded_operand},
    {OpKind::Minimum, drop_expanded_operand},
    {OpKind::Maximum, drop_expanded_operand},
    {OpKind::Equal, drop_expanded_operand},
    {OpKind::Less, drop_expanded_operand},
    {OpKind::Greater, drop_expanded_operand},
    {OpKind::ReluGrad, drop_expanded_operand},
};

}  // namespace

Status canonicalize(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  // Each change may open the way for another; the walk ends because every rule removes a node or a form.
  for (size_t before = 0;; before = edit.changes()) {
    for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) {
      for (const Rule& rule : kRules)
        if (edit.is_alive(id, rule.kind) && edit.status().ok()) rule.apply(edit, id);
      if (edit.is_alive(id) && is_unary(edit.node(id).kind())) sink_reshape(edit, id);
    }
    if (edit.changes() == before || !edit.status().ok()) break;
  }
  return edit.finish();
}

}  // namespace librt::compiler
