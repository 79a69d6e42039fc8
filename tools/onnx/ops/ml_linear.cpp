// Linear models and support vector machines (ai.onnx.ml).
//
// Where ONNX does not define a classifier's results (two classes with one score), they are ONNX Runtime's.
#include <algorithm>
#include <cmath>

#include "tools/onnx/ml.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// Matmul of rows [N,F] and the transposed rows [K,F] of a list.
ValueId times_rows(Emitter& emit, ValueId rows, std::span<const float> list, int64_t count) {
  op::MatMulAttributes matmul;
  matmul.transpose_b = true;
  const ValueId weights = constant_reals(emit, list, {count, static_cast<int64_t>(list.size()) / count});
  return emit.emit(std::move(matmul), {rows, weights});
}

Status expect_rows(NodeContext& c, ValueId rows, std::span<const float> list, int64_t count) {
  if (count < 1 || list.empty() || static_cast<int64_t>(list.size()) % count != 0)
    return invalid_model("coefficients: expected rows of one length for each of ", count, " targets, found ",
                         list.size(), " numbers");
  return expect_features(c, rows, list.size() / static_cast<size_t>(count));
}

Status linear_regressor(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const int64_t targets = c.integer("targets", 1);
  const std::vector<float> coefficients = c.reals("coefficients"), intercepts = c.reals("intercepts");
  RT_ASSIGN(const PostTransform transform, post_transform(c.string("post_transform", "NONE")));
  RT_ASSIGN(const ValueId rows, feature_rows(c));
  RT_TRY(expect_rows(c, rows, coefficients, targets));
  ValueId y = times_rows(c.emit, rows, coefficients, targets);
  if (!intercepts.empty()) {
    if (static_cast<int64_t>(intercepts.size()) != targets)
      return invalid_model("intercepts: expected ", targets, " entries, found ", intercepts.size());
    y = c.emit.add(y, constant_reals(c.emit, intercepts, {1, targets}));
  }
  // A single score has no others to normalize against; only a probit applies to it.
  const bool alone = targets == 1 && transform != PostTransform::Probit;
  return c.result(alone ? y : transformed(c.emit, transform, y));
}

Status linear_classifier(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"multi_class"});
  RT_ASSIGN(const ClassLabels labels, class_labels(c, "classlabels_ints"));
  const std::vector<float> coefficients = c.reals("coefficients"), intercepts = c.reals("intercepts");
  RT_ASSIGN(const PostTransform transform, post_transform(c.string("post_transform", "NONE")));
  RT_ASSIGN(const ValueId rows, feature_rows(c));
  const int64_t scores = static_cast<int64_t>(intercepts.empty() ? labels.count() : intercepts.size());
  const bool one_score = scores == 1 && labels.count() == 2;
  if (!one_score && (scores < 2 || static_cast<size_t>(scores) != labels.count()))
    return invalid_model("expected an intercept for each of ", labels.count(),
                         " classes, or one for two, found ", intercepts.size());
  RT_TRY(expect_rows(c, rows, coefficients, scores));
  ValueId y = times_rows(c.emit, rows, coefficients, scores);
  if (!intercepts.empty()) y = c.emit.add(y, constant_reals(c.emit, intercepts, {1, scores}));
  if (!one_score) {
    const ValueId label = largest_of_rows(c.emit, y);
    c.outputs = {labels_at(c, labels, label), transformed(c.emit, transform, y)};
    return {};
  }
  if (transform == PostTransform::Probit)
    return cannot("a probit of two classes with one score; export with post_transform NONE");
  const ValueId label = above(c.emit, y, 0);
  const bool logistic = transform == PostTransform::Logistic;
  const ValueId second = logistic ? transformed(c.emit, transform, y) : y;
  const ValueId first =
      logistic ? transformed(c.emit, transform, c.emit.neg(y)) : c.emit.sub(c.emit.scalar(1, DType::F32), y);
  c.outputs = {labels_at(c, labels, label), columns(c.emit, first, second)};
  return {};
}

// --- support vector machines

enum class KernelType { Linear, Poly, Rbf, Sigmoid };
struct SvmKernel {
  KernelType type = KernelType::Linear;
  float gamma = 0, constant = 0, degree = 0;
};

