// Ensembles of trees (ai.onnx.ml): the leaves that rows reach, their weights, and sums of these.
//
// Where ONNX does not define a classifier's results (two classes with one score, base values of either), they
// are ONNX Runtime's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/core/element.h"
#include "tools/onnx/ml.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/trees.h"

namespace librt::onnx {
namespace {

enum class Aggregate { Average, Sum, Minimum, Maximum };

ValueId gathered(Emitter& emit, ValueId table, ValueId indices) {
  return emit.emit(op::GatherAttributes{}, {table, indices});
}

/// Every row's leaf in every tree, i32 [N,T].
ValueId leaves_of(Emitter& emit, const Trees& trees, ValueId rows) {
  std::vector<int32_t> nodes;
  nodes.reserve(4 * trees.size());
  for (const Trees::Node& node : trees.nodes)
    nodes.insert(nodes.end(), {node.feature, node.yes, node.no, node.comparison});
  const auto count = static_cast<int64_t>(trees.size()), roots = static_cast<int64_t>(trees.roots.size());
  op::TreeLeavesAttributes attributes;
  attributes.levels = trees.depth;
  return emit.emit(attributes, {rows, constant_i32(emit, nodes, {count, 4}),
                                constant_reals(emit, emit.value(rows).dtype, trees.threshold, {count}),
                                constant_i32(emit, trees.roots, {roots})});
}

template <class Attributes>
ValueId reduced_along(Emitter& emit, ValueId x, int64_t axis, bool keep) {
  Attributes attributes;
  attributes.axes = {axis};
  attributes.keep_dims = keep;
  return emit.emit(std::move(attributes), {x});
}

ValueId aggregated(Emitter& emit, Aggregate how, ValueId x, int64_t axis, bool keep) {
  if (how == Aggregate::Minimum) return reduced_along<op::ReduceMinAttributes>(emit, x, axis, keep);
  if (how == Aggregate::Maximum) return reduced_along<op::ReduceMaxAttributes>(emit, x, axis, keep);
  return reduced_along<op::ReduceSumAttributes>(emit, x, axis, keep);
}

/// The scores of all targets, [N,C], from the rows' leaves.
class Scores {
 public:
  Scores(NodeContext& c, const Trees& trees, int64_t targets, Aggregate how, DType dtype)
      : emit_(c.emit), trees_(trees), targets_(targets), how_(how), dtype_(dtype) {}

  Result<ValueId> of(ValueId leaves) {
    const bool sums = how_ == Aggregate::Sum || how_ == Aggregate::Average;
    ValueId scores = kNoValue;
    if (has_single_targets(sums)) {
      scores = by_tree(leaves);
    } else {
      RT_ASSIGN(scores, by_table(leaves, sums));
    }
    if (how_ == Aggregate::Average)
      scores = emit_.div(scores, emit_.scalar(static_cast<double>(trees_.roots.size()), dtype_));
    return scores;
  }

