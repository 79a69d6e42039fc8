// Every gradient rule against central differences, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "runtime/core/element.h"
#include "tests/cases/case.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/autodiff.h"

namespace librt {
namespace {

// loss = sum(first output * fixed factors), in f64 so that differences are exact enough.
struct LossGraph {
  Graph graph;
  std::vector<ValueId> inputs;          // indexed by case input; kNoValue if absent
  std::vector<ops::HostTensor> values;  // indexed by graph input
  std::vector<size_t> of_input;         // case input -> graph input
  ValueId loss = kNoValue;
};

ops::HostTensor widened(const ops::HostTensor& value) {
  if (value.info.dtype != DType::F32) return value;
  ops::HostTensor wide({.dtype = DType::F64, .shape = value.info.shape});
  for (int64_t k = 0; k < value.info.elements(); ++k)
    store_element(wide.bytes.data(), DType::F64, k, load_element(value.bytes.data(), DType::F32, k));
  return wide;
}

void add_inputs(const test::Case& c, compiler::Builder& builder, LossGraph& out) {
  const auto values = test::case_values(c);
  for (size_t i = 0; i < values.size(); ++i) {
    out.of_input.push_back(out.values.size());
    if (!values[i]) {
      out.inputs.push_back(kNoValue);
      continue;
    }
    ops::HostTensor value = widened(*values[i]);
    if (c.inputs[i]->constant && !is_float(value.info.dtype)) {
      out.inputs.push_back(
          builder.constant(value.info, Blob::copy_of(value.bytes.data(), value.bytes.size())));
      continue;
    }
    std::vector<Dim> dims;
    for (int64_t extent : value.info.shape) dims.push_back({.extent = extent});
    out.inputs.push_back(builder.input(text("x", i), value.info.dtype, dims));
    out.values.push_back(std::move(value));
  }
}

// False if the result is an integer and has no gradient.
bool add_loss(const test::Case& c, compiler::Builder& builder, LossGraph& out) {
  Node node;
  node.op = c.op;
  node.name = c.name;
  node.inputs = out.inputs;
  const ops::CompilerPage* page = ops::compiler_page_of(c.op.type);
  const std::vector<ValueId> outputs = page->gradient == nullptr
                                           ? page->body(builder, node, node.inputs)
                                           : builder.emit_many(c.op, out.inputs, c.outputs);
  if (!builder.status().ok()) return true;
  const TensorInfo info = builder.value(outputs[0]).info();
  if (!is_float(info.dtype)) return false;
  ops::HostTensor factors({.dtype = DType::F64, .shape = info.shape});
  for (int64_t i = 0; i < info.elements(); ++i)
    store_element(factors.bytes.data(), DType::F64, i, std::sin(1.0 + 0.7 * static_cast<double>(i)));
  const ValueId w = builder.constant(factors.info, Blob::copy_of(factors.bytes.data(), factors.bytes.size()));
  out.loss = builder.reduce_sum(builder.mul(outputs[0], w), {}, false);
  return true;
}

std::vector<ops::HostTensor> evaluate(const Graph& graph, const std::vector<ops::HostTensor>& values) {
  std::vector<ConstTensorView> views;
  for (const ops::HostTensor& value : values) views.push_back(value.view());
  auto outputs = ops::evaluate_graph(graph, views);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move(outputs).value() : std::vector<ops::HostTensor>();
}

void compare_with_differences(const test::Case& c, LossGraph& test, size_t which, ops::HostTensor* gradient) {
  Graph graph = test.graph;
  graph.outputs = {test.loss};
  ops::HostTensor& input = test.values[which];
  auto loss = [&](int64_t k, double value) {
    store_element(input.bytes.data(), DType::F64, k, value);
    const auto outputs = evaluate(graph, test.values);
    return outputs.empty() ? NAN : load_element(outputs[0].bytes.data(), DType::F64, 0);
  };
  const int64_t count = input.info.elements();
  const int64_t stride = std::max<int64_t>(1, count / 16);  // a sufficient sample of positions
  for (int64_t k = 0; k < count; k += stride) {
    constexpr double kStep = 1e-5;
    const double value = load_element(input.bytes.data(), DType::F64, k);
    const double numeric = (loss(k, value + kStep) - loss(k, value - kStep)) / (2 * kStep);
    store_element(input.bytes.data(), DType::F64, k, value);
    const double analytic = gradient == nullptr ? 0 : load_element(gradient->bytes.data(), DType::F64, k);
    EXPECT_NEAR(analytic, numeric, 1e-5 + 1e-5 * std::fabs(numeric))
        << c.name << " input " << which << " element " << k;
  }
}

// The cases whose operator has a gradient and whose values are not at a kink.
std::vector<const test::Case*> differentiable_cases() {
  std::vector<const test::Case*> cases;
  for (const test::Case& c : test::all_cases()) {
    const ops::CompilerPage* page = ops::compiler_page_of(c.op.type);
    const bool float_input = std::any_of(c.inputs.begin(), c.inputs.end(), [](const auto& input) {
      return input && is_float(input->info.dtype) && !input->constant;
    });
    if (c.gradient && float_input && (page->gradient != nullptr || page->body != nullptr))
      cases.push_back(&c);
  }
  return cases;
}

class Gradient : public testing::TestWithParam<const test::Case*> {};

TEST_P(Gradient, AgreesWithFiniteDifferences) {
  const test::Case& c = *GetParam();
  LossGraph test;
  compiler::Builder builder(test.graph);
  add_inputs(c, builder, test);
  if (!add_loss(c, builder, test)) GTEST_SKIP() << "integer output";
  ASSERT_TRUE(builder.status().ok()) << builder.status().message();

  std::vector<ValueId> wanted;
  std::vector<size_t> graph_inputs;
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    if (test.inputs[i] == kNoValue) continue;
    const Value& value = builder.value(test.inputs[i]);
    if (value.role != Role::Input || !is_float(value.dtype)) continue;
    // Running statistics do not affect the normalized value.
    if (c.op.type == OpKind::BatchNormTrain && i >= 3) continue;
    // Regions are treated as constants.
    if (c.op.type == OpKind::RoiAlign && i == 1) continue;
    wanted.push_back(test.inputs[i]);
    graph_inputs.push_back(test.of_input[i]);
  }
  if (wanted.empty()) GTEST_SKIP() << "no float input";
  const auto gradients = compiler::differentiate(builder, test.loss, wanted);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();