Result<SvmKernel> svm_kernel(NodeContext& c) {
  constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const std::string name = c.string("kernel_type", "LINEAR");
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames))
    return invalid_model("kernel_type: expected LINEAR, POLY, RBF or SIGMOID, found ", name);
  const std::vector<float> parameters = c.reals("kernel_params");
  if (!parameters.empty() && parameters.size() != 3)
    return invalid_model("kernel_params: expected gamma, coef0 and degree, found ", parameters.size(),
                         " numbers");
  SvmKernel kernel{.type = static_cast<KernelType>(found - std::begin(kNames))};
  if (!parameters.empty()) {
    kernel.gamma = parameters[0];
    kernel.constant = parameters[1];
    kernel.degree = parameters[2];
  }
  return kernel;
}

/// Integer degrees by repeated multiplication: a power of a negative base is not defined on every device.
ValueId power(Emitter& emit, ValueId x, float degree) {
  constexpr float kProducts = 16;
  if (degree != std::floor(degree) || degree < 1 || degree > kProducts)
    return emit.emit(op::PowAttributes{}, {x, emit.scalar_like(degree, x)});
  ValueId y = x;
  for (int i = 1; i < static_cast<int>(degree); ++i) y = emit.mul(y, x);
  return y;
}

// |x - v|^2 = |x|^2 + |v|^2 - 2 x v, relative to the vectors' mean to reduce cancellation.
ValueId squared_distances(Emitter& emit, ValueId rows, std::span<const float> vectors, int64_t count) {
  const auto features = static_cast<int64_t>(vectors.size()) / count;
  std::vector<double> mean(static_cast<size_t>(features));
  for (size_t i = 0; i < vectors.size(); ++i)
    mean[i % mean.size()] += static_cast<double>(vectors[i]) / static_cast<double>(count);
  std::vector<float> center(mean.begin(), mean.end()), moved(vectors.size());
  std::vector<double> squares(static_cast<size_t>(count));
  for (size_t i = 0; i < vectors.size(); ++i) {
    moved[i] = vectors[i] - center[i % center.size()];
    squares[i / center.size()] += static_cast<double>(moved[i]) * static_cast<double>(moved[i]);
  }
  const ValueId x = emit.sub(rows, constant_reals(emit, center, {1, features}));
  const ValueId products = times_rows(emit, x, moved, count);
  const ValueId own = emit.reduce_sum(emit.mul(x, x), {1});
  ValueId sum = emit.add(own, constant_reals(emit, DType::F32, squares, {1, count}));
  sum = emit.sub(sum, emit.mul(products, emit.scalar(2, DType::F32)));
  return emit.emit(op::MaximumAttributes{}, {sum, emit.scalar(0, DType::F32)});
}

/// k(x, v) of all rows and vectors, [N,V].
ValueId kernel_values(Emitter& emit, const SvmKernel& kernel, ValueId rows, std::span<const float> vectors,
                      int64_t count) {
  const auto number = [&](float value) { return emit.scalar(value, DType::F32); };
  if (kernel.type == KernelType::Rbf) {
    const ValueId distances = squared_distances(emit, rows, vectors, count);
    return emit.emit(op::ExpAttributes{}, {emit.mul(distances, number(-kernel.gamma))});
  }
  ValueId products = times_rows(emit, rows, vectors, count);
  if (kernel.type == KernelType::Linear) return products;
  products = emit.add(emit.mul(products, number(kernel.gamma)), number(kernel.constant));
  if (kernel.type == KernelType::Sigmoid) return emit.emit(op::TanhAttributes{}, {products});
  return power(emit, products, kernel.degree);
}

Status svm_regressor(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const SvmKernel kernel, svm_kernel(c));
  RT_ASSIGN(const PostTransform transform, post_transform(c.string("post_transform", "NONE")));
  if (transform != PostTransform::None)
    return cannot("a transform of one score; export with post_transform NONE");
  const std::vector<float> coefficients = c.reals("coefficients"), vectors = c.reals("support_vectors");
  const std::vector<float> rho = c.reals("rho");
  const int64_t count = c.integer("n_supports", 0);
  const bool one_class = c.integer("one_class", 0) != 0;
  if (rho.empty()) return invalid_model("rho: expected one entry, found none");
  RT_ASSIGN(const ValueId rows, feature_rows(c));
  ValueId y = kNoValue;
  if (count <= 0) {
    RT_TRY(expect_rows(c, rows, coefficients, 1));
    y = times_rows(c.emit, rows, coefficients, 1);
  } else {
    if (static_cast<int64_t>(coefficients.size()) != count)
      return invalid_model("coefficients: expected one for each of ", count, " vectors, found ",
                           coefficients.size());
    RT_TRY(expect_rows(c, rows, vectors, count));
    y = times_rows(c.emit, kernel_values(c.emit, kernel, rows, vectors, count), coefficients, 1);
  }
  y = c.emit.add(y, c.emit.scalar(rho[0], DType::F32));
  if (!one_class) return c.result(y);
  const ValueId inside = c.emit.emit(op::GreaterAttributes{}, {y, c.emit.scalar(0, DType::F32)});
  return c.result(c.emit.emit(op::WhereAttributes{},
                              {inside, c.emit.scalar(1, DType::F32), c.emit.scalar(-1, DType::F32)}));
}