 private:
  /// Every tree has one target, so that a leaf's weight is a scalar.
  bool has_single_targets(bool sums) const {
    const auto single = [](int64_t target) { return target >= 0; };
    if (!std::all_of(trees_.target.begin(), trees_.target.end(), single)) return false;
    const auto finite = [](const auto& weight) { return std::isfinite(weight.value); };
    if (!std::all_of(trees_.weights.begin(), trees_.weights.end(), finite)) return false;
    if (sums) return true;
    // Only sums may take 0 for a leaf without a weight, and for a target without trees.
    return trees_.weights.size() == trees_.leaves && is_even() && weighs_all();
  }
  bool weighs_all() const {
    std::vector<uint8_t> seen(trees_.leaves);
    for (const auto& weight : trees_.weights) seen[static_cast<size_t>(weight.leaf)] = 1;
    return std::find(seen.begin(), seen.end(), 0) == seen.end();
  }
  /// The trees are sorted by target, with equally many for each.
  bool is_even() const {
    const auto count = static_cast<int64_t>(trees_.target.size());
    if (count % targets_ != 0) return false;
    for (int64_t i = 0; i < count; ++i)
      if (trees_.target[static_cast<size_t>(i)] != i / (count / targets_)) return false;
    return true;
  }
  ValueId by_tree(ValueId leaves) {
    std::vector<double> weights(trees_.leaves);
    for (const auto& weight : trees_.weights) weights[static_cast<size_t>(weight.leaf)] = weight.value;
    const auto table = constant_reals(emit_, dtype_, weights, {static_cast<int64_t>(weights.size())});
    const ValueId values = gathered(emit_, table, leaves);  // [N,T]
    if (targets_ == 1) return aggregated(emit_, how_, values, 1, true);
    const auto count = static_cast<int64_t>(trees_.roots.size());
    if (is_even()) {
      const Extent extents[] = {Extent::dim(emit_, values, 0), Extent::of(targets_),
                                Extent::of(count / targets_)};
      return aggregated(emit_, how_, reshape_to(emit_, values, extents), 2, false);
    }
    std::vector<double> choice(static_cast<size_t>(count * targets_));
    for (int64_t i = 0; i < count; ++i)
      choice[static_cast<size_t>(i * targets_ + trees_.target[static_cast<size_t>(i)])] = 1;
    return emit_.emit(op::MatMulAttributes{},
                      {values, constant_reals(emit_, dtype_, choice, {count, targets_})});
  }
  Result<ValueId> by_table(ValueId leaves, bool sums) {
    const auto rows = static_cast<int64_t>(trees_.leaves);
    const double start = sums                         ? 0
                         : how_ == Aggregate::Minimum ? std::numeric_limits<double>::infinity()
                                                      : -std::numeric_limits<double>::infinity();
    std::vector<double> weights(static_cast<size_t>(rows * targets_), start);
    for (const auto& weight : trees_.weights) {
      double& place = weights[static_cast<size_t>(weight.leaf * targets_ + weight.target)];
      if (sums) place += weight.value;
      if (how_ == Aggregate::Minimum) place = std::min(place, weight.value);
      if (how_ == Aggregate::Maximum) place = std::max(place, weight.value);
    }
    const ValueId table = constant_reals(emit_, dtype_, weights, {rows, targets_});
    // Some trees at a time, so that [N,trees,C] stays small.
    constexpr int64_t kNumericTypes = 16384;
    const auto count = static_cast<int64_t>(trees_.roots.size());
    const int64_t group = std::clamp<int64_t>(kNumericTypes / targets_, 1, count);
    ValueId scores = kNoValue;
    for (int64_t first = 0; first < count; first += group) {
      const ValueId part =
          group == count ? leaves : slice(emit_, leaves, 1, first, std::min(first + group, count));
      const ValueId values = aggregated(emit_, how_, gathered(emit_, table, part), 1, false);
      if (scores == kNoValue)
        scores = values;
      else if (sums)
        scores = emit_.add(scores, values);
      else if (how_ == Aggregate::Minimum)
        scores = emit_.emit(op::MinimumAttributes{}, {scores, values});
      else
        scores = emit_.emit(op::MaximumAttributes{}, {scores, values});
    }
    if (sums || std::find(weights.begin(), weights.end(), start) == weights.end()) return scores;
    // No tree had a weight of the target: 0.
    const ValueId none = emit_.emit(op::EqualAttributes{}, {scores, emit_.scalar(start, dtype_)});
    return emit_.emit(op::WhereAttributes{}, {none, emit_.scalar(0, dtype_), scores});
  }

