// Losses: composites, so that they train wherever their parts run.
#include "runtime/ops/loss.h"

#include "runtime/geometry/cross_entropy.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {

ValueId labels_that_count(Emitter& e, ValueId labels, int64_t classes, int64_t ignore_index) {
  const auto whole = [&](int64_t value) {
    return e.scalar(static_cast<double>(value), e.value(labels).dtype);
  };
  const ValueId counts =
      e.emit(op::AndAttributes{}, {e.emit(op::GreaterOrEqualAttributes{}, {labels, whole(0)}),
                                   e.emit(op::LessAttributes{}, {labels, whole(classes)})});
  if (ignore_index < 0 || ignore_index >= classes) return counts;
  const ValueId ignored = e.emit(op::EqualAttributes{}, {labels, whole(ignore_index)});
  return e.emit(op::AndAttributes{}, {counts, e.emit(op::NotAttributes{}, {ignored})});
}

namespace {

/// Of SoftmaxCrossEntropy, CrossEntropy and CrossEntropyGrad.
Status infer_cross_entropy(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const bool mean = node.kind() == OpKind::SoftmaxCrossEntropy;
  RT_TRY(expect_dtype_and_rank(node, 0, "logits", mean ? kFloats : DTypeSet(DType::F32, DType::F64),
                               mean ? 2 : 1, mean ? 2 : kMaxRank));
  const CrossEntropyAttributes attributes =
      mean ? CrossEntropyAttributes{} : cross_entropy_attributes(node.node);
  Shape rows = node.shape(0);
  RT_ASSIGN(const int axis, resolve_axis(attributes.axis, rows.rank()));
  const Shape classes{rows[axis]};
  rows.erase(axis);
  for (size_t i = 1; i < node.input_count(); ++i) {
    if (!node.has(i)) continue;
    const Label what = i == 1 ? "labels" : i == attributes.weights ? "weights" : "values by row";
    RT_TRY(expect_dtype_and_shape(node, i, what,
                                  i == 1 ? DTypeSet(DType::I32, DType::I64) : DTypeSet(node.dtype(0)),
                                  i == attributes.weights ? classes : rows));
  }
  if (classes[0] == 0) return invalid_argument("expected at least one class, found logits ", node.input(0));
  if (attributes.weights == 5) return infer_like_first(node, outputs);
  if (mean) rows = {};
  for (int i = 0; i < (mean ? 1 : 4); ++i) RT_TRY(add_output(outputs, node.dtype(0), rows));
  return {};
}

Cost cost_of_cross_entropy(const NodeView& node) {
  Cost cost = elementwise_cost(node, 0);
  cost.flops = 5 * static_cast<double>(node.input(0).elements());
  return cost;
}

/// mean over rows of -log softmax(logits)[label]. The label's column is selected with Where, not by a one-hot
/// multiplication: a class masked with -inf has log probability -inf, and 0 times that is NaN. A label
/// outside [0, C) selects nothing and contributes 0.
std::vector<ValueId> body_of_mean_loss(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  const ValueId logits = inputs[0];
  const DType label_type = e.value(inputs[1]).dtype;
  const Dim classes = e.value(logits).dims.size() == 2 ? e.value(logits).dims[1] : Dim{};
  if (!classes.is_known()) {
    e.fail(unsupported(
        "SoftmaxCrossEntropy: expected a static number of classes, found logits with a dynamic one"));
    return {kNoValue};
  }
  const TensorInfo info{.dtype = label_type, .shape = {1, classes.extent}};
  std::vector<std::byte> numbers(info.bytes());
  for (int64_t i = 0; i < classes.extent; ++i) store_integer(numbers.data(), label_type, i, i);
  const ValueId class_indices = e.constant(info, Blob::own(std::move(numbers)));

  op::LogSoftmaxAttributes over_classes;
  over_classes.axis = 1;
  const ValueId log_probability = e.emit(over_classes, {logits});
  const std::array<int64_t, 2> column{-1, 1};
  const ValueId labels = e.reshape(inputs[1], e.ints(column));
  const ValueId is_label = e.emit(op::EqualAttributes{}, {labels, class_indices});
  const ValueId picked = e.reduce_sum(keep_where(e, is_label, log_probability), {1}, false);
  return {e.neg(e.reduce_mean(picked, {0}, false))};
}

// --- CrossEntropy: see schema/ops.fbs. Results by row have an extent of 1 on the axis of the classes until
// they are returned.

/// The operands of both bodies.
class ClassRows {
 public:
  ClassRows(Emitter& e, const Node& node, std::span<const ValueId> inputs)
      : e_(e), attributes_(cross_entropy_attributes(node)), logits_(inputs[0]), labels_(inputs[1]) {
    const Value logits = e.value(logits_);
    axis_ = normalized_axis(attributes_.axis, logits.rank()).value_or(0);
    const Dim& classes = logits.dims[static_cast<size_t>(axis_)];
    if (!classes.is_known()) {
      e.fail(unsupported(op_name(node), ": expected a static number of classes, found a dynamic one"));
      return;
    }
    classes_ = classes.extent;
    const ValueId labels = by_row(labels_);
    counts_ = labels_that_count(e, labels, classes_, attributes_.ignore_index);
    // Labels that do not count pick class 0, and the result is discarded: it may be infinite.
    chosen_ = e.emit(op::WhereAttributes{}, {counts_, labels, whole(0)});
    if (attributes_.weights >= inputs.size() || inputs[attributes_.weights] == kNoValue) return;
    weights_ = inputs[attributes_.weights];
    weight_ = e.emit(op::GatherAttributes{}, {weights_, chosen_});
  }

