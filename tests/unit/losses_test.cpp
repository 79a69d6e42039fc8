// The training losses against their formulas in double, and their gradients against finite differences.
#include "tools/compiler/train/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/unit/page_test_support.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/autodiff.h"
#include "tools/compiler/train/training_graph.h"

namespace librt::test {
namespace {

using compiler::Loss;
using compiler::LossOptions;
using Numbers = std::vector<double>;

ops::HostTensor f64(Shape shape, const Numbers& values) {
  return tensor(DType::F64, shape, values);
}
ops::HostTensor labels(Shape shape, const Numbers& values) {
  return tensor(DType::I64, shape, values);
}

/// A graph of only the loss and its gradient with respect to the output.
class LossGraph {
 public:
  LossGraph(const LossOptions& options, const ops::HostTensor& output) : output_(output) {
    compiler::Builder builder(graph_);
    std::vector<Dim> dims;
    for (int64_t extent : output.info.shape) dims.push_back({.extent = extent});
    const ValueId x = builder.input("output", output.info.dtype, dims);
    bool stripped = false;
    auto loss = compiler::emit_loss(builder, x, options, &stripped);
    if (!loss.ok()) {
      error_ = loss.status().message();
      return;
    }
    const std::vector<ValueId> wanted{x};
    const auto gradients = compiler::differentiate(builder, *loss, wanted);
    EXPECT_TRUE(gradients.ok()) << gradients.status().message();
    if (!gradients.ok()) return;
    builder.output(*loss);
    builder.output((*gradients)[0]);
    EXPECT_TRUE(compiler::expand_composites(graph_, {}).ok());
  }

  const std::string& error() const { return error_; }

  /// Loss and gradient.
  std::pair<double, Numbers> run(const std::map<std::string, ops::HostTensor>& targets) const {
    return run_at(output_, targets);
  }

  void expect(double value, const std::map<std::string, ops::HostTensor>& targets) const {
    ASSERT_EQ(error_, "");
    const auto [loss, gradient] = run(targets);
    EXPECT_NEAR(loss, value, 1e-6 + 1e-6 * std::fabs(value));
    for (size_t i = 0; i < gradient.size(); ++i) {
      constexpr double kStep = 1e-5;
      ops::HostTensor moved = output_;
      const double at = load_element(moved.bytes.data(), DType::F64, static_cast<int64_t>(i));
      store_element(moved.bytes.data(), DType::F64, static_cast<int64_t>(i), at + kStep);
      const double above = run_at(moved, targets).first;
      store_element(moved.bytes.data(), DType::F64, static_cast<int64_t>(i), at - kStep);
      const double below = run_at(moved, targets).first;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-6) << "element " << i;
    }
  }

 private:
  std::pair<double, Numbers> run_at(const ops::HostTensor& output,
                                    const std::map<std::string, ops::HostTensor>& targets) const {
    std::vector<ConstTensorView> views;
    for (ValueId id : graph_.inputs) {
      const std::string& name = graph_[id].name;
      views.push_back(name == "output" ? output.view() : targets.at(name).view());
    }
    const auto results = ops::evaluate_graph(graph_, views);
    EXPECT_TRUE(results.ok()) << results.status().message();
    if (!results.ok()) return {NAN, {}};
    return {numbers((*results)[0])[0], numbers((*results)[1])};
  }

  ops::HostTensor output_;
  Graph graph_;
  std::string error_;
};

const Numbers kLogits = {0.3, -1.2, 2.1, 0.4, 1.7, -0.6, -2.2, 0.9, 0.1, 1.1, -0.3, 0.8};

double log_softmax(const Numbers& logits, size_t row, size_t column, size_t classes, double temperature = 1) {
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) sum += std::exp(logits[row * classes + c] / temperature);
  return logits[row * classes + column] / temperature - std::log(sum);
}

TEST(Losses, CrossEntropyWithEverything) {
  LossOptions options;
  options.label_smoothing = 0.1;
  options.ignore_index = 2;
  options.class_weights = {1, 2, 0.5};
  const Numbers chosen = {1, 2, 0, 7};  // the second is ignored, the last is not a class
  const Numbers weights = {1, 2, 0.5};
  double sum = 0, weight = 0;
  for (size_t row : {size_t{0}, size_t{2}}) {
    const auto label = static_cast<size_t>(chosen[row]);
    double all = 0;
    for (size_t c = 0; c < 3; ++c) all += weights[c] * log_softmax(kLogits, row, c, 3);
    sum -= 0.9 * weights[label] * log_softmax(kLogits, row, label, 3) + 0.1 / 3 * all;
    weight += weights[label];
  }
  LossGraph(options, f64({4, 3}, kLogits)).expect(sum / weight, {{"labels", labels({4}, chosen)}});
}