  Emitter& emit_;
  const Trees& trees_;
  const int64_t targets_;
  const Aggregate how_;
  const DType dtype_;
};

/// Sorts the trees by target.
void sort_by_target(Trees& trees) {
  std::vector<size_t> order(trees.roots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return trees.target[a] < trees.target[b]; });
  std::vector<int32_t> roots;
  std::vector<int64_t> target;
  for (size_t i : order) {
    roots.push_back(trees.roots[i]);
    target.push_back(trees.target[i]);
  }
  trees.roots = std::move(roots);
  trees.target = std::move(target);
}

Status check_size(const Trees& trees, int64_t targets) {
  constexpr uint64_t kElements = uint64_t{1} << 26;
  const uint64_t places = std::max(trees.leaves, trees.roots.size());
  if (places * static_cast<uint64_t>(targets) <= std::max<uint64_t>(kElements, 16 * trees.weights.size()))
    return {};
  return cannot("a table of ", trees.leaves, " leaves and ", targets,
                " targets, of which the file has few; train an ensemble for each group of targets");
}

Status check_targets(int64_t targets) {
  constexpr int64_t kTargets = 1 << 16;
  if (targets >= 1 && targets <= kTargets) return {};
  return invalid_model("n_targets: expected 1 to ", kTargets, ", found ", targets);
}

/// Rows in the type that trees compare in: f64 where the model has f64, else f32.
Result<ValueId> rows_for(NodeContext& c, const Trees& trees) {
  return feature_rows(c, trees.wide || c.dtype() == DType::F64 ? DType::F64 : DType::F32);
}

Result<ValueId> scores_of(NodeContext& c, Trees& trees, int64_t targets, Aggregate how) {
  RT_TRY(check_size(trees, targets));
  RT_ASSIGN(const ValueId rows, rows_for(c, trees));
  sort_by_target(trees);
  const DType dtype = c.value(rows).dtype;
  const ValueId leaves = leaves_of(c.emit, trees, rows);
  return Scores(c, trees, targets, how, dtype).of(leaves);
}

Result<std::vector<double>> base_values(NodeContext& c) {
  const std::vector<float> floats = c.reals("base_values");
  std::vector<double> numbers(floats.begin(), floats.end());
  const auto* proto = c.tensor("base_values_as_tensor");
  if (proto == nullptr) return numbers;
  RT_ASSIGN(const ValueId id, c.constant_of(*proto));
  const auto known = c.emit.known_value(id);
  if (!known || known->info.shape.rank() > 1) return invalid_model("base_values_as_tensor: expected a list");
  for (int64_t i = 0; i < known->info.elements(); ++i)
    numbers.push_back(load_element(known->data, known->info.dtype, i));
  return numbers;
}

ValueId plus(Emitter& emit, ValueId scores, const std::vector<double>& base) {
  const bool none = std::all_of(base.begin(), base.end(), [](double value) { return value == 0; });
  if (none) return scores;
  const auto count = static_cast<int64_t>(base.size());
  return emit.add(scores, constant_reals(emit, emit.value(scores).dtype, base, {1, count}));
}

/// A single score has no others to normalize against; only a probit applies to it.
ValueId transformed_targets(Emitter& emit, PostTransform transform, ValueId scores, int64_t targets) {
  const bool alone = targets == 1 && transform != PostTransform::Probit;
  return alone ? scores : transformed(emit, transform, scores);
}

Status tree_regressor(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const int64_t targets = c.integer("n_targets", 1);
  RT_TRY(check_targets(targets));
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string name = c.string("aggregate_function", "SUM");
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames))
    return invalid_model("aggregate_function: expected AVERAGE, SUM, MIN or MAX, found ", name);
  RT_ASSIGN(const PostTransform transform, post_transform(c.string("post_transform", "NONE")));
  RT_ASSIGN(const auto base, base_values(c));
  if (!base.empty() && base.size() != static_cast<size_t>(targets))
    return invalid_model("base_values: expected ", targets, " entries, one for each target, found ",
                         base.size());
  RT_ASSIGN(Trees trees, trees_by_id(c, "target", targets));
  RT_ASSIGN(ValueId scores, scores_of(c, trees, targets, static_cast<Aggregate>(found - std::begin(kNames))));
  scores = plus(c.emit, scores, base);
  scores = as_type(c.emit, scores, DType::F32);
  return c.result(transformed_targets(c.emit, transform, scores, targets));
}

Status tree_ensemble(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const int64_t targets = c.integer("n_targets", 1), how = c.integer("aggregate_function", 1);
  const int64_t transform = c.integer("post_transform", 0);
  RT_TRY(check_targets(targets));
  if (how < 0 || how > 3) return invalid_model("aggregate_function: expected 0 to 3, found ", how);
  if (transform < 0 || transform > 4)
    return invalid_model("post_transform: expected 0 to 4, found ", transform);
  RT_ASSIGN(Trees trees, trees_by_position(c, targets));
  RT_ASSIGN(ValueId scores, scores_of(c, trees, targets, static_cast<Aggregate>(how)));
  scores = transformed_targets(c.emit, static_cast<PostTransform>(transform), scores, targets);
  return c.result(as_type(c.emit, scores, c.dtype()));
}

// --- classifiers

/// Two classes and weights of one of them: a single score for the second class.
struct Binary {
  const ClassLabels& labels;
  PostTransform transform;
  bool positive;                    ///< no weight is below 0, so that the score is a probability
  const std::vector<double>& base;  ///< none or one
  double threshold() const { return positive ? 0.5 : 0; }
};