  int axis() const { return axis_; }
  bool smooths() const { return attributes_.label_smoothing != 0; }
  bool has_weights() const { return weights_ != kNoValue; }
  /// Of the labels' classes, which count.
  ValueId chosen() const { return chosen_; }
  ValueId weight() const { return has_weights() ? weight_ : number(1); }
  /// (1 - s) x
  ValueId of_label(ValueId x) const {
    return smooths() ? e_.mul(x, number(1 - attributes_.label_smoothing)) : x;
  }
  /// s / classes w
  ValueId of_classes() const {
    const ValueId share = number(attributes_.label_smoothing / static_cast<double>(classes_));
    return has_weights() ? e_.mul(over_classes(weights_), share) : share;
  }
  ValueId number(double value) const { return e_.scalar_like(value, logits_); }
  /// An operand of the labels' shape.
  ValueId by_row(ValueId x) const { return e_.reshape(x, shape_with_ones(e_, logits_, std::array{axis_})); }
  ValueId is_label() const {
    const ValueId classes = e_.emit(op::RangeAttributes{}, {whole(0), whole(classes_), whole(1)});
    return e_.emit(op::EqualAttributes{}, {chosen_, over_classes(classes)});
  }
  ValueId counted(ValueId x) const { return keep_where(e_, counts_, x); }
  ValueId result(ValueId x) const { return e_.reshape(counted(x), shape_value(e_, labels_)); }

 private:
  ValueId whole(int64_t value) const {
    return e_.scalar(static_cast<double>(value), e_.value(labels_).dtype);
  }
  /// A vector along the axis of the classes.
  ValueId over_classes(ValueId x) const {
    std::vector<int64_t> shape(static_cast<size_t>(e_.value(logits_).rank() - axis_), 1);
    shape[0] = -1;
    return e_.reshape(x, e_.ints(shape));
  }

