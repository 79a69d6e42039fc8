#include "tools/onnx/ml.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "runtime/core/element.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {

ValueId constant_reals(Emitter& emit, DType dtype, std::span<const double> numbers, Shape shape) {
  const TensorInfo info{.dtype = dtype, .shape = shape};
  std::vector<std::byte> bytes(info.bytes());
  for (size_t i = 0; i < numbers.size(); ++i)
    store_element(bytes.data(), dtype, static_cast<int64_t>(i), numbers[i]);
  return emit.constant(info, Blob::own(std::move(bytes)));
}

ValueId constant_reals(Emitter& emit, std::span<const float> numbers, Shape shape) {
  return emit.constant({.dtype = DType::F32, .shape = shape},
                       Blob::copy_of(numbers.data(), numbers.size_bytes()));
}

ValueId constant_i32(Emitter& emit, std::span<const int32_t> numbers, Shape shape) {
  return emit.constant({.dtype = DType::I32, .shape = shape},
                       Blob::copy_of(numbers.data(), numbers.size_bytes()));
}

ValueId constant_bools(Emitter& emit, std::span<const uint8_t> flags) {
  return emit.constant({.dtype = DType::Bool, .shape = {static_cast<int64_t>(flags.size())}},
                       Blob::copy_of(flags.data(), flags.size_bytes()));
}

Result<ValueId> feature_rows(NodeContext& c, std::optional<DType> dtype) {
  if (c.rank() != 1 && c.rank() != 2)
    return invalid_model("expected rows of features [N,F], found a tensor of rank ", c.rank());
  const ValueId x = dtype ? as_type(c.emit, c.input(0), *dtype) : c.input(0);
  return c.rank() == 2 ? x : unsqueeze(c.emit, x, {{0}});
}

Status expect_features(NodeContext& c, ValueId rows, size_t features) {
  const Value& value = c.value(rows);
  if (value.rank() != 2 || !value.dims[1].is_known()) return {};
  if (value.dims[1].extent == static_cast<int64_t>(features)) return {};
  return invalid_model("the attributes are for ", features, " features, the input has ",
                       value.dims[1].extent);
}

Result<PostTransform> post_transform(std::string_view name) {
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<PostTransform>(i);
  return invalid_model("post_transform: expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, found ",
                       name);
}

namespace {

// The inverse normal CDF by a closed-form inverse error function (Winitzki 2008) with a = 0.147 and pi to the
// digits that ONNX Runtime uses.
ValueId probit(Emitter& emit, ValueId scores) {
  const auto number = [&](double value) { return emit.scalar_like(value, scores); };
  constexpr double kA = 0.147, kPi = 3.14159;
  const ValueId x = emit.sub(emit.mul(scores, number(2)), number(1));
  const ValueId log =
      emit.emit(op::LogAttributes{}, {emit.mul(emit.sub(number(1), x), emit.add(number(1), x))});
  const ValueId v = emit.add(emit.mul(log, number(0.5)), number(2 / (kPi * kA)));
  const ValueId root =
      emit.emit(op::SqrtAttributes{}, {emit.sub(emit.mul(v, v), emit.mul(log, number(1 / kA)))});
  const ValueId size = emit.emit(op::SqrtAttributes{}, {emit.sub(root, v)});
  const ValueId negative = emit.emit(op::LessAttributes{}, {x, number(0)});
  return emit.mul(emit.emit(op::WhereAttributes{}, {negative, emit.neg(size), size}),
                  number(std::numbers::sqrt2));
}

// The softmax over nonzero scores; zeros stay.
ValueId softmax_zero(Emitter& emit, ValueId scores) {
  op::ReduceMaxAttributes reduce;
  reduce.axes = {1};
  const ValueId largest = emit.emit(std::move(reduce), {scores});
  const ValueId counts = emit.emit(
      op::GreaterAttributes{}, {emit.emit(op::AbsAttributes{}, {scores}), emit.scalar_like(1e-7, scores)});
  const ValueId powers = emit.emit(op::ExpAttributes{}, {emit.sub(scores, largest)});
  const ValueId sum =
      emit.reduce_sum(emit.emit(op::WhereAttributes{}, {counts, powers, emit.scalar_like(0, scores)}), {1});
  const ValueId rest = emit.mul(scores, emit.emit(op::ExpAttributes{}, {emit.neg(largest)}));
  return emit.div(emit.emit(op::WhereAttributes{}, {counts, powers, rest}), sum);
}

}  // namespace

ValueId transformed(Emitter& emit, PostTransform transform, ValueId scores) {
  switch (transform) {
    case PostTransform::None: break;
    case PostTransform::Softmax: {
      op::SoftmaxAttributes softmax;
      softmax.axis = 1;
      return emit.emit(softmax, {scores});
    }
    case PostTransform::Logistic: return emit.emit(op::SigmoidAttributes{}, {scores});
    case PostTransform::SoftmaxZero: return softmax_zero(emit, scores);
    case PostTransform::Probit: return probit(emit, scores);
  }
  return scores;
}

Result<ClassLabels> class_labels(NodeContext& c, std::string_view numbers) {
  ClassLabels labels;
  labels.numbers = c.integers(numbers);
  std::vector<std::string> strings = c.texts("classlabels_strings");
  if (!strings.empty() && !labels.numbers.empty())
    return invalid_model("expected one of classlabels_strings and ", numbers, ", found both");
  if (strings.empty() && labels.numbers.empty())
    return invalid_model("expected labels in classlabels_strings or ", numbers, ", found none");
  if (!strings.empty()) labels.strings = std::make_shared<const std::vector<std::string>>(std::move(strings));
  return labels;
}

ValueId labels_at(NodeContext& c, const ClassLabels& labels, ValueId positions) {
  if (labels.strings != nullptr) {
    c.set_strings(positions, labels.strings);
    return positions;
  }
  bool counted = true;
  for (size_t i = 0; i < labels.numbers.size(); ++i)
    counted = counted && labels.numbers[i] == static_cast<int64_t>(i);
  if (counted) return positions;
  return c.emit.emit(op::GatherAttributes{}, {c.emit.ints(labels.numbers), positions});
}

std::string json_list(const std::vector<std::string>& strings) {
  using Json = nlohmann::json;
  return Json(strings).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_list(const std::vector<int64_t>& numbers) {
  return nlohmann::json(numbers).dump();
}

ValueId largest_of_rows(Emitter& emit, ValueId scores) {
  op::ArgMaxAttributes attributes;
  attributes.axis = 1;
  attributes.keep_dims = false;
  return emit.emit(attributes, {scores});
}

ValueId above(Emitter& emit, ValueId scores, double threshold) {
  const ValueId flags = emit.emit(op::GreaterAttributes{}, {scores, emit.scalar_like(threshold, scores)});
  return emit.cast(reshape_to(emit, flags, {-1}), DType::I64);
}

ValueId columns(Emitter& emit, ValueId first, ValueId second, int64_t axis) {
  const ValueId both[] = {first, second};
  return concat(emit, both, axis);
}

}  // namespace librt::onnx
