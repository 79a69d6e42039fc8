// Subgraphs of ONNX nodes: what bodies can access of outer graphs, and what is rejected.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/quantize/half.h"
#include "tools/compiler/quantize/quantize_weights.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

enum ElementType { kFloat = 1, kInt64 = 7, kBool = 9 };

void value(rt_onnx::ValueInfoProto& info, const std::string& name, int type,
           const std::vector<int64_t>& dims) {
  info.set_name(name);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const int64_t extent : dims) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (extent < 0)
      dim->set_dim_param("n");
    else
      dim->set_dim_value(extent);
  }
}

rt_onnx::NodeProto& node(rt_onnx::GraphProto& graph, const std::string& op,
                         const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  auto* made = graph.add_node();
  made->set_op_type(op);
  for (const auto& name : inputs) made->add_input(name);
  for (const auto& name : outputs) made->add_output(name);
  return *made;
}

rt_onnx::GraphProto& body_of(rt_onnx::NodeProto& made, const std::string& attribute) {
  auto* added = made.add_attribute();
  added->set_name(attribute);
  added->set_type(5);
  return *added->mutable_g();
}

void output(rt_onnx::GraphProto& graph, const std::string& name) {
  graph.add_output()->set_name(name);
}

void integer(rt_onnx::NodeProto& made, const std::string& name, int64_t number) {
  auto* attribute = made.add_attribute();
  attribute->set_name(name);
  attribute->set_type(2);
  attribute->set_i(number);
}

void constant_ints(rt_onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& numbers) {
  auto* attribute = node(graph, "Constant", {}, {name}).add_attribute();
  attribute->set_name("value_ints");
  attribute->set_type(7);
  for (const int64_t number : numbers) attribute->add_ints(number);
}

rt_onnx::ModelProto empty_model() {
  rt_onnx::ModelProto model;
  model.set_ir_version(8);
  auto* opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(16);
  return model;
}

/// for i < trips: s = s + (flag ? -twice : x), where twice = x + x is computed outside; scanned: s.
/// change_rank: the body's result s changes rank.
rt_onnx::ModelProto nested(bool change_rank = false) {
  rt_onnx::ModelProto model = empty_model();
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  value(*graph.add_input(), "x", kFloat, {-1});
  value(*graph.add_input(), "trips", kInt64, {});
  value(*graph.add_input(), "flag", kBool, {});
  node(graph, "Add", {"x", "x"}, {"twice"});
  auto& loop = node(graph, "Loop", {"trips", "", "x"}, {"sum", "sums"});
  rt_onnx::GraphProto& body = body_of(loop, "body");
  value(*body.add_input(), "i", kInt64, {});
  value(*body.add_input(), "go", kBool, {});
  value(*body.add_input(), "s", kFloat, {-1});
  auto& branch = node(body, "If", {"flag"}, {"step"});
  rt_onnx::GraphProto& yes = body_of(branch, "then_branch");
  node(yes, "Neg", {"twice"}, {"minus"});
  output(yes, "minus");
  rt_onnx::GraphProto& no = body_of(branch, "else_branch");
  node(no, "Identity", {"x"}, {"same"});
  output(no, "same");
  node(body, "Add", {"s", "step"}, {change_rank ? "added" : "next"});
  if (change_rank) {
    node(body, "Shape", {"go"}, {"nothing"});
    constant_ints(body, "axes", {0});
    node(body, "Unsqueeze", {"added", "axes"}, {"next"});
  }
  for (const char* name : {"go", "next", "next"}) output(body, name);
  output(graph, "sum");
  output(graph, "sums");
  return model;
}

Result<ModelGraph> convert(const rt_onnx::ModelProto& model, ImportReport& report) {
  const std::string bytes = model.SerializeAsString();
  return import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
}