/// The weights belong to the second class, so the score of the first is 0.
Status second_score(NodeContext& c, const Binary& binary, ValueId score) {
  Emitter& emit = c.emit;
  if (!binary.base.empty())
    return cannot("one base value, for two classes with weights of the second; give one for each class");
  const ValueId label = above(emit, score, binary.threshold());
  score = as_type(emit, score, DType::F32);
  const ValueId number = emit.emit(op::EqualAttributes{}, {score, score});
  const ValueId first = emit.emit(op::WhereAttributes{}, {number, emit.scalar(0, DType::F32), score});
  c.outputs = {labels_at(c, binary.labels, label),
               transformed(emit, binary.transform, columns(emit, first, score))};
  return {};
}

Status binary_scores(NodeContext& c, const Binary& binary, ValueId score) {
  Emitter& emit = c.emit;
  score = plus(emit, score, binary.base);
  const ValueId label = above(emit, score, binary.threshold());
  score = as_type(emit, score, DType::F32);
  ValueId first = kNoValue;
  if (binary.transform == PostTransform::Probit)
    return cannot("a probit of two classes with one score; export with post_transform NONE");
  if (binary.transform == PostTransform::Logistic) {
    first = transformed(emit, binary.transform, emit.neg(score));
    score = transformed(emit, binary.transform, score);
  } else if (binary.positive) {
    first = emit.sub(emit.scalar(1, DType::F32), score);
  } else {
    first = emit.neg(score);
  }
  c.outputs = {labels_at(c, binary.labels, label), columns(emit, first, score)};
  return {};
}

Status tree_classifier(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const ClassLabels labels, class_labels(c, "classlabels_int64s"));
  const auto classes = static_cast<int64_t>(labels.count());
  RT_ASSIGN(const PostTransform transform, post_transform(c.string("post_transform", "NONE")));
  RT_ASSIGN(auto base, base_values(c));
  if (classes < 2) return cannot("a classifier of one class; its label is known without it");
  RT_ASSIGN(Trees trees, trees_by_id(c, "class", classes));
  std::vector<double> has_weights(labels.count());
  for (const auto& weight : trees.weights) has_weights[static_cast<size_t>(weight.target)] = 1;
  const auto weighted = std::count(has_weights.begin(), has_weights.end(), 1.0);
  const bool positive = std::all_of(trees.weights.begin(), trees.weights.end(),
                                    [](const auto& weight) { return weight.value >= 0; });
  if (classes == 2 && weighted == 1 && base.size() < 2) {
    const bool of_second = has_weights[1] != 0;
    for (auto& weight : trees.weights) weight.target = 0;
    for (int64_t& target : trees.target) target = std::min<int64_t>(target, 0);
    RT_ASSIGN(const ValueId score, scores_of(c, trees, 1, Aggregate::Sum));
    const Binary binary{labels, transform, positive, base};
    return of_second ? second_score(c, binary, score) : binary_scores(c, binary, score);
  }
  RT_ASSIGN(ValueId scores, scores_of(c, trees, classes, Aggregate::Sum));
  if (!base.empty() && base.size() != labels.count())
    return invalid_model("base_values: expected ", classes, " entries, one for each class, found ",
                         base.size());
  scores = plus(c.emit, scores, base);
  ValueId compared = scores;
  if (base.empty() && weighted < classes) {  // a class without trees does not win with its 0
    std::vector<uint8_t> present(has_weights.begin(), has_weights.end());
    const DType dtype = c.value(scores).dtype;
    compared = c.emit.emit(op::WhereAttributes{},
                           {constant_bools(c.emit, present), scores, c.emit.scalar(-INFINITY, dtype)});
  }
  const ValueId label = largest_of_rows(c.emit, compared);
  const ValueId shown = transformed(c.emit, transform, as_type(c.emit, scores, DType::F32));
  c.outputs = {labels_at(c, labels, label), shown};
  return {};
}

constexpr ImportRow kTreeRows[] = {
    {"ai.onnx.ml", "TreeEnsembleClassifier", 1, kNewestOpset, tree_classifier},
    {"ai.onnx.ml", "TreeEnsembleRegressor", 1, kNewestOpset, tree_regressor},
    {"ai.onnx.ml", "TreeEnsemble", 5, kNewestOpset, tree_ensemble},
};

}  // namespace

std::span<const ImportRow> rows_ml_trees() {
  return kTreeRows;
}

}  // namespace librt::onnx