/// One-vs-one classifiers: pair p is (first[p], second[p]).
struct Pairs {
  explicit Pairs(int64_t count_of_classes) : classes(count_of_classes) {
    for (int64_t i = 0; i < classes; ++i)
      for (int64_t j = i + 1; j < classes; ++j) {
        first.push_back(i);
        second.push_back(j);
      }
  }
  int64_t count() const { return static_cast<int64_t>(first.size()); }
  /// A matrix [P,C] with `a` at a pair's first class and `b` at its second.
  ValueId matrix(Emitter& emit, float a, float b) const {
    std::vector<float> numbers(static_cast<size_t>(count() * classes));
    for (size_t p = 0; p < first.size(); ++p) {
      numbers[p * static_cast<size_t>(classes) + static_cast<size_t>(first[p])] = a;
      numbers[p * static_cast<size_t>(classes) + static_cast<size_t>(second[p])] = b;
    }
    return constant_reals(emit, numbers, {count(), classes});
  }
  const int64_t classes;
  std::vector<int64_t> first, second;
};

ValueId matmul_of(Emitter& emit, ValueId a, ValueId b) {
  return emit.emit(op::MatMulAttributes{}, {a, b});
}

// Wu, Lin and Weng 2004, Probability estimates for multi-class classification by pairwise coupling, (16): the
// p >= 0 of sum 1 that minimizes p Q p. As all components of Q p are equal there, p follows by elimination
// from (Q + 1) p = 1, a positive definite system. probabilities: of each pair's first class.
ValueId coupled(Emitter& emit, const Pairs& pairs, ValueId probabilities) {
  const int64_t n = pairs.classes;
  const auto size = static_cast<size_t>(n);
  std::vector<float> place(static_cast<size_t>(pairs.count()) * size * size), start(size * size),
      eye(size * size);
  for (size_t p = 0; p < pairs.first.size(); ++p) {
    const auto i = static_cast<size_t>(pairs.first[p]), j = static_cast<size_t>(pairs.second[p]);
    place[(p * size + i) * size + j] = 1;
    place[(p * size + j) * size + i] = -1;
    start[j * size + i] = 1;
  }
  for (size_t i = 0; i < size; ++i) eye[i * size + i] = 1;
  const ValueId flat =
      emit.add(matmul_of(emit, probabilities, constant_reals(emit, place, {pairs.count(), n * n})),
               constant_reals(emit, start, {1, n * n}));
  const Extent extents[] = {Extent::dim(emit, flat, 0), Extent::of(n), Extent::of(n)};
  const ValueId r = reshape_to(emit, flat, extents);  // r[i,j]: i rather than j
  const ValueId diagonal =
      emit.mul(constant_reals(emit, eye, {1, n, n}), emit.reduce_sum(emit.mul(r, r), {1}));
  ValueId a =
      emit.sub(emit.add(diagonal, emit.scalar(1, DType::F32)), emit.mul(r, emit.transpose(r, {0, 2, 1})));
  // The right-hand side, a column of ones, is appended to the matrix as its last column.
  const ValueId ones =
      emit.add(emit.mul(slice(emit, a, 2, 0, 1), emit.scalar(0, DType::F32)), emit.scalar(1, DType::F32));
  a = columns(emit, a, ones, 2);
  for (int64_t k = 0; k < n; ++k) {
    std::vector<float> unit(size);
    unit[static_cast<size_t>(k)] = 1;
    const ValueId column = slice(emit, a, 2, k, k + 1), row = slice(emit, a, 1, k, k + 1);
    const ValueId scaled = emit.div(row, slice(emit, row, 2, k, k + 1));
    a = emit.sub(a, emit.mul(emit.sub(column, constant_reals(emit, unit, {1, n, 1})), scaled));
  }
  const Extent flat_extents[] = {Extent::dim(emit, flat, 0), Extent::of(n)};
  const ValueId p = reshape_to(emit, slice(emit, a, 2, n, n + 1), flat_extents);
  return emit.div(p, emit.reduce_sum(p, {1}));
}

