// Shape, ConstantOfShape and Range: shapes as values, computed on the host while planning where they can be.
#include <algorithm>
#include <cmath>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

// --- Shape
// ----------------------------------------------------------------------------------------------------

struct AxisRange {
  int first = 0;
  int last = 0;
};
/// start and end as in ONNX: negative ones count from the rank, both are clamped.
AxisRange shape_range(const op::ShapeAttributes& attributes, int rank) {
  const auto clamped = [rank](int64_t axis) {
    return static_cast<int>(std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank));
  };
  const int first = clamped(attributes.start);
  return {first, std::max(first, clamped(attributes.end))};
}

Status infer_shape(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const AxisRange range = shape_range(node.as<op::ShapeAttributes>(), node.shape(0).rank());
  return add_output(outputs, DType::I64, {range.last - range.first});
}

Status eval_shape(const NodeView& node, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  const Shape& shape = inputs[0].info.shape;
  const AxisRange range = shape_range(node.as<op::ShapeAttributes>(), shape.rank());
  for (int i = range.first; i < range.last; ++i)
    store_integer(outputs[0].data, DType::I64, i - range.first, shape[i]);
  return {};
}

Cost cost_shape(const NodeView&) {
  return {};
}

// --- ConstantOfShape
// ------------------------------------------------------------------------------------------

Status infer_constant_of_shape(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto dtype = static_cast<DType>(node.as<op::ConstantOfShapeAttributes>().dtype);
  if (!valid(dtype)) return invalid_argument("expected a known dtype, found value ", static_cast<int>(dtype));
  RT_ASSIGN(const Shape shape, shape_value(node, 0, "shape"));
  return add_output(outputs, dtype, shape);
}

Status eval_constant_of_shape(const NodeView& node, std::span<const ConstTensorView>,
                              std::span<const TensorView> outputs) {
  const TensorView& output = outputs[0];
  for (int64_t i = 0; i < output.info.elements(); ++i)
    store_element(output.data, output.info.dtype, i, node.as<op::ConstantOfShapeAttributes>().value);
  return {};
}

// --- Range
// ----------------------------------------------------------------------------------------------------

struct Arithmetic {
  double start = 0, delta = 1;  // floats
  int64_t integer_start = 0, integer_delta = 1;
  int64_t count = 0;
};

Result<Arithmetic> arithmetic(DType dtype, const void* start, const void* limit, const void* delta) {
  Arithmetic range;
  constexpr double kMost = 0x1p59;
  double count = 0;
  if (is_float(dtype)) {
    range.start = load_element(start, dtype, 0);
    range.delta = load_element(delta, dtype, 0);
    count = std::ceil((load_element(limit, dtype, 0) - range.start) / range.delta);
    if (!(count < kMost) || range.delta == 0)
      return invalid_argument("expected a finite range with a delta other than 0, found start ", range.start,
                              ", limit ", load_element(limit, dtype, 0), ", delta ", range.delta);
    range.count = count > 0 ? static_cast<int64_t>(count) : 0;
    return range;
  }
  range.integer_start = load_integer(start, dtype, 0);
  range.integer_delta = load_integer(delta, dtype, 0);
  const int64_t end = load_integer(limit, dtype, 0);
  if (range.integer_delta == 0) return invalid_argument("expected a delta other than 0, found 0");
  const bool upwards = range.integer_delta > 0;
  if (upwards ? end <= range.integer_start : end >= range.integer_start) return range;
  // In unsigned arithmetic, where the span of any two int64 fits.
  const auto from = static_cast<uint64_t>(range.integer_start), to = static_cast<uint64_t>(end);
  const uint64_t span = upwards ? to - from : from - to;
  const uint64_t step = upwards ? static_cast<uint64_t>(range.integer_delta)
                                : uint64_t{0} - static_cast<uint64_t>(range.integer_delta);
  const uint64_t steps = (span - 1) / step + 1;
  if (steps >= uint64_t{1} << 59)
    return invalid_argument("expected a range of less than " RT_MOST_ELEMENTS " elements, found ", steps);
  range.count = static_cast<int64_t>(steps);
  return range;
}

Status infer_range(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "start", kNumericTypes));
  for (size_t i = 0; i < 3; ++i) {
    RT_TRY(expect_same_dtype(node, i, text("input ", i), 0, "start"));
    if (node.input(i).elements() != 1)
      return invalid_argument("expected scalars as start, limit and delta, found ", node.input(i));
    if (node.inputs[i].value == nullptr)
      return invalid_argument("shape operand must be known: input ", i, " of the range depends on data");
  }
  RT_ASSIGN(const Arithmetic range,
            arithmetic(node.dtype(0), node.inputs[0].value, node.inputs[1].value, node.inputs[2].value));
  return add_output(outputs, node.dtype(0), {range.count});
}

Status eval_range(const NodeView&, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  const DType dtype = inputs[0].info.dtype;
  RT_ASSIGN(const Arithmetic range, arithmetic(dtype, inputs[0].data, inputs[1].data, inputs[2].data));
  if (is_float(dtype)) {
    for (int64_t i = 0; i < range.count; ++i)
      store_element(outputs[0].data, dtype, i, range.start + static_cast<double>(i) * range.delta);
    return {};
  }
  uint64_t value = static_cast<uint64_t>(range.integer_start);
  for (int64_t i = 0; i < range.count; ++i, value += static_cast<uint64_t>(range.integer_delta))
    store_integer(outputs[0].data, dtype, i, static_cast<int64_t>(value));
  return {};
}

}  // namespace

RT_PAGE(Shape) = {.kind = OpKind::Shape,
                  .infer = infer_shape,
                  .eval = eval_shape,
                  .cost = cost_shape,
                  .extents = ExtentRule::Copied};
RT_PAGE(ConstantOfShape) = {.kind = OpKind::ConstantOfShape,
                            .shape_operands = 1u << 0,
                            .infer = infer_constant_of_shape,
                            .eval = eval_constant_of_shape,
                            .extents = ExtentRule::Own};
RT_PAGE(Range) = {.kind = OpKind::Range,
                  .inputs = {3, 3},
                  .shape_operands = 1u << 0 | 1u << 1 | 1u << 2,
                  .infer = infer_range,
                  .eval = eval_range,
                  .arithmetic = ops::Arithmetic::PrecisionSensitive,
                  .extents = ExtentRule::Own};

RT_COMPILER_PAGE(Shape) = {.no_gradient = "integer output", .tolerance = {0, 0}};
RT_COMPILER_PAGE(ConstantOfShape) = {.no_gradient = "the result depends on a shape only",
                                     .tolerance = {0, 0}};
RT_COMPILER_PAGE(Range) = {.no_gradient = "the result's extent depends on the inputs", .tolerance = {0, 0}};

}  // namespace librt::ops