  Emitter& e_;
  CrossEntropyAttributes attributes_;
  ValueId logits_, labels_, weights_ = kNoValue, weight_ = kNoValue, counts_ = kNoValue, chosen_ = kNoValue;
  int axis_ = 0;
  int64_t classes_ = 1;
};

std::vector<ValueId> body_of_cross_entropy(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const ClassRows rows(e, node, inputs);
  op::ReduceMaxAttributes over_classes;
  over_classes.axes = {rows.axis()};
  const ValueId maximum = e.emit(over_classes, {inputs[0]});
  const ValueId shifted = e.sub(inputs[0], maximum);
  const ValueId sum = e.reduce_sum(e.emit(op::ExpAttributes{}, {shifted}), {rows.axis()});
  const ValueId log_sum = e.emit(op::LogAttributes{}, {sum});
  const ValueId log_probability = e.sub(shifted, log_sum);
  op::GatherElementsAttributes along_classes;
  along_classes.axis = rows.axis();
  ValueId loss = e.neg(e.emit(along_classes, {log_probability, rows.chosen()}));
  if (rows.has_weights()) loss = e.mul(loss, rows.weight());
  loss = rows.of_label(loss);
  if (rows.smooths())
    loss = e.sub(loss, e.reduce_sum(e.mul(log_probability, rows.of_classes()), {rows.axis()}));
  const ValueId nan_as_sum = e.sub(log_sum, log_sum);
  return {rows.result(loss), rows.result(rows.weight()), rows.result(e.add(maximum, nan_as_sum)),
          rows.result(log_sum)};
}

/// With the share f = s / classes w of each class: grad ((((1 - s) w[label] + sum f) p - f) - (1 - s)
/// w[label] at the label). Without weights, the factor of p is 1.
std::vector<ValueId> body_of_cross_entropy_grad(Emitter& e, const Node& node,
                                                std::span<const ValueId> inputs) {
  const ClassRows rows(e, node, inputs);
  const ValueId shifted = e.sub(inputs[0], rows.by_row(inputs[2]));
  ValueId slope = e.emit(op::ExpAttributes{}, {e.sub(shifted, rows.by_row(inputs[3]))});
  const ValueId of_label = rows.of_label(rows.weight());
  if (rows.has_weights()) {
    const ValueId factor = rows.smooths() ? e.add(of_label, e.reduce_sum(rows.of_classes(), {})) : of_label;
    slope = e.mul(slope, factor);
  }
  if (rows.smooths()) slope = e.sub(slope, rows.of_classes());
  const ValueId none = rows.number(0);
  slope = e.sub(slope, e.emit(op::WhereAttributes{}, {rows.is_label(), of_label, none}));
  return {rows.counted(e.mul(rows.by_row(inputs[4]), slope))};
}

void gradient_of_cross_entropy(GradContext& c) {
  if (c.needs(2) || c.grad(2) != kNoValue || c.grad(3) != kNoValue)
    return c.emit.fail(
        unsupported("the gradient of CrossEntropy for class weights, or of its results maximum and log_sum"));
  if (c.grad() == kNoValue) return;
  const auto& attributes = c.node.as<op::CrossEntropyAttributes>();
  op::CrossEntropyGradAttributes gradient;
  gradient.axis = attributes.axis;
  gradient.ignore_index = attributes.ignore_index;
  gradient.label_smoothing = attributes.label_smoothing;
  std::vector<ValueId> inputs{c.input(0), c.input(1), c.output(2), c.output(3), c.grad()};
  if (c.input(2) != kNoValue) inputs.push_back(c.input(2));
  c.set(0, c.emit.emit_many(make_op(gradient), inputs, 1)[0]);
}

}  // namespace

RT_PAGE(SoftmaxCrossEntropy) = {.kind = OpKind::SoftmaxCrossEntropy,
                                .inputs = {2, 2},
                                .infer = infer_cross_entropy,
                                .cost = cost_of_cross_entropy,
                                .composite = true,
                                .arithmetic = Arithmetic::PrecisionSensitive,
                                .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(SoftmaxCrossEntropy) = {.body = body_of_mean_loss};

RT_PAGE(CrossEntropy) = {.kind = OpKind::CrossEntropy,
                         .inputs = {2, 3},
                         .outputs = {4, 4},
                         .infer = infer_cross_entropy,
                         .cost = cost_of_cross_entropy,
                         .composite = true,
                         .arithmetic = Arithmetic::PrecisionSensitive,
                         .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(CrossEntropy) = {.gradient = gradient_of_cross_entropy,
                                  .constant_outputs = 1u << 1,  // the labels' weights
                                  .body = body_of_cross_entropy};

RT_PAGE(CrossEntropyGrad) = {.kind = OpKind::CrossEntropyGrad,
                             .inputs = {5, 6},
                             .infer = infer_cross_entropy,
                             .cost = cost_of_cross_entropy,
                             .composite = true,
                             .arithmetic = Arithmetic::PrecisionSensitive,
                             .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(CrossEntropyGrad) = {.no_gradient = "is itself a gradient; librt has no second derivatives",
                                      .body = body_of_cross_entropy_grad};

}  // namespace librt::ops
