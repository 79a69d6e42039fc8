// Gradients through If and Loop, after expansion, against central differences of the original graph, in
// double.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "tests/support/control_nodes.h"
#include "tools/compiler/edit/control.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/train/training_graph.h"

namespace librt {
namespace {

using compiler::Builder;
using Doubles = std::vector<double>;

ValueId matrix(Builder& builder, const char* name, Shape shape, DType dtype) {
  const TensorInfo info{.dtype = dtype, .shape = shape};
  std::vector<std::byte> bytes(info.bytes());
  for (int64_t i = 0; i < shape.elements(); ++i)
    store_element(bytes.data(), dtype, i, 0.6 * std::cos(1 + 1.3 * static_cast<double>(i)));
  const ValueId made = builder.constant(info, Blob::copy_of(bytes.data(), bytes.size()));
  builder.graph()[made].name = name;
  return made;
}

/// h = tanh(h w + x b) four times, where b is a constant of the body; returns the last h and every h before
/// it.
Graph recurrent(DType dtype, int64_t trips, bool may_end = false) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", dtype, {{.extent = 2}, {.extent = 3}});
  const ValueId first = build.input("h", dtype, {{.extent = 2}, {.extent = 3}});
  test::Body body(graph, {first}, {x, matrix(build, "w", {3, 3}, dtype)}, true);
  Builder& inner = body.build;
  const ValueId seen = inner.emit(op::MatMulAttributes{}, {body.in(3), matrix(inner, "b", {3, 3}, dtype)});
  const ValueId next = inner.emit(
      op::TanhAttributes{}, {inner.add(inner.emit(op::MatMulAttributes{}, {body.in(2), body.in(4)}), seen)});
  op::ReduceSumAttributes all;
  all.keep_dims = false;
  inner.output(may_end
                   ? inner.emit(op::GreaterAttributes{}, {inner.emit(all, {next}), inner.scalar(0, dtype)})
                   : body.in(1));
  inner.output(next);
  inner.output(body.in(2));
  for (const ValueId result :
       test::emit_loop(build, build.scalar(static_cast<double>(trips), DType::I64), kNoValue, {first}, body))
    build.output(result);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return graph;
}

/// A constant condition: x x, else tanh(x).
Graph decided(bool condition) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F64, {{.extent = 5}});
  test::Body yes(graph, {}, {x}, false), no(graph, {}, {x}, false);
  yes.build.output(yes.build.mul(yes.in(0), yes.in(0)));
  no.build.output(no.build.emit(op::TanhAttributes{}, {no.in(0)}));
  const ValueId known = build.constant({.dtype = DType::Bool, .shape = {}}, Blob::copy_of(&condition, 1));
  build.output(test::emit_if(build, known, yes, no)[0]);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return graph;
}

std::vector<Doubles> evaluate(const Graph& graph, const std::vector<Doubles>& inputs) {
  std::vector<ConstTensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i)
    views.push_back({inputs[i].data(), graph[graph.inputs[i]].info()});
  const auto outputs = ops::evaluate_graph(graph, views);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  std::vector<Doubles> values;
  if (!outputs.ok()) return values;
  for (const ops::HostTensor& output : *outputs) {
    const auto* data = reinterpret_cast<const double*>(output.bytes.data());
    values.emplace_back(data, data + output.info.elements());
  }
  return values;
}

double weight_of(size_t output, size_t element) {
  return std::sin(1.0 + 0.7 * static_cast<double>(element) + static_cast<double>(output));
}

/// The weighted sum of all outputs.
double loss_of(const Graph& graph, const std::vector<Doubles>& inputs) {
  double sum = 0;
  const std::vector<Doubles> outputs = evaluate(graph, inputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t k = 0; k < outputs[i].size(); ++k) sum += weight_of(i, k) * outputs[i][k];
  return sum;
}

void compare_with_differences(Graph graph) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) graph[graph.outputs[i]].name = text("y", i);
  graph.name = "infer";
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = graph});
  const Status status = compiler::add_gradient_entry(model);
  ASSERT_TRUE(status.ok()) << status.message();
  const Graph& gradients = model.entries[1].graph;
  std::vector<Doubles> inputs;
  for (const ValueId id : graph.inputs) {
    Doubles& values = inputs.emplace_back(static_cast<size_t>(graph[id].info().elements()));
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = 0.5 * std::sin(2 + 1.7 * static_cast<double>(k + inputs.size()));
  }
  std::vector<Doubles> operands = inputs;
  const std::vector<Doubles> outputs = evaluate(graph, inputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t k = 0; k < outputs[i].size(); ++k) {
      if (k == 0) operands.emplace_back();
      operands.back().push_back(weight_of(i, k));
    }
  ASSERT_EQ(operands.size(), gradients.inputs.size());
  const std::vector<Doubles> computed = evaluate(gradients, operands);
  ASSERT_EQ(computed.size(), outputs.size() + inputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(computed[i], outputs[i]) << "output " << i;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t k = 0; k < inputs[i].size(); ++k) {
      constexpr double kStep = 1e-5;
      std::vector<Doubles> moved = inputs;
      moved[i][k] += kStep;
      const double above = loss_of(graph, moved);
      moved[i][k] -= 2 * kStep;
      EXPECT_NEAR(computed[outputs.size() + i][k], (above - loss_of(graph, moved)) / (2 * kStep), 1e-8)
          << "input " << i << " element " << k;
    }
}

