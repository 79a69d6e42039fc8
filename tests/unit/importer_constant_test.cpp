// Inputs given as constants: how scalars and tensors are validated, what becomes known, the suggestions in
// messages; and operands known only at run time.
#include <gtest/gtest.h>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"
#include "tests/support/importer_model.h"

namespace librt::onnx {
namespace {

using test::ImporterModel;
using test::values_of;

/// y = ReduceSum of x [b,n] over axes, which is an input of the given shape.
ImporterModel summed(const std::vector<std::string>& dims, int type = ImporterModel::kInt64) {
  ImporterModel model(17);
  model.input("x", {"b", "n"});
  model.input("axes", dims, type);
  model.node("ReduceSum", {"x", "axes"}, {"y"}, {{"keepdims", 0}});
  model.output("y");
  return model;
}

ImportOptions given(const std::string& name, const std::string& numbers) {
  ImportOptions options;
  options.constants[name].numbers = numbers;
  return options;
}

std::string error_of(ImporterModel model, const ImportOptions& options) {
  const auto result = model.convert(options);
  return result.ok() ? "" : result.status().message() + model.reasons();
}

#define EXPECT_SAYS(error, part)                           \
  do {                                                     \
    const std::string said = error;                        \
    EXPECT_NE(said.find(part), std::string::npos) << said; \
  } while (false)

TEST(ImporterConstant, AnAxisBecomesKnown) {
  ImporterModel model = summed({"1"});
  const auto graph = model.convert(given("axes", "-1"));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Graph& infer = graph->entries[0].graph;
  ASSERT_EQ(infer.inputs.size(), 1u);
  const float x[] = {1, 2, 3, 40, 50, 60};
  const ConstTensorView inputs[] = {{x, {DType::F32, {2, 3}}}};
  const auto outputs = ops::evaluate_graph(infer, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ(values_of((*outputs)[0]), (std::vector<float>{6, 150}));
}

TEST(ImporterConstant, TheMessageProposesIt) {
  EXPECT_SAYS(error_of(summed({"1"}), {}), "give --constant axes=VALUE");
  // Also where the operand is computed from the input.
  ImporterModel model(17);
  model.input("x", {"b", "n"});
  model.input("mode", {"1"}, ImporterModel::kInt64);
  model.integers("one", {1}, {1});
  model.node("Sub", {"mode", "one"}, {"axes"});
  model.node("ReduceSum", {"x", "axes"}, {"y"});
  model.output("y");
  EXPECT_SAYS(error_of(model, {}), "give --constant mode=VALUE");
}

TEST(ImporterConstant, ListsFillTheDeclaredShape) {
  // Two values bind the symbol of the axes, and of every other input that has it.
  ImporterModel model = summed({"k"});
  model.input("z", {"k"});
  model.node("Neg", {"z"}, {"w"});
  model.output("w");
  const auto graph = model.convert(given("axes", "0, 1"));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Graph& infer = graph->entries[0].graph;
  EXPECT_EQ(infer[infer.inputs[1]].dims[0].extent, 2);
  EXPECT_EQ(infer[infer.outputs[0]].rank(), 0);

  ImportOptions both = given("axes", "0,1");
  both.dims["k"] = 3;
  EXPECT_SAYS(error_of(model, both), "3 numbers, found 2");
}

TEST(ImporterConstant, WhatDoesNotFitIsSaid) {
  EXPECT_SAYS(error_of(summed({"1"}), given("axes", "0,1")),
              "input 'axes' (i64[1]): expected 1 number, found 2");
  EXPECT_SAYS(error_of(summed({"1"}), given("axes", "1.5")), "'1.5' is no number that i64 has");
  EXPECT_SAYS(error_of(summed({"1"}), given("axes", "")), "i64[1]");
  EXPECT_SAYS(error_of(summed({"1"}, ImporterModel::kInt32), given("axes", "3000000000")),
              "no number that i32");
  EXPECT_SAYS(error_of(summed({"p", "q"}), given("axes", "1,2")), "more than one dynamic dimension");
  EXPECT_SAYS(error_of(summed({"1"}), given("axis", "1")), "no input named 'axis'");
  ImportOptions options;
  const float number = 1;
  options.constants["axes"] = {.info = {.dtype = DType::F32, .shape = {1}},
                               .data = Blob::copy_of(&number, sizeof number)};
  EXPECT_SAYS(error_of(summed({"1"}), options), "expected i64[1], the value given is f32[1]");
}

TEST(ImporterConstant, ItReplacesADefault) {
  ImporterModel model = summed({"1"});
  model.integers("axes", {1}, {0});
  const auto graph = model.convert(given("axes", "1"));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const float x[] = {1, 2, 30, 40};
  const ConstTensorView inputs[] = {{x, {DType::F32, {2, 2}}}};
  const auto outputs = ops::evaluate_graph(graph->entries[0].graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ(values_of((*outputs)[0]), (std::vector<float>{3, 70}));
}

// --- operands known only at run time

std::vector<ops::HostTensor> run_with(const ModelGraph& model, std::span<const ConstTensorView> inputs) {
  auto outputs = ops::evaluate_graph(model.entries[0].graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move(*outputs) : std::vector<ops::HostTensor>(1);
}

TEST(ImporterOperand, CumSumAlongAnAxisOfTheRun) {
  ImporterModel model(17);
  model.input("x", {"b", "n"});
  model.input("axis", {}, ImporterModel::kInt64);
  model.node("CumSum", {"x", "axis"}, {"y"});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const float x[] = {1, 2, 3, 40, 50, 60};
  for (const int64_t axis : {0, 1, -1, -2}) {
    const ConstTensorView inputs[] = {{x, {DType::F32, {2, 3}}}, {&axis, {DType::I64, {}}}};
    const std::vector<float> down{1, 2, 3, 41, 52, 63}, along{1, 3, 6, 40, 90, 150};
    EXPECT_EQ(values_of(run_with(*graph, inputs)[0]), axis == 0 || axis == -2 ? down : along);
  }
}

TEST(ImporterOperand, SliceAlongAxesOfTheRun) {
  ImporterModel model(17);
  model.input("x", {"b", "n"});
  for (const char* name : {"starts", "ends", "axes"}) model.input(name, {"1"}, ImporterModel::kInt64);
  model.node("Slice", {"x", "starts", "ends", "axes"}, {"y"});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const float x[] = {1, 2, 3, 4, 5, 6};
  const auto sliced = [&](int64_t start, int64_t end, int64_t axis) {
    const TensorInfo one{.dtype = DType::I64, .shape = {1}};
    const ConstTensorView inputs[] = {{x, {DType::F32, {2, 3}}}, {&start, one}, {&end, one}, {&axis, one}};
    return run_with(*graph, inputs);
  };
  EXPECT_EQ(values_of(sliced(1, 3, 1)[0]), (std::vector<float>{2, 3, 5, 6}));
  EXPECT_EQ(values_of(sliced(-1, INT64_MAX, -2)[0]), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(sliced(2, 1, 1)[0].info.shape, (Shape{2, 0}));
}

TEST(ImporterOperand, PadAlongAxesOfTheRun) {
  ImporterModel model(18);
  model.input("x", {"b", "n"});
  model.input("pads", {"2"}, ImporterModel::kInt64);
  model.input("axes", {"1"}, ImporterModel::kInt64);
  model.node("Pad", {"x", "pads", "", "axes"}, {"y"});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const float x[] = {7, 8};
  const int64_t pads[] = {1, 2}, axis = -1;
  const ConstTensorView inputs[] = {
      {x, {DType::F32, {1, 2}}}, {pads, {DType::I64, {2}}}, {&axis, {DType::I64, {1}}}};
  EXPECT_EQ(values_of(run_with(*graph, inputs)[0]), (std::vector<float>{0, 7, 8, 0, 0}));
}

TEST(ImporterOperand, SqueezeWithoutAxesKeepsOpenExtents) {
  ImporterModel model(17);
  model.input("x", {"b", "1", "n"});
  model.node("Squeeze", {"x"}, {"y"});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const Graph& infer = graph->entries[0].graph;
  EXPECT_EQ(infer[infer.outputs[0]].rank(), 2);
  EXPECT_EQ(model.report.warnings.size(), 1u);
}

}  // namespace
}  // namespace librt::onnx