struct SvmClassifier {
  ClassLabels labels;
  SvmKernel kernel;
  PostTransform transform = PostTransform::None;
  std::vector<float> coefficients, vectors, rho, a, b;
  std::vector<int64_t> per_class;
};

// liblinear's form: a row of coefficients for each class.
Status svm_linear(NodeContext& c, const SvmClassifier& svm, ValueId rows) {
  const auto classes = static_cast<int64_t>(svm.labels.count());
  RT_TRY(expect_rows(c, rows, svm.coefficients, classes));
  const ValueId scores =
      c.emit.add(times_rows(c.emit, rows, svm.coefficients, classes), c.emit.scalar(svm.rho[0], DType::F32));
  ValueId label = largest_of_rows(c.emit, scores);
  if (classes == 2) {  // the second class if the larger score is above the threshold
    const bool positive =
        std::all_of(svm.coefficients.begin(), svm.coefficients.end(), [](float value) { return value >= 0; });
    op::ReduceMaxAttributes reduce;
    reduce.axes = {1};
    const ValueId largest = c.emit.emit(std::move(reduce), {scores});
    const ValueId limit = c.emit.scalar(positive ? 0.5 : 0, DType::F32);
    const ValueId high = positive ? c.emit.emit(op::GreaterOrEqualAttributes{}, {largest, limit})
                                  : c.emit.emit(op::GreaterAttributes{}, {largest, limit});
    label = c.emit.emit(op::MaximumAttributes{},
                        {label, c.emit.cast(reshape_to(c.emit, high, {-1}), DType::I64)});
  }
  c.outputs = {labels_at(c, svm.labels, label), transformed(c.emit, svm.transform, scores)};
  return {};
}

/// The matrix [V,P] from kernel values [N,V] to scores of pairs.
ValueId pair_weights(Emitter& emit, const SvmClassifier& svm, const Pairs& pairs, int64_t vectors) {
  std::vector<int64_t> class_of;
  for (size_t i = 0; i < svm.per_class.size(); ++i)
    class_of.insert(class_of.end(), static_cast<size_t>(svm.per_class[i]), static_cast<int64_t>(i));
  std::vector<float> weights(static_cast<size_t>(vectors * pairs.count()));
  for (int64_t v = 0; v < vectors; ++v)
    for (int64_t p = 0; p < pairs.count(); ++p) {
      const int64_t i = pairs.first[static_cast<size_t>(p)], j = pairs.second[static_cast<size_t>(p)];
      const int64_t own = class_of[static_cast<size_t>(v)];
      if (own != i && own != j) continue;
      const int64_t row = own == i ? j - 1 : i;
      weights[static_cast<size_t>(v * pairs.count() + p)] =
          svm.coefficients[static_cast<size_t>(row * vectors + v)];
    }
  return constant_reals(emit, weights, {vectors, pairs.count()});
}

Result<int64_t> check_svm(const SvmClassifier& svm) {
  const size_t classes = svm.labels.count();
  if (svm.per_class.size() != classes)
    return invalid_model("vectors_per_class: expected ", classes, " entries, found ", svm.per_class.size());
  int64_t vectors = 0;
  for (int64_t count : svm.per_class) {
    if (count < 0 || static_cast<uint64_t>(count) > svm.vectors.size())
      return invalid_model("vectors_per_class: ", count, " of ", svm.vectors.size(), " numbers");
    vectors += count;
  }
  const size_t pairs = classes * (classes - 1) / 2;
  if (vectors < 1 || svm.coefficients.size() != (classes - 1) * static_cast<size_t>(vectors))
    return invalid_model("coefficients: expected ", classes - 1, " for each of ", vectors, " vectors, found ",
                         svm.coefficients.size());
  if (svm.rho.size() < pairs)
    return invalid_model("rho: expected ", pairs, " entries, found ", svm.rho.size());
  if (svm.a.size() != svm.b.size() || (!svm.a.empty() && svm.a.size() < pairs))
    return invalid_model("prob_a and prob_b: expected ", pairs, " entries each, found ", svm.a.size(),
                         " and ", svm.b.size());
  constexpr uint64_t kElements = uint64_t{1} << 26;
  if (static_cast<uint64_t>(vectors) * pairs > kElements)
    return cannot("a support vector machine of ", classes, " classes and ", vectors,
                  " vectors; use fewer classes");
  return vectors;
}

