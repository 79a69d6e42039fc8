// Operators whose results' extents depend on data.
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

Status non_zero(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  return c.result(c.positions_of(c.input(0)));
}

Status unique(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  op::UniqueAttributes attributes;
  attributes.flatten = c.attribute("axis") == nullptr;
  attributes.axis = c.integer("axis", 0);
  attributes.sorted = c.integer("sorted", 1) != 0;
  c.outputs = c.emit.emit_many(make_op(attributes), c.inputs, 4);
  return {};
}

Status non_max_suppression(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 5));
  op::NonMaxSuppressionAttributes attributes;
  attributes.center_point_box = c.integer("center_point_box", 0) != 0;
  c.outputs = c.emit.emit_many(make_op(attributes), c.inputs, 1);
  return {};
}

/// The slices at the positions where the condition, which may be shorter than the axis, is true.
Status compress(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const bool flatten = c.attribute("axis") == nullptr;
  const ValueId x = flatten ? reshape_to(c.emit, c.input(0), {-1}) : c.input(0);
  op::GatherAttributes attributes;
  RT_ASSIGN(attributes.axis, c.axis(c.integer("axis", 0), flatten ? 1 : c.rank()));
  const ValueId places = reshape_to(c.emit, c.positions_of(c.input(1)), {-1});
  return c.result(c.emit.emit(attributes, {x, places}));
}

constexpr ImportRow kDynamicRows[] = {
    {"", "NonZero", 9, kNewestOpset, non_zero},
    {"", "Unique", 11, kNewestOpset, unique},
    {"", "NonMaxSuppression", 10, kNewestOpset, non_max_suppression},
    {"", "Compress", 9, kNewestOpset, compress},
};

}  // namespace

std::span<const ImportRow> rows_dynamic() {
  return kDynamicRows;
}

}  // namespace librt::onnx