  const Status expanded = compiler::expand_composites(test.graph, {});
  ASSERT_TRUE(expanded.ok()) << expanded.message();
  Graph graph = test.graph;
  for (ValueId gradient : *gradients)
    if (gradient != kNoValue) graph.outputs.push_back(gradient);
  std::vector<ops::HostTensor> computed = evaluate(graph, test.values);
  ASSERT_EQ(computed.size(), graph.outputs.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    ops::HostTensor* gradient = (*gradients)[i] == kNoValue ? nullptr : &computed[next++];
    if (gradient != nullptr) {
      ASSERT_EQ(gradient->info, test.values[graph_inputs[i]].info) << c.name << " input " << i;
    }
    compare_with_differences(c, test, graph_inputs[i], gradient);
  }
}

/// The gradient of sum(f(x)) at x.
std::vector<double> gradient_at(const std::vector<double>& x, Shape shape,
                                const std::function<ValueId(compiler::Builder&, ValueId)>& f) {
  Graph graph;
  compiler::Builder builder(graph);
  std::vector<Dim> dims;
  for (int64_t extent : shape) dims.push_back({.extent = extent});
  const ValueId input = builder.input("x", DType::F64, dims);
  const ValueId loss = builder.emit(op::ReduceSumAttributes{.keep_dims = false}, {f(builder, input)});
  const auto gradients = compiler::differentiate(builder, loss, std::array{input});
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  if (!gradients.ok()) return {};
  builder.output((*gradients)[0]);
  ops::HostTensor point({.dtype = DType::F64, .shape = shape});
  for (size_t i = 0; i < x.size(); ++i)
    store_element(point.bytes.data(), DType::F64, static_cast<int64_t>(i), x[i]);
  const std::vector<ops::HostTensor> result = evaluate(graph, {point});
  std::vector<double> values(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    values[i] = load_element(result[0].bytes.data(), DType::F64, static_cast<int64_t>(i));
  return values;
}

/// As in PyTorch's norm, std and cdist: the subgradient 0, where the root's derivative is infinite.
TEST(Differentiate, RootsHaveNoGradientAtTheirMinimum) {
  using Values = std::vector<double>;
  const auto root = [](compiler::Builder& b, ValueId x) { return b.emit(op::SqrtAttributes{}, {x}); };
  const auto norm = [&](compiler::Builder& b, ValueId x) { return root(b, b.reduce_sum(b.mul(x, x), {1})); };
  EXPECT_EQ(gradient_at({0, 0, 3, -0.0}, {2, 2}, norm), (Values{0, 0, 1, 0}));
  const auto clamped = [&](compiler::Builder& b, ValueId x) {  // as normalize() divides by it
    return b.div(x, b.emit(op::MaximumAttributes{}, {norm(b, x), b.scalar(0.5, DType::F64)}));
  };
  EXPECT_EQ(gradient_at({0, 0}, {1, 2}, clamped), (Values{2, 2}));
  const auto deviation = [&](compiler::Builder& b, ValueId x) {
    const ValueId centered = b.sub(x, b.reduce_mean(x, {1}));
    const ValueId squares = b.emit(op::PowAttributes{}, {centered, b.scalar(2, DType::F64)});
    return root(b,
                b.div(b.mul(b.reduce_mean(squares, {1}), b.scalar(2, DType::F64)), b.scalar(1, DType::F64)));
  };
  EXPECT_EQ(gradient_at({5, 5}, {1, 2}, deviation), (Values{0, 0}));
  const auto magnitude = [&](compiler::Builder& b, ValueId x) {
    return root(b, b.add(b.mul(x, x), b.mul(x, x)));
  };
  EXPECT_EQ(gradient_at({0}, {1}, magnitude), Values{0});
  // It may be less than 0.
  EXPECT_EQ(gradient_at({0}, {1}, root), Values{std::numeric_limits<double>::infinity()});
  const auto bounded = [&](compiler::Builder& b, ValueId x) {  // cdist by matmuls
    return root(b, b.emit(op::MaximumAttributes{}, {x, b.scalar(0, DType::F64)}));
  };
  EXPECT_EQ(gradient_at({-1, 0, 4}, {3}, bounded), (Values{0, 0, 0.25}));
  const auto difference = [&](compiler::Builder& b, ValueId x) {  // x x - x x / 2
    const ValueId square = b.mul(x, x);
    return root(b, b.add(square, b.mul(square, b.scalar(-0.5, DType::F64))));
  };
  EXPECT_TRUE(std::isnan(gradient_at({0}, {1}, difference)[0]));
  const auto twice = [&](compiler::Builder& b, ValueId x) { return root(b, b.add(x, x)); };
  EXPECT_EQ(gradient_at({0}, {1}, twice), Values{std::numeric_limits<double>::infinity()});
}

/// The gradient of sum(x * detached(x * x)) is x * x.
TEST(Differentiate, StopsAtDetachedValues) {
  Graph graph;
  compiler::Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 3}});
  const ValueId square = build.emit(op::IdentityAttributes{}, {build.mul(x, x)});
  graph[square].name = "square";
  const ValueId loss =
      build.emit(op::ReduceSumAttributes{.axes = {0}, .keep_dims = false}, {build.mul(x, square)});
  const auto gradients = compiler::differentiate(build, loss, std::array{x}, {"square"});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  build.output((*gradients)[0]);
  ops::HostTensor values({.dtype = DType::F32, .shape = {3}});
  for (int64_t i = 0; i < 3; ++i)
    store_element(values.bytes.data(), DType::F32, i, 2 + static_cast<double>(i));
  const std::vector<ops::HostTensor> got = evaluate(graph, {values});
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(load_element(got[0].bytes.data(), DType::F32, i), static_cast<double>((2 + i) * (2 + i)));
}