TEST(Losses, CrossEntropyOfImagesAndLastAxis) {
  // [1,3,4] with classes on axis 1 is [1,4,3] with classes last, transposed.
  const Numbers chosen = {0, 2, 1, 1};
  Numbers transposed(12);
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t c = 0; c < 3; ++c) transposed[c * 4 + i] = kLogits[i * 3 + c];
    sum -= log_softmax(kLogits, i, static_cast<size_t>(chosen[i]), 3) / 4;
  }
  LossOptions options;
  LossGraph(options, f64({1, 3, 4}, transposed)).expect(sum, {{"labels", labels({1, 4}, chosen)}});
  options.class_axis = -1;
  LossGraph(options, f64({1, 4, 3}, kLogits)).expect(sum, {{"labels", labels({1, 4}, chosen)}});
}

TEST(Losses, NegativeLogLikelihood) {
  LossOptions options;
  options.loss = Loss::NegativeLogLikelihood;
  LossGraph(options, f64({2, 3}, {-1, -2, -3, -0.5, -0.7, -4}))
      .expect(1.35, {{"labels", labels({2}, {1, 1})}});
}

TEST(Losses, NothingCountsIsZero) {
  LossOptions options;
  options.ignore_index = -100;
  LossGraph(options, f64({2, 3}, {1, 2, 3, 4, 5, 6})).expect(0, {{"labels", labels({2}, {-100, -100})}});
}

TEST(Losses, IgnoredRowsMayHaveAnyLogits) {
  LossOptions options;
  options.ignore_index = 0;
  options.label_smoothing = 0.1;
  const Numbers logits = {0.3, -1.2, 2.1, NAN, INFINITY, -INFINITY, NAN, NAN, NAN};
  const auto [loss, gradient] =
      LossGraph(options, f64({3, 3}, logits)).run({{"labels", labels({3}, {2, 0, 3})}});
  const auto [alone, gradient_alone] =
      LossGraph(options, f64({1, 3}, {0.3, -1.2, 2.1})).run({{"labels", labels({1}, {2})}});
  EXPECT_EQ(loss, alone);
  ASSERT_EQ(gradient.size(), 9u);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(gradient[i], i < 3 ? gradient_alone[i] : 0) << "element " << i;
}

TEST(Losses, LargeLogitsStayFinite) {
  LossOptions options;
  const ops::HostTensor large = f32({2, 2}, {1e4, -1e4, -1e4, 1e4});
  const auto cross = LossGraph(options, large).run({{"labels", labels({2}, {0, 0})}});
  EXPECT_NEAR(cross.first, 1e4, 1);
  options.loss = Loss::BinaryCrossEntropy;
  const auto binary = LossGraph(options, large).run({{"target", f32({2, 2}, {1, 0, 1, 0})}});
  EXPECT_NEAR(binary.first, 5e3, 1);
  options.loss = Loss::KlDivergence;
  const auto distilled = LossGraph(options, large).run({{"target", f32({2, 2}, {-1e4, 1e4, 1e4, -1e4})}});
  EXPECT_NEAR(distilled.first, 2e4, 1);
  for (double g : distilled.second) EXPECT_TRUE(std::isfinite(g));
}

TEST(Losses, BinaryCrossEntropyWithPositiveWeights) {
  LossOptions options;
  options.loss = Loss::BinaryCrossEntropy;
  options.positive_weights = {3, 0.5, 1};
  const Numbers target = {1, 0, 0.25, 0, 1, 1, 0.5, 0, 0, 1, 1, 0};
  double sum = 0;
  for (size_t i = 0; i < 12; ++i) {
    const double p = 1 / (1 + std::exp(-kLogits[i]));
    sum -= static_cast<double>(options.positive_weights[i % 3]) * target[i] * std::log(p) +
           (1 - target[i]) * std::log(1 - p);
  }
  LossGraph(options, f64({4, 3}, kLogits)).expect(sum / 12, {{"target", f64({4, 3}, target)}});
}

