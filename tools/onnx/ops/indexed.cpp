// Gathers and scatters by indices, cumulative sums, top-k, and operators composed of them.
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

Status gather_elements(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  op::GatherElementsAttributes attributes;
  RT_ASSIGN(attributes.axis, c.axis(c.integer("axis", 0), c.rank()));
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1)}));
}

Status gather_nd(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  op::GatherNDAttributes attributes;
  if (c.opset >= 12) attributes.batch_dimensions = c.integer("batch_dims", 0);
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1)}));
}

Result<op::ScatterReduction> reduction_of(NodeContext& c) {
  const std::string name = c.opset >= 16 ? c.string("reduction", "none") : "none";
  if (name == "none") return op::ScatterReduction::None;
  if (name == "add") return op::ScatterReduction::Add;
  if (name == "mul") return op::ScatterReduction::Mul;
  // Exporters write min and max at opsets before 18 as well, where ONNX did not have them yet.
  if (name == "min") return op::ScatterReduction::Minimum;
  if (name == "max") return op::ScatterReduction::Maximum;
  return invalid_model("reduction: expected none, add, mul, min or max, found ", name);
}

// A shape of which entries at known positions are replaced, made of entries of both: that is computed while
// planning, and scattering is not. kNoValue where the node does something else.
ValueId with_entries_replaced(NodeContext& c) {
  const int64_t count = c.rank() == 1 && c.dtype() == DType::I64 ? c.extent(0, 0) : -1;
  const bool tuples = c.rank(1) == 2 && c.extent(1, 1) == 1;  // of ScatterND
  if (count < 0 || count > kMaxRank || c.rank(2) != 1 || (c.rank(1) != 1 && !tuples)) return kNoValue;
  const auto at = c.known_integers(1, "indices");
  if (!at.ok() || static_cast<int64_t>(at->size()) != c.extent(2, 0)) return kNoValue;
  std::vector<ValueId> entries;
  for (int64_t i = 0; i < count; ++i) entries.push_back(slice(c.emit, c.input(0), 0, i, i + 1));
  for (size_t k = 0; k < at->size(); ++k) {
    const int64_t i = (*at)[k] < 0 ? (*at)[k] + count : (*at)[k];
    if (i < 0 || i >= count) return kNoValue;
    const auto from = static_cast<int64_t>(k);
    entries[static_cast<size_t>(i)] = slice(c.emit, c.input(2), 0, from, from + 1);
  }
  return entries.empty() ? c.input(0) : concat_values(c.emit, std::move(entries));
}

Status scatter_elements(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  op::ScatterElementsAttributes attributes;
  RT_ASSIGN(attributes.axis, c.axis(c.integer("axis", 0), c.rank()));
  RT_ASSIGN(attributes.reduction, reduction_of(c));
  if (attributes.reduction == op::ScatterReduction::None)
    if (const ValueId shape = with_entries_replaced(c); shape != kNoValue) return c.result(shape);
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1), c.input(2)}));
}

Status scatter_nd(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  op::ScatterNDAttributes attributes;
  RT_ASSIGN(attributes.reduction, reduction_of(c));
  if (attributes.reduction == op::ScatterReduction::None && c.rank(1) == 2)
    if (const ValueId shape = with_entries_replaced(c); shape != kNoValue) return c.result(shape);
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1), c.input(2)}));
}

template <class Attributes>
Status scan(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const auto known = c.known_integers(1, "axis");
  if (!known.ok() && known.status().code() != Code::Unsupported) return known.status();
  if (known.ok() && known->size() != 1) return invalid_model("expected one axis, found ", known->size());
  Attributes attributes;
  attributes.exclusive = c.integer("exclusive", 0) != 0;
  attributes.reverse = c.integer("reverse", 0) != 0;
  if (known.ok()) {
    RT_ASSIGN(attributes.axis, c.axis(known->front(), c.rank()));
    return c.result(c.emit.emit(attributes, {c.input(0)}));
  }
  // An axis known only at run time selects among the sums along all axes.
  const ValueId wanted = counted_from_start(c.emit, reshape_to(c.emit, c.input(1), {}), c.rank());
  ValueId y = kNoValue;
  for (int axis = 0; axis < c.rank(); ++axis) {
    attributes.axis = axis;
    const ValueId along = c.emit.emit(attributes, {c.input(0)});
    const ValueId chosen = c.emit.emit(op::EqualAttributes{}, {wanted, c.emit.scalar(axis, DType::I64)});
    y = axis == 0 ? along : c.emit.emit(op::WhereAttributes{}, {chosen, along, y});
  }
  return y != kNoValue ? c.result(y) : invalid_model("expected an input of rank 1 or more");
}