TEST(ImporterControl, BranchesInLoopsSeeTheOuterGraph) {
  ImportReport report;
  const auto model = convert(nested(), report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Graph& graph = model->entries[0].graph;
  EXPECT_EQ(graph[graph.outputs[0]].dims, graph[graph.inputs[0]].dims);
  const float x[] = {1, 2};
  for (const bool flag : {false, true})
    for (const int64_t trips : {0, 1, 3}) {
      const ConstTensorView inputs[] = {
          {x, {DType::F32, {2}}}, {&trips, {DType::I64, {}}}, {&flag, {DType::Bool, {}}}};
      const auto outputs = ops::evaluate_graph(graph, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      const float step = flag ? -2.0f : 1.0f;
      const auto* sum = reinterpret_cast<const float*>((*outputs)[0].bytes.data());
      EXPECT_EQ(sum[1], 2 * (1 + static_cast<float>(trips) * step));
      EXPECT_EQ((*outputs)[1].info.shape[0], trips);
    }
}

/// y = the sum of x as [2,width] if flag, else of x as [4,width].
rt_onnx::ModelProto two_widths(int64_t extent, int64_t width) {
  rt_onnx::ModelProto model = empty_model();
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  value(*graph.add_input(), "x", kFloat, {extent});
  value(*graph.add_input(), "flag", kBool, {});
  auto& branch = node(graph, "If", {"flag"}, {"y"});
  for (const bool taken : {true, false}) {
    rt_onnx::GraphProto& body = body_of(branch, taken ? "then_branch" : "else_branch");
    constant_ints(body, "shape", {taken ? 2 : 4, width});
    node(body, "Reshape", {"x", "shape"}, {"rows"});
    node(body, "ReduceSum", {"rows"}, {"sum"});
    output(body, "sum");
  }
  output(graph, "y");
  return model;
}

TEST(ImporterControl, ABranchThatDoesNotFitTheShapesDoesNotBlockTheOther) {
  for (const int64_t extent : {6, 12}) {  // [2,3] and [4,3]
    ImportReport report;
    const auto model = convert(two_widths(extent, 3), report);
    ASSERT_TRUE(model.ok()) << model.status().message();
    ASSERT_EQ(report.warnings.size(), 1U);
    const std::vector<float> x(12, 1);
    for (const bool flag : {true, false}) {
      const ConstTensorView inputs[] = {{x.data(), {DType::F32, {extent}}}, {&flag, {DType::Bool, {}}}};
      const auto outputs = ops::evaluate_graph(model->entries[0].graph, inputs);
      const std::string found = outputs.ok() ? "" : outputs.status().message();
      if (flag == (extent == 6)) {
        ASSERT_TRUE(outputs.ok()) << found;
        EXPECT_EQ(*reinterpret_cast<const float*>((*outputs)[0].bytes.data()), static_cast<float>(extent));
      } else {
        EXPECT_NE(found.find(flag ? "its then branch" : "its else branch"), std::string::npos) << found;
      }
    }
  }
  ImportReport report;
  EXPECT_FALSE(convert(two_widths(10, 3), report).ok());
  EXPECT_EQ(report.unsupported.size(), 2U) << "neither fits";
}

/// y = the sum over rows of (x of [n,m] if m is not 1, else x without that axis), as PyTorch exports
/// x.squeeze(1): of what is passed on, of rank 2, the sum would have one element for each column.
/// one_of: the name that the branch which does not squeeze passes on.
rt_onnx::ModelProto squeezed(const std::string& one_of, bool then_squeezes) {
  rt_onnx::ModelProto model = empty_model();
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  value(*graph.add_input(), "x", kFloat, {-1, -1});
  graph.mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_param("m");
  value(*graph.add_input(), "other", kFloat, {-1, -1});
  node(graph, "Shape", {"x"}, {"shape"});
  constant_ints(graph, "one", {1});
  node(graph, "Gather", {"shape", "one"}, {"extent"});
  node(graph, "Equal", {"extent", "one"}, {"narrow"});
  if (!then_squeezes) node(graph, "Not", {"narrow"}, {"wide"});
  auto& branch = node(graph, "If", {then_squeezes ? "narrow" : "wide"}, {"y"});
  for (const bool then : {true, false}) {
    rt_onnx::GraphProto& body = body_of(branch, then ? "then_branch" : "else_branch");
    if (then == then_squeezes) {
      constant_ints(body, "axis", {1});
      node(body, "Squeeze", {"x", "axis"}, {"rank1"});
      output(body, "rank1");
    } else {
      node(body, "Identity", {one_of}, {"rank2"});
      output(body, "rank2");
    }
  }
  node(graph, "Neg", {"y"}, {"z"});
  output(graph, "z");
  return model;
}

TEST(ImporterControl, TheBranchThatRemovesAnAxisGivesTheRank) {
  for (const bool then_squeezes : {true, false}) {
    ImportReport report;
    const auto model = convert(squeezed("x", then_squeezes), report);
    ASSERT_TRUE(model.ok()) << model.status().message();
    ASSERT_FALSE(report.warnings.empty());
    EXPECT_NE(report.warnings[0].find("a run in which that extent is not 1"), std::string::npos)
        << report.warnings[0];
    const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    const auto both = [&](int64_t rows, int64_t columns) {  // n is an extent of the other input as well
      return std::vector<ConstTensorView>{{x.data(), {DType::F32, {rows, columns}}},
                                          {x.data(), {DType::F32, {rows, rows}}}};
    };
    const auto narrow = both(4, 1), wide = both(2, 2);
    const auto outputs = ops::evaluate_graph(model->entries[0].graph, narrow);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].info.shape, Shape({4}));
    EXPECT_EQ(reinterpret_cast<const float*>((*outputs)[0].bytes.data())[2], -3);
    const auto refused = ops::evaluate_graph(model->entries[0].graph, wide);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find("'x' has another extent than 1"), std::string::npos)
        << refused.status().message();
  }
  ImportReport report;
  ASSERT_TRUE(convert(squeezed("other", true), report).ok()) << "not the same value";
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_NE(report.warnings[0].find("extents lead to the else branch"), std::string::npos)
      << report.warnings[0];
}

