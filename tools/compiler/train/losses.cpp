#include "tools/compiler/train/losses.h"

#include <array>
#include <cfloat>
#include <numeric>

#include "runtime/ops/loss.h"
#include "runtime/ops/page_support.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/train/training_graph.h"

namespace librt::compiler {
namespace {

class LossWriter {
 public:
  LossWriter(Builder& builder, ValueId output, const LossOptions& options)
      : e_(builder), output_(output), name_(builder.value(output).name), options_(options) {}

  Result<ValueId> write() {
    if (!is_float(e_.value(output_).dtype))
      return invalid_argument("train: the first output '", name_, "' is ", name_of(e_.value(output_).dtype),
                              ", a loss needs floats");
    const Loss loss = options_.loss;
    if (loss == Loss::BinaryCrossEntropy) strip<op::SigmoidAttributes>();
    if (loss == Loss::CrossEntropy || loss == Loss::KlDivergence || loss == Loss::Ctc)
      strip<op::SoftmaxAttributes>();
    if (size_of(e_.value(output_).dtype) < size_of(DType::F32)) output_ = e_.cast(output_, DType::F32);
    switch (loss) {
      case Loss::CrossEntropy: return cross_entropy();
      case Loss::NegativeLogLikelihood: return negative_log_likelihood();
      case Loss::BinaryCrossEntropy: return binary_cross_entropy();
      case Loss::MeanSquaredError:
      case Loss::MeanAbsoluteError:
      case Loss::Huber: return regression();
      case Loss::KlDivergence: return kl_divergence();
      case Loss::Ctc: return ctc();
    }
    return internal_error("an unknown loss");
  }
  bool stripped() const { return stripped_; }
  /// The divisor of the mean.
  ValueId weight() {
    ValueId weight = weight_;
    if (weight == kNoValue) {
      weight =
          e_.emit(op::ReciprocalAttributes{}, {ops::reciprocal_count(e_, averaged_, all_axes(averaged_))});
    }
    return e_.value(weight).dtype == DType::F32 ? weight : e_.cast(weight, DType::F32);
  }

 private:
  /// A final activation is part of the loss, which computes it and its logarithm in one stable step.
  template <class Attributes>
  void strip() {
    const auto by_value = producers(e_.graph());
    const auto producer = [&](ValueId id) {
      return by_value[id] ? &e_.graph().nodes[*by_value[id]] : nullptr;
    };
    const Node* node = producer(output_);
    while (node != nullptr && node->kind() == OpKind::Cast && is_float(e_.value(node->inputs[0]).dtype))
      node = producer(node->inputs[0]);
    if (node == nullptr || node->kind() != make_op(Attributes{}).type) return;
    output_ = node->inputs[0];
    stripped_ = true;
  }

