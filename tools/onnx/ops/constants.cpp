// Constants, shapes as values, casts.
#include <algorithm>
#include <cmath>

#include "runtime/core/element.h"
#include "tools/onnx/narrow.h"
#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

Status constant(NodeContext& c) {
  RT_TRY(c.expect_inputs(0, 0));
  if (const auto* value = c.attribute("value")) {
    RT_ASSIGN(const ValueId id, c.constant_of(value->t()));
    return c.result(id);
  }
  if (c.attribute("value_float") != nullptr)
    return c.result(c.emit.scalar(c.real("value_float", 0), DType::F32));
  if (c.attribute("value_int") != nullptr) {
    const int64_t number = c.integer("value_int", 0);
    return c.result(
        c.emit.constant({.dtype = DType::I64, .shape = {}}, Blob::copy_of(&number, sizeof number)));
  }
  if (c.attribute("value_ints") != nullptr) return c.result(c.emit.ints(c.integers("value_ints")));
  if (c.attribute("value_floats") != nullptr) {
    const std::vector<float> values = c.reals("value_floats");
    return c.result(c.emit.constant({.dtype = DType::F32, .shape = {static_cast<int64_t>(values.size())}},
                                    Blob::copy_of(values.data(), values.size() * sizeof(float))));
  }
  return cannot(
      "only value, value_float(s) and value_int(s) are supported; store the constant as one of them");
}

Status constant_of_shape(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  op::ConstantOfShapeAttributes attributes;
  attributes.dtype = static_cast<uint8_t>(DType::F32);
  if (const auto* value = c.attribute("value")) {
    RT_ASSIGN(const ValueId id, c.constant_of(value->t()));
    const auto known = c.emit.known_value(id);
    if (!known || known->info.elements() != 1) return invalid_model("value: expected one element");
    const DType dtype = known->info.dtype;
    attributes.dtype = static_cast<uint8_t>(dtype);
    attributes.value = load_element(known->data, dtype, 0);
    if (is_integer(dtype) && std::abs(attributes.value) > 0x1p53)
      return cannot("a value beyond 2^53; use a smaller one");
  }
  return c.result(c.emit.emit(attributes, {as_vector(c.emit, c.input(0))}));
}

Status shape(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const int rank = c.rank();
  const auto clamp = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  op::ShapeAttributes attributes;
  attributes.start = clamp(c.integer("start", 0));
  attributes.end = std::max(attributes.start, clamp(c.integer("end", rank)));
  return c.result(c.emit.emit(attributes, {c.input(0)}));
}

Status size(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  return c.result(reshape_to(c.emit, dims_product(c.emit, c.input(0), 0, c.rank()), {}));
}

// com.microsoft: without the step, it is 1.
Status range(NodeContext& c) {
  const bool optional_step = c.node.domain() == "com.microsoft";
  RT_TRY(c.expect_inputs(optional_step ? 2 : 3, 3));
  ValueId bounds[3];
  for (size_t i = 0; i < 3; ++i)
    if (i == 2 && !c.has(2))
      bounds[2] = c.emit.scalar_like(1, bounds[0]);
    else
      bounds[i] = c.rank(i) == 0 ? c.input(i) : reshape_to(c.emit, c.input(i), {});
  return c.result(c.emit.emit(op::RangeAttributes{}, {bounds[0], bounds[1], bounds[2]}));
}

// To a narrow integer: the low bits, floats being truncated first. To other types: as Cast.
Status cast_to(NodeContext& c, const OnnxType& target) {
  const bool saturate = c.integer("saturate", 1) != 0;
  const OnnxType source = type_of_input(c, 0);
  ValueId y = c.input(0);
  if (source.dtype == target.dtype && source.narrow == target.narrow) return c.result(y);
  if (target.narrow_float()) {
    y = to_narrow_float(c.emit, y, *target.narrow, saturate);
  } else if (target.narrow_integer()) {
    if (is_float(source.dtype)) y = c.emit.cast(y, DType::I32);
    y = c.emit.cast(low_bits(c.emit, y, *target.narrow), target.dtype);
  } else if (source.dtype != target.dtype) {
    y = c.emit.cast(y, target.dtype);
  } else {
    y = c.emit.emit(op::IdentityAttributes{}, {y});  // the same bits under another type
  }
  c.set_narrow_type(y, target.narrow != nullptr ? target.narrow->onnx : 0);
  return c.result(y);
}

Status cast(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"round_mode"});  // of float8e8m0
  int64_t to = 0;
  if (c.opset < 6) {
    constexpr std::string_view kNames[] = {"UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                           "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                           "FLOAT16",   "DOUBLE", "UINT32", "UINT64"};
    const std::string name = c.string("to", "");
    to = std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames);
  } else {
    to = c.integer("to", 0);
  }
  constexpr int64_t kString = 8;
  if (const StringList list = to == kString ? c.strings(0) : nullptr; list != nullptr) {
    const ValueId same = c.emit.emit(op::IdentityAttributes{}, {c.input(0)});
    c.set_strings(same, list);
    return c.result(same);
  }
  RT_ASSIGN(const OnnxType target, onnx_type(to));
  return cast_to(c, target);
}

Status cast_like(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  c.ignore({"round_mode"});
  return cast_to(c, type_of_input(c, 1));
}