TEST(ControlGradient, OfALoopThatIsWrittenOut) {
  compare_with_differences(recurrent(DType::F64, 4));
  compare_with_differences(recurrent(DType::F64, 1));
}

TEST(ControlGradient, OfTheBranchThatIsAlwaysTaken) {
  compare_with_differences(decided(true));
  compare_with_differences(decided(false));
}

/// while (i < limit) { h = tanh(h w); i = i + step; } without a trip count, as exporters write a while loop.
Graph while_below(int64_t limit, int64_t step) {
  constexpr DType kType = DType::F64;
  Graph graph;
  Builder build(graph);
  const ValueId first = build.input("h", kType, {{.extent = 2}, {.extent = 3}});
  const ValueId start = build.scalar(0, DType::I64);
  test::Body body(graph, {first, start},
                  {matrix(build, "w", {3, 3}, kType), build.scalar(static_cast<double>(step), DType::I64)},
                  true);
  Builder& inner = body.build;
  const ValueId counter = inner.add(body.in(3), body.in(5));
  inner.output(
      inner.emit(op::LessAttributes{}, {counter, inner.scalar(static_cast<double>(limit), DType::I64)}));
  inner.output(
      inner.emit(op::TanhAttributes{}, {inner.emit(op::MatMulAttributes{}, {body.in(2), body.in(4)})}));
  inner.output(counter);
  build.output(test::emit_loop(build, kNoValue, kNoValue, {first, start}, body)[0]);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return graph;
}

TEST(ControlGradient, OfALoopThatACounterEnds) {
  compare_with_differences(while_below(4, 1));
  compare_with_differences(while_below(5, 2));
  compare_with_differences(while_below(-1, 1));
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = while_below(1'000'000, 1)});
  const Status endless = compiler::add_gradient_entry(model);
  EXPECT_EQ(endless.code(), Code::Unsupported);
  EXPECT_NE(endless.message().find("no more than 10,000 nodes"), std::string::npos) << endless.message();
}

/// A Loop whose first result is an integer: it carries a count, gathers x x and ends by data.
Graph counted() {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 2}});
  const ValueId first = build.scalar(1, DType::I64);
  test::Body body(graph, {first}, {x}, true);
  Builder& inner = body.build;
  const ValueId square = inner.mul(body.in(3), body.in(3));
  op::ReduceSumAttributes all;
  all.keep_dims = false;
  inner.output(inner.emit(op::LessAttributes{}, {inner.emit(all, {square}), inner.scalar(9, DType::F32)}));
  inner.output(inner.add(body.in(2), inner.scalar(1, DType::I64)));
  inner.output(square);
  const std::vector<ValueId> results =
      test::emit_loop(build, build.scalar(3, DType::I64), kNoValue, {first}, body);
  build.output(results[1]);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return graph;
}

TEST(ControlGradient, IsRefusedWhereTheNumberOfIterationsDependsOnData) {
  for (const auto& [graph, what] : {std::pair{recurrent(DType::F32, 4, true), "does not depend on data"},
                                    {counted(), "does not depend on data"},
                                    {recurrent(DType::F32, 1'000'000), "no more than 10,000 nodes"}}) {
    ModelGraph model;
    model.entries.push_back({.name = "infer", .graph = graph});
    const Status status = compiler::add_gradient_entry(model);
    EXPECT_EQ(status.code(), Code::Unsupported);
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
  }
}

/// A Loop's captured constants and its body's own constants become weights, each of them once.
TEST(ControlGradient, TheWeightsOfALoopAreTrained) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = recurrent(DType::F32, 4)});
  compiler::TrainReport report;
  const Status status =
      compiler::add_train_entry(model, {.loss = {.loss = compiler::Loss::MeanSquaredError}}, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(report.trained, (std::vector<std::string>{"w", "b"}));
  EXPECT_EQ(report.trained_elements, 18);
  for (const auto& entry : model.entries)
    for (const Node& node : entry.graph.nodes) EXPECT_FALSE(ops::is_control(node.kind())) << entry.name;
}

}  // namespace
}  // namespace librt
