// Import of sequences and optionals: lists of static and of dynamic length, loops that append, rejected
// cases.
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/ops/evaluate.h"
#include "tests/support/importer_model.h"

namespace librt::onnx {
namespace {

using test::ImporterModel;
using test::values_of;

/// x [n,d]: rows of 1, 2, 3, ...
std::vector<float> counting(int64_t rows, int64_t columns) {
  std::vector<float> x(static_cast<size_t>(rows * columns));
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

/// The first output for x [rows,columns].
ops::HostTensor run(const ModelGraph& model, int64_t rows, int64_t columns) {
  const std::vector<float> x = counting(rows, columns);
  const ConstTensorView inputs[] = {{x.data(), {DType::F32, {rows, columns}}}};
  auto outputs = ops::evaluate_graph(model.entries[0].graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move((*outputs)[0]) : ops::HostTensor();
}

// y = concat of the doubled rows of x, in the order of a stack along the second axis: y[c,r] = 2 x[r,c].
TEST(ImporterSequence, AnOpenNumberOfPartsIsAStack) {
  ImporterModel model(17);
  model.input("x", {"n", "d"});
  model.node("SplitToSequence", {"x"}, {"rows"}, {{"keepdims", 0}});
  auto& body = model.body(model.node("SequenceMap", {"rows"}, {"doubled"}), "body");
  model.input_of(body, "row");
  model.node_of(body, "Add", {"row", "row"}, {"twice"});
  body.add_output()->set_name("twice");
  model.node("ConcatFromSequence", {"doubled"}, {"y"}, {{"axis", 1}, {"new_axis", 1}});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  for (const int64_t rows : {1, 3, 17})
    for (const int64_t columns : {1, 2}) {
      const ops::HostTensor y = run(*graph, rows, columns);
      ASSERT_EQ(y.info.shape, (Shape{columns, rows}));
      const std::vector<float> x = counting(rows, columns), found = values_of(y);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          EXPECT_EQ(found[static_cast<size_t>(c * rows + r)], 2 * x[static_cast<size_t>(r * columns + c)]);
    }
}

/// for i < trips: total += x[i]; list.append(total); y = stack(list). trips: the input's extent, or 3.
ImporterModel running_sums(bool open, bool reads_back = false) {
  ImporterModel model(17);
  model.input("x", {"n", "d"});
  model.integers("first", {}, {0});
  model.integers("three", {}, {3});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "first"}, {"length"});
  model.node("Gather", {"x", "first"}, {"row"});
  model.node("Sub", {"row", "row"}, {"zeros"});
  model.node("SequenceEmpty", {}, {"empty"});
  auto& body = model.body(
      model.node("Loop", {open ? "length" : "three", "", "zeros", "empty"}, {"sum", "sums"}), "body");
  for (const char* name : {"i", "go", "total", "list"}) model.input_of(body, name);
  model.node_of(body, "Gather", {"x", "i"}, {"at"});
  model.node_of(body, "Add", {"total", "at"}, {"next"});
  model.node_of(body, "SequenceInsert", {"list", "next"}, {"longer"});
  if (reads_back) model.node_of(body, "SequenceAt", {"longer", "i"}, {"last"});
  for (const char* name : {"go", reads_back ? "last" : "next", "longer"}) body.add_output()->set_name(name);
  model.node("ConcatFromSequence", {"sums"}, {"y"}, {{"axis", 0}, {"new_axis", 1}});
  model.output("y");
  return model;
}

TEST(ImporterSequence, ALoopThatAppendsScans) {
  ImporterModel model = running_sums(true);
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  for (const int64_t rows : {1, 2, 9}) {
    const ops::HostTensor y = run(*graph, rows, 2);
    ASSERT_EQ(y.info.shape, (Shape{rows, 2}));
    const std::vector<float> x = counting(rows, 2), found = values_of(y);
    float sum = 0;
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) EXPECT_EQ(found[2 * r + 1], sum += x[2 * r + 1]);
  }
}

TEST(ImporterSequence, ALoopOfKnownLengthMayReadItsList) {
  ImporterModel model = running_sums(false, true);
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  EXPECT_EQ(values_of(run(*graph, 3, 1)), (std::vector<float>{1, 3, 6}));
  EXPECT_EQ(values_of(run(*graph, 5, 1)), (std::vector<float>{1, 3, 6}));
}

TEST(ImporterSequence, AnOpenLoopThatReadsItsListIsRefused) {
  ImporterModel model = running_sums(true, true);
  EXPECT_FALSE(model.convert().ok());
  EXPECT_NE(model.reasons().find("how many tensors it holds is not known"), std::string::npos)
      << model.reasons();
}

TEST(ImporterSequence, ListsInsertAndEraseByPosition) {
  ImporterModel model(17);
  model.input("x", {"n", "d"});
  for (const auto& [name, number] : {std::pair{"zero", 0}, std::pair{"minus", -1}})
    model.integers(name, {}, {number});
  model.node("Neg", {"x"}, {"negative"});
  model.node("Add", {"x", "x"}, {"twice"});
  model.node("SequenceConstruct", {"x", "negative"}, {"two"});
  model.node("SequenceInsert", {"two", "twice", "minus"}, {"three"});  // x, 2x, -x
  model.node("SequenceErase", {"three", "zero"}, {"rest"});
  model.node("ConcatFromSequence", {"rest"}, {"y"}, {{"axis", -1}});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  EXPECT_EQ(values_of(run(*graph, 2, 1)), (std::vector<float>{2, -1, 4, -2}));
}

TEST(ImporterSequence, BranchesGiveListsOfOneLength) {
  for (const bool equal : {true, false}) {
    ImporterModel model(17);
    model.input("x", {"n", "d"});
    model.input("flag", {}, ImporterModel::kBool);
    auto& branch = model.node("If", {"flag"}, {"list"});
    auto& yes = model.body(branch, "then_branch");
    model.node_of(yes, "SequenceConstruct", {"x", "x"}, {"twice"});
    yes.add_output()->set_name("twice");
    auto& no = model.body(branch, "else_branch");
    model.node_of(no, "Neg", {"x"}, {"minus"});
    if (equal)
      model.node_of(no, "SequenceConstruct", {"minus", "x"}, {"pair"});
    else
      model.node_of(no, "SequenceConstruct", {"minus"}, {"pair"});
    no.add_output()->set_name("pair");
    model.node("ConcatFromSequence", {"list"}, {"y"}, {{"axis", 0}});
    model.output("y");
    const auto graph = model.convert();
    EXPECT_EQ(graph.ok(), equal) << model.reasons();
    if (!equal) {
      EXPECT_NE(model.reasons().find("different lengths"), std::string::npos) << model.reasons();
      continue;
    }
    const float x[] = {3};
    for (const bool flag : {true, false}) {
      const ConstTensorView inputs[] = {{x, {DType::F32, {1, 1}}}, {&flag, {DType::Bool, {}}}};
      const auto outputs = ops::evaluate_graph(graph->entries[0].graph, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      EXPECT_EQ(values_of((*outputs)[0]), (std::vector<float>{flag ? 3.0f : -3.0f, 3}));
    }
  }
}

TEST(ImporterSequence, OptionalsAreKnown) {
  ImporterModel model(18);
  model.input("x", {"n", "d"});
  model.node("Optional", {"x"}, {"some"});
  model.node("Optional", {}, {"none"});
  model.node("OptionalHasElement", {"none"}, {"has"});
  auto& branch = model.node("If", {"has"}, {"y"});
  auto& yes = model.body(branch, "then_branch");
  model.node_of(yes, "OptionalGetElement", {"none"}, {"element"});
  yes.add_output()->set_name("element");
  auto& no = model.body(branch, "else_branch");
  model.node_of(no, "OptionalGetElement", {"some"}, {"given"});
  no.add_output()->set_name("given");
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  EXPECT_EQ(values_of(run(*graph, 1, 2)), (std::vector<float>{1, 2}));
}

TEST(ImporterSequence, MisuseIsRefused) {
  ImporterModel relu(17);
  relu.input("x", {"n", "d"});
  relu.node("SequenceConstruct", {"x"}, {"list"});
  relu.node("Relu", {"list"}, {"y"});
  relu.output("y");
  EXPECT_FALSE(relu.convert().ok());
  EXPECT_NE(relu.reasons().find("reads a sequence"), std::string::npos) << relu.reasons();

  ImporterModel beyond(17);
  beyond.input("x", {"n", "d"});
  beyond.integers("two", {}, {2});
  beyond.node("SequenceConstruct", {"x", "x"}, {"list"});
  beyond.node("SequenceAt", {"list", "two"}, {"y"});
  beyond.output("y");
  const auto outside = beyond.convert();
  ASSERT_FALSE(outside.ok());
  EXPECT_NE(outside.status().message().find("position 2 is outside"), std::string::npos)
      << outside.status().message();

  ImporterModel tensor(17);
  tensor.input("x", {"n", "d"});
  tensor.node("SequenceLength", {"x"}, {"y"});
  tensor.output("y");
  EXPECT_FALSE(tensor.convert().ok());
}

}  // namespace
}  // namespace librt::onnx