Status top_k(NodeContext& c) {
  RT_TRY(c.opset < 10 ? c.expect_inputs(1, 1) : c.expect_inputs(2, 2));
  op::TopKAttributes attributes;
  RT_ASSIGN(attributes.axis, c.axis(c.integer("axis", -1), c.rank()));
  if (c.opset >= 11) {
    attributes.largest = c.integer("largest", 1) != 0;
    attributes.sorted = c.integer("sorted", 1) != 0;
  }
  ValueId k = kNoValue;
  if (c.opset < 10) {
    const int64_t number = c.integer("k", -1);
    k = c.emit.ints({&number, 1});
  } else {
    k = as_vector(c.emit, c.input(1));
  }
  const ValueId operands[] = {c.input(0), k};
  c.outputs = c.emit.emit_many(make_op(attributes), operands, 2);
  c.outputs.resize(c.output_count());
  return {};
}

/// Positions along `axis` of x as i64, [T].
ValueId positions(NodeContext& c, ValueId x, int axis) {
  const ValueId limit = reshape_to(c.emit, dims_product(c.emit, x, axis, axis + 1), {});
  return c.emit.emit(op::RangeAttributes{},
                     {c.emit.scalar(0, DType::I64), limit, c.emit.scalar(1, DType::I64)});
}

// Position t of sequence b reads position length - 1 - t while t < length, and t after it.
Status reverse_sequence(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  RT_ASSIGN(const int time, c.axis(c.integer("time_axis", 0), c.rank()));
  RT_ASSIGN(const int batch, c.axis(c.integer("batch_axis", 1), c.rank()));
  if (time > 1 || batch > 1 || time == batch)
    return invalid_model("expected time_axis and batch_axis to be 0 and 1, found ", time, " and ", batch);
  std::vector<int64_t> permutation;
  for (int axis = 0; axis < c.rank(); ++axis) permutation.push_back(axis);
  std::swap(permutation[0], permutation[1]);
  const ValueId x = batch == 0 ? c.input(0) : c.emit.transpose(c.input(0), permutation);
  const ValueId t = positions(c, x, 1);
  const ValueId lengths = reshape_to(
      c.emit, c.dtype(1) == DType::I64 ? c.input(1) : c.emit.cast(c.input(1), DType::I64), {-1, 1});
  const ValueId last = c.emit.sub(lengths, c.emit.scalar(1, DType::I64));
  const ValueId inside = c.emit.emit(op::LessAttributes{}, {t, lengths});
  const ValueId from = c.emit.emit(op::WhereAttributes{}, {inside, c.emit.sub(last, t), t});
  op::GatherNDAttributes attributes;
  attributes.batch_dimensions = 1;
  const int end = 2;
  const ValueId y = c.emit.emit(attributes, {x, unsqueeze(c.emit, from, {&end, 1})});
  return c.result(batch == 0 ? y : c.emit.transpose(y, permutation));
}

constexpr ImportRow kIndexedRows[] = {
    {"", "GatherElements", 11, kNewestOpset, gather_elements},
    {"", "GatherND", 11, kNewestOpset, gather_nd},
    {"com.microsoft", "GatherND", 1, kNewestOpset, gather_nd},
    {"", "Scatter", 9, 10, scatter_elements},
    {"", "ScatterElements", 11, kNewestOpset, scatter_elements},
    {"", "ScatterND", 11, kNewestOpset, scatter_nd},
    {"", "CumSum", 11, kNewestOpset, scan<op::CumSumAttributes>},
    {"", "CumProd", 26, kNewestOpset, scan<op::CumProdAttributes>},
    {"", "TopK", 1, kNewestOpset, top_k},
    {"", "ReverseSequence", 10, kNewestOpset, reverse_sequence},
};

}  // namespace

std::span<const ImportRow> rows_indexed() {
  return kIndexedRows;
}

}  // namespace librt::onnx