/// Positions follow the scales, not the extents that they lead to: 7 pixels by 0.5 are 3.
TEST(Differentiate, ResizeNeedsConstantScales) {
  for (const bool constant : {true, false}) {
    Graph graph;
    compiler::Builder build(graph);
    const ValueId x = build.input("x", DType::F32, {{.extent = 1}, {.extent = 7}, {.extent = 1}});
    const float half = 0.5f;
    ValueId scales = build.constant({.dtype = DType::F32, .shape = {1}}, Blob::copy_of(&half, sizeof half));
    if (!constant) scales = build.emit(op::IdentityAttributes{}, {scales});
    op::ResizeAttributes linear;
    linear.mode = op::ResizeMode::Linear;
    linear.coordinates = op::ResizeCoordinates::Asymmetric;
    const ValueId y = build.emit_many(make_op(linear), std::array{x, kNoValue, scales}, 1)[0];
    const auto gradients = compiler::differentiate(build, build.reduce_sum(y, {}, false), std::array{x});
    ASSERT_EQ(gradients.ok(), constant);
    if (!constant) {
      EXPECT_EQ(gradients.status().code(), Code::Unsupported);
      EXPECT_NE(gradients.status().message().find("scales"), std::string::npos);
      continue;
    }
    build.output((*gradients)[0]);
    const std::vector<ops::HostTensor> got =
        evaluate(graph, {ops::HostTensor({.dtype = DType::F32, .shape = {1, 7, 1}})});
    for (int64_t i = 0; i < 7; ++i)
      EXPECT_EQ(load_element(got[0].bytes.data(), DType::F32, i), i % 2 == 0 && i < 6 ? 1 : 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Gradient, testing::ValuesIn(differentiable_cases()),
                         [](const testing::TestParamInfo<const test::Case*>& param) {
                           return param.param->name;
                         });

}  // namespace
}  // namespace librt