// Reinterprets the bits of a known value; for unknown integers, a cast between signed and unsigned.
Status bit_cast(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const OnnxType target, onnx_type(c.integer("to", 0)));
  const OnnxType source = type_of_input(c, 0);
  if (source.narrow != nullptr || target.narrow != nullptr)
    return cannot("types of less than 8 bits, or of floats of 8 bits, are not supported");
  if (size_of(source.dtype) != size_of(target.dtype))
    return invalid_model("expected types of one size, found ", name_of(source.dtype), " and ",
                         name_of(target.dtype));
  const ValueId x = c.input(0);
  c.set_narrow_type(x, 0);
  if (source.dtype == target.dtype) return c.result(x);
  if (const auto known = c.emit.known_value(x)) {
    const Shape shape = known->info.shape;
    return c.result(c.emit.constant({.dtype = target.dtype, .shape = shape},
                                    Blob::copy_of(known->data, known->info.bytes())));
  }
  if (is_float(source.dtype) || is_float(target.dtype))
    return cannot(
        "the bits of floating point numbers that are not known; use Cast, or give the input with "
        "--constant");
  return c.result(c.emit.cast(x, target.dtype));
}

ValueId dim_scalar(NodeContext& c, ValueId x, int axis) {
  return reshape_to(c.emit, dims_product(c.emit, x, axis, axis + 1), {});
}

// column - row >= k in the upper triangle, <= k in the lower.
ValueId triangle(NodeContext& c, ValueId x, ValueId k, bool upper) {
  const int rank = c.value(x).rank();
  const ValueId columns = counting(c.emit, dim_scalar(c, x, rank - 1));
  const ValueId rows = reshape_to(c.emit, counting(c.emit, dim_scalar(c, x, rank - 2)), {-1, 1});
  const ValueId difference = c.emit.sub(columns, rows);
  return upper ? c.emit.emit(op::GreaterOrEqualAttributes{}, {difference, k})
               : c.emit.emit(op::LessOrEqualAttributes{}, {difference, k});
}

Status trilu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 2));
  if (c.rank() < 2) return invalid_model("expected a rank of at least 2, found ", c.rank());
  const ValueId k = c.has(1) ? reshape_to(c.emit, c.input(1), {}) : c.emit.scalar(0, DType::I64);
  const ValueId mask = triangle(c, c.input(0), k, c.integer("upper", 1) != 0);
  return c.result(c.emit.emit(op::WhereAttributes{}, {mask, c.input(0), c.emit.scalar_like(0, c.input(0))}));
}

Status eye_like(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  if (c.rank() != 2) return invalid_model("expected a matrix, found rank ", c.rank());
  DType dtype = c.dtype();
  if (c.attribute("dtype") != nullptr) {
    RT_ASSIGN(const OnnxType named, onnx_type(c.integer("dtype", 1)));
    dtype = named.dtype;
  }
  const ValueId columns = counting(c.emit, dim_scalar(c, c.input(0), 1));
  const ValueId rows = reshape_to(c.emit, counting(c.emit, dim_scalar(c, c.input(0), 0)), {-1, 1});
  const ValueId k = c.emit.constant({.dtype = DType::I64, .shape = {}}, [&] {
    const int64_t offset = c.integer("k", 0);
    return Blob::copy_of(&offset, sizeof offset);
  }());
  return c.result(c.emit.cast(c.emit.emit(op::EqualAttributes{}, {c.emit.sub(columns, rows), k}), dtype));
}

// off except where the position on the new axis equals the index; indices from -depth count from the end.
Status one_hot(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", -1), c.rank() + 1));
  if (const auto known = c.known_integers(1, "depth"); known.ok() && (known->size() != 1 || (*known)[0] < 0))
    return invalid_model("depth: expected one number of 0 or more, found ",
                         known->size() == 1 ? text((*known)[0]) : text(known->size(), " numbers"));
  const ValueId depth = reshape_to(c.emit, as_vector(c.emit, c.input(1)), {});
  ValueId indices = c.dtype() == DType::I64 ? c.input(0) : c.emit.cast(c.input(0), DType::I64);
  const ValueId negative = c.emit.emit(op::LessAttributes{}, {indices, c.emit.scalar(0, DType::I64)});
  indices = c.emit.emit(op::WhereAttributes{}, {negative, c.emit.add(indices, depth), indices});
  indices = unsqueeze(c.emit, indices, {{axis}});
  std::vector<int64_t> extents(static_cast<size_t>(c.rank() + 1 - axis), 1);
  extents[0] = -1;
  const ValueId counted = c.emit.reshape(counting(c.emit, depth), c.emit.ints(extents));
  const ValueId hot = c.emit.emit(op::EqualAttributes{}, {indices, counted});
  const ValueId off = reshape_to(c.emit, slice(c.emit, c.input(2), 0, 0, 1), {});
  const ValueId on = reshape_to(c.emit, slice(c.emit, c.input(2), 0, 1, 2), {});
  return c.result(c.emit.emit(op::WhereAttributes{}, {hot, on, off}));
}

constexpr ImportRow kConstantsRows[] = {
    {"", "Constant", 1, kNewestOpset, constant},
    {"", "ConstantOfShape", 9, kNewestOpset, constant_of_shape},
    {"", "Shape", 1, kNewestOpset, shape},
    {"", "Size", 1, kNewestOpset, size},
    {"", "Range", 11, kNewestOpset, range},
    {"", "Cast", 1, kNewestOpset, cast},
    {"", "CastLike", 15, kNewestOpset, cast_like},
    {"", "BitCast", 26, kNewestOpset, bit_cast},
    {"", "Trilu", 14, kNewestOpset, trilu},
    {"com.microsoft", "Trilu", 1, kNewestOpset, trilu},
    {"", "EyeLike", 9, kNewestOpset, eye_like},
    {"", "OneHot", 9, kNewestOpset, one_hot},
    // ONNX Runtime's own.
    {"com.microsoft", "Range", 1, kNewestOpset, range},
};

}  // namespace

std::span<const ImportRow> rows_constants() {
  return kConstantsRows;
}

}  // namespace librt::onnx