/// A decoder with and without a past as Optimum merges them: y = flag ? keys = [past, x], sum : keys = x,
/// sum. All of the If's results have the names that they have in its branches.
rt_onnx::ModelProto merged() {
  rt_onnx::ModelProto model = empty_model();
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  value(*graph.add_input(), "flag", kBool, {});
  for (const char* name : {"x", "past"}) value(*graph.add_input(), name, kFloat, {1, -1});
  auto& choice = node(graph, "If", {"flag"}, {"y", "keys"});
  for (const bool with_past : {true, false}) {
    rt_onnx::GraphProto& branch = body_of(choice, with_past ? "then_branch" : "else_branch");
    auto& join =
        node(branch, with_past ? "Concat" : "Identity",
             with_past ? std::vector<std::string>{"past", "x"} : std::vector<std::string>{"x"}, {"keys"});
    if (with_past) integer(join, "axis", 1);
    node(branch, "ReduceSum", {"keys"}, {"y"});
    output(branch, "y");
    output(branch, "keys");
  }
  output(graph, "y");
  output(graph, "keys");
  return model;
}

// A past that one branch alone reads has its own length, though the model calls it as another one.
TEST(ImporterControl, AnIfMayGiveItsResultsTheNamesOfItsBranches) {
  ImportReport report;
  const auto model = convert(merged(), report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Graph& graph = model->entries[0].graph;
  const Value& past = graph[graph.inputs[2]];
  EXPECT_NE(past.dims[1], graph[graph.inputs[1]].dims[1]);
  EXPECT_EQ(graph.symbols[static_cast<size_t>(past.dims[1].symbol)].name, "n of the then branch");
  const float x[] = {1, 2}, earlier[] = {3, 4, 5};
  for (const bool flag : {false, true}) {
    const ConstTensorView inputs[] = {
        {&flag, {DType::Bool, {}}}, {x, {DType::F32, {1, 2}}}, {earlier, {DType::F32, {1, flag ? 3 : 0}}}};
    const auto outputs = ops::evaluate_graph(graph, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ(load_element((*outputs)[0].bytes.data(), DType::F32, 0), flag ? 15 : 3);
    EXPECT_EQ((*outputs)[1].info.shape, (Shape{1, flag ? 5 : 2}));
  }
}

// Rounding to 16 bits that is made explicit reaches the branches.
TEST(ImporterControl, BranchesAreRounded) {
  ImportReport report;
  const auto model = convert(merged(), report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Graph& graph = model->entries[0].graph;
  const auto all = [](DType dtype) {
    return [dtype](const Graph& part) { return std::vector<DType>(part.nodes.size(), dtype); };
  };
  const float x[] = {1.001f, 2};  // 1 in bf16
  const bool flag = false;
  const ConstTensorView inputs[] = {
      {&flag, {DType::Bool, {}}}, {x, {DType::F32, {1, 2}}}, {nullptr, {DType::F32, {1, 0}}}};
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const auto rounded = compiler::rounded(graph, {}, all(DType::F32)(graph), all(dtype));
    ASSERT_TRUE(rounded.ok()) << rounded.status().message();
    const auto outputs = ops::evaluate_graph(*rounded, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    const double sum = load_element((*outputs)[0].bytes.data(), DType::F32, 0);
    EXPECT_NEAR(sum, dtype == DType::F32 ? 3.001 : 3, 1e-5);
  }
}

TEST(ImporterControl, WeightsOfBranchesAreQuantized) {
  rt_onnx::ModelProto proto = empty_model();
  rt_onnx::GraphProto& graph = *proto.mutable_graph();
  value(*graph.add_input(), "flag", kBool, {});
  value(*graph.add_input(), "x", kFloat, {-1, 32});
  auto& choice = node(graph, "If", {"flag"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    rt_onnx::GraphProto& body = body_of(choice, branch);
    auto& weight = *body.add_initializer();
    weight.set_name(std::string(branch) + "_w");
    weight.set_data_type(kFloat);
    for (const int64_t extent : {32, 16}) weight.add_dims(extent);
    for (int i = 0; i < 32 * 16; ++i) weight.add_float_data(static_cast<float>(i % 7 - 3));
    node(body, "MatMul", {"x", weight.name()}, {std::string(branch) + "_y"});
    output(body, std::string(branch) + "_y");
  }
  output(graph, "y");
  ImportReport report;
  auto model = convert(proto, report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto none = [](const std::string&) { return false; };
  const auto changed = compiler::quantize_weights(model->entries[0].graph, {}, none, 8, 32);
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_EQ(*changed, 2u);
}

TEST(ImporterControl, AnotherRankIsRefused) {
  ImportReport report;
  EXPECT_FALSE(convert(nested(true), report).ok());
  ASSERT_EQ(report.unsupported.size(), 1u);
  EXPECT_NE(report.unsupported[0].reason.find("rank"), std::string::npos) << report.unsupported[0].reason;
}

/// A while loop as TensorFlow's carries all that it reads: for i < trips: s = s + w, with w and x passed on,
/// w by an Identity.
rt_onnx::ModelProto carries_all() {
  rt_onnx::ModelProto model = empty_model();
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  value(*graph.add_input(), "x", kFloat, {-1});
  value(*graph.add_input(), "trips", kInt64, {});
  rt_onnx::TensorProto& weight = *graph.add_initializer();
  weight.set_name("w");
  weight.set_data_type(kFloat);
  weight.add_dims(1);
  weight.add_float_data(3);
  auto& loop = node(graph, "Loop", {"trips", "", "x", "w", "x"}, {"sum", "weight", "same"});
  rt_onnx::GraphProto& body = body_of(loop, "body");
  value(*body.add_input(), "i", kInt64, {});
  value(*body.add_input(), "go", kBool, {});
  for (const char* name : {"s", "carried_w", "carried_x"}) value(*body.add_input(), name, kFloat, {-1});
  node(body, "Add", {"s", "carried_w"}, {"next"});
  node(body, "Identity", {"carried_w"}, {"passed"});
  node(body, "Identity", {"passed"}, {"passed_again"});
  for (const char* name : {"go", "next", "passed_again", "carried_x"}) output(body, name);
  for (const char* name : {"sum", "weight", "same"}) output(graph, name);
  return model;
}

TEST(ImporterControl, WhatNoIterationChangesIsCaptured) {
  ImportReport report;
  const auto model = convert(carries_all(), report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Graph& graph = model->entries[0].graph;
  for (const Node& each : graph.nodes) {
    if (each.kind() != OpKind::Loop) continue;
    EXPECT_EQ(each.as<op::LoopAttributes>().carried, 1);
    EXPECT_EQ(each.inputs.size(), ops::kLoopHead + 1 + 1) << "s and x; the weight is the body's";
  }
  const float x[] = {1, 2};
  for (const int64_t trips : {0, 4}) {
    const ConstTensorView inputs[] = {{x, {DType::F32, {2}}}, {&trips, {DType::I64, {}}}};
    const auto outputs = ops::evaluate_graph(graph, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    const auto first = [&](size_t i) { return *reinterpret_cast<const float*>((*outputs)[i].bytes.data()); };
    EXPECT_EQ(first(0), 1 + 3 * static_cast<float>(trips));
    EXPECT_EQ(first(1), 3);
    EXPECT_EQ(first(2), 1);
  }
}

/// As PaddlePaddle's: in each of `trips` iterations flag = not flag, with an axis in the else branch alone,
/// and last = [x, x], in place of the scalar before the first iteration.
rt_onnx::ModelProto other_ranks(bool reads_last) {
  rt_onnx::ModelProto model = empty_model();
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  value(*graph.add_input(), "x", kFloat, {-1});
  value(*graph.add_input(), "trips", kInt64, {});
  value(*graph.add_input(), "flag", kBool, {});
  value(*graph.add_input(), "none", kFloat, {});
  auto& loop = node(graph, "Loop", {"trips", "", "flag", "none"}, {"flags", "last"});
  rt_onnx::GraphProto& body = body_of(loop, "body");
  value(*body.add_input(), "i", kInt64, {});
  value(*body.add_input(), "go", kBool, {});
  value(*body.add_input(), "f", kBool, {});
  value(*body.add_input(), "l", kFloat, {});
  auto& choice = node(body, "If", {"f"}, {"next"});
  for (const bool taken : {true, false}) {
    rt_onnx::GraphProto& branch = body_of(choice, taken ? "then_branch" : "else_branch");
    constant_ints(branch, "shape", std::vector<int64_t>(taken ? 0 : 1, 1));
    node(branch, "Not", {"f"}, {"not"});
    node(branch, "Reshape", {"not", "shape"}, {"result"});
    output(branch, "result");
  }
  integer(node(body, "Concat", {"x", "x"}, {"joined"}), "axis", 0);
  if (reads_last) node(body, "Neg", {"l"}, {"minus"});
  for (const char* name : {"go", "next", "joined"}) output(body, name);
  if (reads_last) output(body, "minus");
  if (reads_last) loop.add_output("all");
  for (const char* name : {"flags", "last"}) output(graph, name);
  return model;
}

TEST(ImporterControl, SingleElementsMayChangeTheirRank) {
  ImportReport report;
  const auto model = convert(other_ranks(false), report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto warns = [&](std::string_view part) {
    return std::ranges::count_if(
        report.warnings, [&](const std::string& warning) { return warning.find(part) != std::string::npos; });
  };
  EXPECT_EQ(warns("one element of rank 0 and of rank 1 as output 0: it has rank 0 here"), 1);
  EXPECT_EQ(warns("rank 0 before the first iteration and rank 1 after it: it has rank 1 here"), 1);
  const float x[] = {5, 7}, none = 0;
  const bool flag = true;
  for (const int64_t trips : {0, 1, 2}) {
    const ConstTensorView inputs[] = {{x, {DType::F32, {2}}},
                                      {&trips, {DType::I64, {}}},
                                      {&flag, {DType::Bool, {}}},
                                      {&none, {DType::F32, {}}}};
    const auto outputs = ops::evaluate_graph(model->entries[0].graph, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].info.shape.rank(), 0);
    EXPECT_EQ((*outputs)[0].bytes[0] == std::byte{1}, trips % 2 == 0);
    EXPECT_EQ((*outputs)[1].info.shape, Shape({trips == 0 ? 1 : 4}));
  }
  ImportReport refused;
  EXPECT_FALSE(convert(other_ranks(true), refused).ok()) << "the body reads the scalar";
  ASSERT_EQ(refused.unsupported.size(), 1U);
}

enum class Decides { Extents, Data, Count };
/// y = an If whose branches give rank 1 and 2, on an extent of x, an element, or how many are not 0.
rt_onnx::ModelProto ranks_by(Decides what) {
  rt_onnx::ModelProto model = empty_model();
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  value(*graph.add_input(), "x", kFloat, {-1, 2});
  if (what == Decides::Count) node(graph, "NonZero", {"x"}, {"positions"});
  node(graph, "Shape", {what == Decides::Count ? "positions" : "x"}, {"shape"});
  auto& threshold = node(graph, "Constant", {}, {"threshold"});
  auto* number = threshold.add_attribute();
  number->set_name("value_float");
  number->set_type(1);
  number->set_f(0.5F);
  if (what == Decides::Data) {
    node(graph, "ReduceMax", {"x"}, {"extent"});
  } else {
    integer(node(graph, "Cast", {"shape"}, {"extents"}), "to", kFloat);
    node(graph, "ReduceMin", {"extents"}, {"extent"});
  }
  node(graph, "Squeeze", {"extent"}, {"scalar"});
  node(graph, "Greater", {"scalar", "threshold"}, {"condition"});
  auto& choice = node(graph, "If", {"condition"}, {"y"});
  for (const bool taken : {true, false}) {
    rt_onnx::GraphProto& branch = body_of(choice, taken ? "then_branch" : "else_branch");
    constant_ints(branch, "flat", {-1});
    if (taken) node(branch, "Reshape", {"x", "flat"}, {"result"});
    if (!taken) node(branch, "Neg", {"x"}, {"result"});
    output(branch, "result");
  }
  output(graph, "y");
  return model;
}

// Zero rows lead to the other branch, so that the condition is not proven.
TEST(ImporterControl, TheBranchThatExtentsLeadToGivesTheRank) {
  ImportReport report;
  const auto model = convert(ranks_by(Decides::Extents), report);
  ASSERT_TRUE(model.ok()) << model.status().message()
                          << (report.unsupported.empty() ? "" : report.unsupported[0].reason);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("extents lead to the then branch"), std::string::npos)
      << report.warnings[0];
  const float x[] = {1, 2, 3, 4};
  for (const int64_t rows : {0, 2}) {
    const ConstTensorView inputs[] = {{x, {DType::F32, {rows, 2}}}};
    const auto outputs = ops::evaluate_graph(model->entries[0].graph, inputs);
    ASSERT_EQ(outputs.ok(), rows > 0);
    if (rows == 0)
      EXPECT_NE(outputs.status().message().find("the else branch gives f32 of rank 2"), std::string::npos)
          << outputs.status().message();
    else
      EXPECT_EQ((*outputs)[0].info.shape, Shape({4}));
  }
  for (const Decides what : {Decides::Data, Decides::Count}) {
    ImportReport refused;
    EXPECT_FALSE(convert(ranks_by(what), refused).ok()) << "data decides";
    ASSERT_EQ(refused.unsupported.size(), 1U);
    EXPECT_NE(refused.unsupported[0].reason.find("f32 of rank 1 and f32 of rank 2"), std::string::npos)
        << refused.unsupported[0].reason;
    EXPECT_NE(refused.unsupported[0].help.find("--dim"), std::string::npos) << refused.unsupported[0].help;
  }
}

// As in the export of scikit-learn's KNNImputer.
TEST(ImporterControl, OfOtherRanksTheBranchThatPassesOnIsKept) {
  rt_onnx::ModelProto onnx = ranks_by(Decides::Data);
  auto& choice = *onnx.mutable_graph()->mutable_node(onnx.graph().node_size() - 1);
  choice.mutable_attribute(1)->mutable_g()->mutable_node(1)->set_op_type("Identity");
  choice.mutable_attribute(1)->mutable_g()->mutable_node()->DeleteSubrange(0, 1);
  ImportReport report;
  const auto model = convert(onnx, report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("the else branch, which only passes values on, is kept"),
            std::string::npos)
      << report.warnings[0];
  for (const float largest : {0.25F, 2.0F}) {
    const float x[] = {0, largest};
    const ConstTensorView inputs[] = {{x, {DType::F32, {1, 2}}}};
    const auto outputs = ops::evaluate_graph(model->entries[0].graph, inputs);
    ASSERT_EQ(outputs.ok(), largest < 1);
    if (outputs.ok()) {
      EXPECT_EQ((*outputs)[0].info.shape, Shape({1, 2}));
    }
  }
}

TEST(ImporterControl, BodiesMustFit) {
  rt_onnx::ModelProto model = nested();
  model.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g()->mutable_input()->RemoveLast();
  ImportReport report;
  const auto result = convert(model, report);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("carried values do not fit"), std::string::npos)
      << result.status().message();
}

}  // namespace
}  // namespace librt::onnx