TEST(Losses, Regression) {
  const Numbers target = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
  double squares = 0, distances = 0, huber = 0;
  for (size_t i = 0; i < 12; ++i) {
    const double d = std::fabs(kLogits[i] - target[i]);
    squares += d * d;
    distances += d;
    huber += d <= 0.75 ? d * d / 2 : 0.75 * (d - 0.375);
  }
  LossOptions options;
  const auto expect = [&](Loss loss, double sum) {
    options.loss = loss;
    LossGraph(options, f64({3, 4}, kLogits)).expect(sum / 12, {{"target", f64({3, 4}, target)}});
  };
  options.huber_delta = 0.75;
  expect(Loss::MeanSquaredError, squares);
  expect(Loss::MeanAbsoluteError, distances);
  expect(Loss::Huber, huber);
}

TEST(Losses, DistillationWithTemperature) {
  LossOptions options;
  options.loss = Loss::KlDivergence;
  options.temperature = 2;
  const Numbers teacher = {1, 0, -1, 2, 2, 0.5, -0.5, 0, 1, 0, 0, 3};
  double sum = 0;
  for (size_t row = 0; row < 4; ++row)
    for (size_t c = 0; c < 3; ++c) {
      const double p = log_softmax(teacher, row, c, 3, 2), q = log_softmax(kLogits, row, c, 3, 2);
      sum += 4 * std::exp(p) * (p - q) / 4;
    }
  LossGraph(options, f64({4, 3}, kLogits)).expect(sum, {{"target", f64({4, 3}, teacher)}});
}

/// The total probability of all paths of `steps` symbols that collapse to `wanted`, by enumeration.
double path_probability(const Numbers& logits, size_t steps, size_t classes,
                        const std::vector<size_t>& wanted) {
  size_t paths = 1;
  for (size_t t = 0; t < steps; ++t) paths *= classes;
  double total = 0;
  for (size_t path = 0; path < paths; ++path) {
    double log_probability = 0;
    std::vector<size_t> collapsed;
    size_t rest = path, before = classes;
    for (size_t t = 0; t < steps; ++t, rest /= classes) {
      const size_t symbol = rest % classes;
      log_probability += log_softmax(logits, t, symbol, classes);
      if (symbol != before && symbol != 0) collapsed.push_back(symbol);
      before = symbol;
    }
    if (collapsed == wanted) total += std::exp(log_probability);
  }
  return total;
}

TEST(Losses, CtcSumsAllPaths) {
  LossOptions options;
  options.loss = Loss::Ctc;
  const double expected = -std::log(path_probability(kLogits, 4, 3, {1, 1})) / 2;
  const LossGraph graph(options, f64({4, 1, 3}, kLogits));
  graph.expect(expected, {{"labels", labels({1, 3}, {1, 1, 2})},
                          {"input_lengths", labels({1}, {4})},
                          {"label_lengths", labels({1}, {2})}});
  const double shorter = -std::log(path_probability(kLogits, 3, 3, {2}));
  graph.expect(shorter, {{"labels", labels({1, 3}, {2, 1, 2})},
                         {"input_lengths", labels({1}, {3})},
                         {"label_lengths", labels({1}, {1})}});
  graph.expect(0, {{"labels", labels({1, 3}, {2, 2, 2})},  // three equal labels need two blanks between them
                   {"input_lengths", labels({1}, {4})},
                   {"label_lengths", labels({1}, {3})}});
}

TEST(Losses, Errors) {
  LossOptions options;
  const auto error = [&](Shape shape) {
    const auto count = static_cast<size_t>(shape.elements());
    return LossGraph(options, f64(shape, Numbers(count))).error();
  };
  EXPECT_NE(error({3}).find("has rank 1"), std::string::npos);
  options.class_weights = {1, 2};
  EXPECT_NE(error({2, 3}).find("expected 3 class weights, one for each class, found 2"), std::string::npos);
  options.loss = Loss::BinaryCrossEntropy;
  options.positive_weights = {1, 2};
  EXPECT_NE(error({2, 3}).find("expected one positive weight"), std::string::npos);
  options.loss = Loss::Ctc;
  EXPECT_NE(error({2, 3}).find("ctc needs logits [T,N,C]"), std::string::npos);
}

}  // namespace
}  // namespace librt::test