  ValueId number(double value) { return e_.scalar_like(value, output_); }
  ValueId scaled(ValueId x, double factor) { return factor == 1 ? x : e_.mul(x, number(factor)); }
  ValueId choose(ValueId condition, ValueId yes, ValueId no) {
    return e_.emit(op::WhereAttributes{}, {condition, yes, no});
  }
  ValueId mean(ValueId x) {
    averaged_ = x;
    return e_.reduce_mean(x, {}, false);
  }
  ValueId vector(const std::vector<float>& values) {
    const ValueId f32 = e_.constant({.dtype = DType::F32, .shape = {static_cast<int64_t>(values.size())}},
                                    Blob::copy_of(values.data(), values.size() * sizeof(float)));
    const DType dtype = e_.value(output_).dtype;
    return dtype == DType::F32 ? f32 : e_.cast(f32, dtype);
  }
  ValueId log_softmax(ValueId x, int64_t axis) {
    op::LogSoftmaxAttributes attributes;
    attributes.axis = axis;
    return e_.emit(attributes, {x});
  }
  std::vector<int> all_axes(ValueId x) const {
    std::vector<int> axes(static_cast<size_t>(e_.value(x).rank()));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  /// An input with the output's type and shape.
  ValueId target() { return input("target", e_.value(output_).dtype, all_axes(output_)); }
  /// An input with the extents of these axes of the output, and then `last`.
  ValueId input(const char* name, DType dtype, std::vector<int> axes, std::optional<Dim> last = {}) {
    return input_like(e_, {.name = name,
                           .dtype = dtype,
                           .like = output_,
                           .like_name = name_,
                           .axes = std::move(axes),
                           .last = last});
  }

  Result<int> class_axis() const {
    const Value& logits = e_.value(output_);
    auto axis = ops::resolve_axis(options_.class_axis, logits.rank());
    if (!axis.ok() || logits.rank() < 2)
      return invalid_argument("train: the loss needs an output with a class axis ", options_.class_axis,
                              " and others, '", name_, "' has rank ", logits.rank());
    if (!logits.dims[static_cast<size_t>(*axis)].is_known())
      return unsupported("train: the loss needs a static number of classes; '", name_, "' of rank ",
                         logits.rank(), " has none on axis ", *axis,
                         "; name another class axis, -1 for the last");
    return axis;
  }

  /// Labels of an output with classes on `axis`, after a check of the class weights.
  Result<ValueId> labels(int axis) {
    const int64_t classes = classes_on(axis);
    if (!options_.class_weights.empty() && static_cast<int64_t>(options_.class_weights.size()) != classes)
      return invalid_argument("train: expected ", classes, " class weights, one for each class, found ",
                              options_.class_weights.size());
    std::vector<int> axes = all_axes(output_);
    axes.erase(axes.begin() + axis);
    return input("labels", DType::I64, std::move(axes));
  }
  int64_t classes_on(int axis) const { return e_.value(output_).dims[static_cast<size_t>(axis)].extent; }

  /// The sum of the losses by the sum of the weights. If no label counts: 0, not 0 / 0.
  ValueId weighted_mean(ValueId loss, ValueId weight) {
    weight_ = e_.reduce_sum(weight, {}, false);
    const ValueId divisor = e_.emit(op::MaximumAttributes{}, {weight_, number(FLT_MIN)});
    return e_.div(e_.reduce_sum(loss, {}, false), divisor);
  }

  Result<ValueId> cross_entropy() {
    RT_ASSIGN(const int axis, class_axis());
    RT_ASSIGN(const ValueId chosen, labels(axis));
    op::CrossEntropyAttributes attributes;
    attributes.axis = axis;
    attributes.ignore_index = options_.ignore_index.value_or(-1);
    attributes.label_smoothing = options_.label_smoothing;
    std::vector<ValueId> inputs{output_, chosen};
    if (!options_.class_weights.empty()) inputs.push_back(vector(options_.class_weights));
    const std::vector<ValueId> rows = e_.emit_many(make_op(attributes), inputs, 4);
    RT_TRY(Status(e_.status()));
    return weighted_mean(rows[0], rows[1]);
  }

  Result<ValueId> negative_log_likelihood() {
    RT_ASSIGN(const int axis, class_axis());
    RT_ASSIGN(const ValueId chosen, labels(axis));
    const int64_t classes = classes_on(axis);
    // Labels that do not count pick class 0, and the result is discarded: it may be infinite.
    const ValueId counts = ops::labels_that_count(e_, chosen, classes, options_.ignore_index.value_or(-1));
    const ValueId safe = choose(counts, chosen, e_.scalar(0, DType::I64));
    op::GatherElementsAttributes along_classes;
    along_classes.axis = axis;
    const ValueId column = e_.reshape(safe, ops::shape_with_ones(e_, output_, std::array{axis}));
    const ValueId picked = e_.emit(along_classes, {output_, column});
    ValueId loss = e_.neg(e_.reshape(picked, ops::shape_value(e_, chosen)));
    ValueId weight = number(1);
    if (!options_.class_weights.empty()) {
      weight = e_.emit(op::GatherAttributes{}, {vector(options_.class_weights), safe});
      loss = e_.mul(loss, weight);
    }
    if (options_.label_smoothing > 0) {
      const ValueId all =
          scaled(sum_over_classes(output_, axis), -options_.label_smoothing / static_cast<double>(classes));
      loss = e_.add(scaled(loss, 1 - options_.label_smoothing), all);
    }
    return weighted_mean(ops::keep_where(e_, counts, loss), choose(counts, weight, number(0)));
  }

  /// sum over classes of weight times log probability
  ValueId sum_over_classes(ValueId log_probability, int axis) {
    if (!options_.class_weights.empty()) {
      std::vector<int64_t> shape(static_cast<size_t>(e_.value(output_).rank() - axis), 1);
      shape[0] = -1;
      log_probability = e_.mul(log_probability, e_.reshape(vector(options_.class_weights), e_.ints(shape)));
    }
    return e_.reduce_sum(log_probability, {axis}, false);
  }

  /// (1 - t) x + (1 + (w - 1) t) softplus(-x)
  Result<ValueId> binary_cross_entropy() {
    const ValueId t = target();
    ValueId factor = number(1);
    if (!options_.positive_weights.empty()) {
      const auto count = static_cast<int64_t>(options_.positive_weights.size());
      const Value& logits = e_.value(output_);
      if (count != 1 &&
          (logits.rank() == 0 || !logits.dims.back().is_known() || logits.dims.back().extent != count))
        return invalid_argument(
            "train: expected one positive weight, or one for each element of the last axis of '", name_,
            "', found ", count);
      const ValueId more = e_.sub(count == 1 ? number(static_cast<double>(options_.positive_weights[0]))
                                             : vector(options_.positive_weights),
                                  number(1));
      factor = e_.add(number(1), e_.mul(more, t));
    }
    const ValueId below = e_.emit(op::SoftplusAttributes{}, {e_.neg(output_)});
    return mean(e_.add(e_.mul(e_.sub(number(1), t), output_), e_.mul(factor, below)));
  }

  Result<ValueId> regression() {
    const ValueId difference = e_.sub(output_, target());
    if (options_.loss == Loss::MeanSquaredError) return mean(e_.mul(difference, difference));
    const ValueId distance = e_.emit(op::AbsAttributes{}, {difference});
    if (options_.loss == Loss::MeanAbsoluteError) return mean(distance);
    // With a = min(|d|, delta): a (|d| - a / 2), whose derivative by |d| is a.
    const ValueId a = e_.emit(op::MinimumAttributes{}, {distance, number(options_.huber_delta)});
    return mean(e_.mul(a, e_.sub(distance, scaled(a, 0.5))));
  }

  Result<ValueId> kl_divergence() {
    RT_ASSIGN(const int axis, class_axis());
    const double t = options_.temperature;
    const ValueId student = log_softmax(scaled(output_, 1 / t), axis);
    const ValueId teacher = log_softmax(scaled(target(), 1 / t), axis);
    const ValueId probability = e_.emit(op::ExpAttributes{}, {teacher});
    const ValueId possible = e_.emit(op::GreaterAttributes{}, {probability, number(0)});
    const ValueId terms = ops::keep_where(e_, possible, e_.mul(probability, e_.sub(teacher, student)));
    return scaled(mean(e_.reduce_sum(terms, {axis}, false)), t * t);
  }

  Result<ValueId> ctc() {
    const Value logits = e_.value(output_);
    if (logits.rank() != 3)
      return invalid_argument("train: ctc needs logits [T,N,C], the first output '", name_, "' has rank ",
                              logits.rank());
    constexpr int kBatch = 1;
    const ValueId labels = input("labels", DType::I64, {kBatch}, Dim{.symbol = e_.symbol("most_labels")});
    const ValueId input_lengths = input("input_lengths", DType::I64, {kBatch});
    const ValueId label_lengths = input("label_lengths", DType::I64, {kBatch});
    op::CtcLossAttributes attributes;
    attributes.blank = options_.blank;
    attributes.zero_infinity = true;
    const ValueId inputs[] = {log_softmax(output_, 2), labels, input_lengths, label_lengths};
    const ValueId loss = e_.emit_many(make_op(attributes), inputs, 2)[0];
    const ValueId count = e_.emit(op::MaximumAttributes{}, {label_lengths, e_.scalar(1, DType::I64)});
    return mean(e_.div(loss, e_.cast(count, logits.dtype)));
  }

  Builder& e_;
  ValueId output_;
  std::string name_;
  const LossOptions& options_;
  ValueId weight_ = kNoValue;    ///< of labels
  ValueId averaged_ = kNoValue;  ///< else: the value averaged over all its elements
  bool stripped_ = false;
};

}  // namespace

Result<ValueId> emit_loss(Builder& builder, ValueId output, const LossOptions& options, bool* stripped,
                          ValueId* weight) {
  LossWriter writer(builder, output, options);
  RT_ASSIGN(const ValueId loss, writer.write());
  if (weight != nullptr) *weight = writer.weight();
  RT_TRY(Status(builder.status()).in("loss"));
  *stripped = writer.stripped();
  return loss;
}

}  // namespace librt::compiler