// The label is decided by votes of the pairs, not by the scores.
ValueId svm_votes(Emitter& emit, const Pairs& pairs, ValueId scores) {
  const ValueId first =
      emit.cast(emit.emit(op::GreaterAttributes{}, {scores, emit.scalar(0, DType::F32)}), DType::F32);
  const ValueId other = emit.sub(emit.scalar(1, DType::F32), first);
  const ValueId votes = emit.add(matmul_of(emit, first, pairs.matrix(emit, 1, 0)),
                                 matmul_of(emit, other, pairs.matrix(emit, 0, 1)));
  return largest_of_rows(emit, votes);
}

Status svm_classifier(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  SvmClassifier svm;
  RT_ASSIGN(svm.labels, class_labels(c, "classlabels_ints"));
  RT_ASSIGN(svm.kernel, svm_kernel(c));
  RT_ASSIGN(svm.transform, post_transform(c.string("post_transform", "NONE")));
  svm.coefficients = c.reals("coefficients");
  svm.vectors = c.reals("support_vectors");
  svm.per_class = c.integers("vectors_per_class");
  svm.rho = c.reals("rho");
  svm.a = c.reals("prob_a");
  svm.b = c.reals("prob_b");
  if (svm.labels.count() < 2) return cannot("a classifier of one class; its label is known without it");
  if (svm.rho.empty()) return invalid_model("rho: expected at least one entry, found none");
  RT_ASSIGN(const ValueId rows, feature_rows(c));
  if (svm.per_class.empty()) return svm_linear(c, svm, rows);
  RT_ASSIGN(const int64_t vectors, check_svm(svm));
  RT_TRY(expect_rows(c, rows, svm.vectors, vectors));
  const Pairs pairs(static_cast<int64_t>(svm.labels.count()));
  Emitter& emit = c.emit;
  const auto row = [&](const std::vector<float>& list) {
    return constant_reals(emit, std::span(list).first(static_cast<size_t>(pairs.count())),
                          {1, pairs.count()});
  };
  const ValueId values = kernel_values(emit, svm.kernel, rows, svm.vectors, vectors);
  ValueId scores = emit.add(matmul_of(emit, values, pair_weights(emit, svm, pairs, vectors)), row(svm.rho));
  const ValueId label = labels_at(c, svm.labels, svm_votes(emit, pairs, scores));
  if (!svm.a.empty()) {
    const ValueId exponent = emit.add(emit.mul(scores, row(svm.a)), row(svm.b));
    op::ClipAttributes clip;
    clip.minimum = 1e-7F;
    clip.maximum = 1 - 1e-7F;
    const ValueId likely = emit.emit(clip, {transformed(emit, PostTransform::Logistic, emit.neg(exponent))});
    scores = transformed(emit, svm.transform, coupled(emit, pairs, likely));
  } else if (pairs.count() > 1) {
    scores = transformed(emit, svm.transform, scores);
  } else if (svm.transform == PostTransform::None) {
    scores = columns(emit, emit.neg(scores), scores);
  } else if (svm.transform == PostTransform::Logistic) {
    scores = columns(emit, transformed(emit, svm.transform, emit.neg(scores)),
                     transformed(emit, svm.transform, scores));
  } else {
    return cannot("this transform of two classes with one score; export with post_transform NONE");
  }
  c.outputs = {label, scores};
  return {};
}

constexpr ImportRow kLinearRows[] = {
    {"ai.onnx.ml", "LinearClassifier", 1, kNewestOpset, linear_classifier},
    {"ai.onnx.ml", "LinearRegressor", 1, kNewestOpset, linear_regressor},
    {"ai.onnx.ml", "SVMClassifier", 1, kNewestOpset, svm_classifier},
    {"ai.onnx.ml", "SVMRegressor", 1, kNewestOpset, svm_regressor},
};

}  // namespace

std::span<const ImportRow> rows_ml_linear() {
  return kLinearRows;
}

}  // namespace librt::onnx
