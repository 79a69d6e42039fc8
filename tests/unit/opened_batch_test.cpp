// Where the batch of 1 of a file becomes dynamic (--open-batch).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/importer_model.h"

namespace librt::onnx {
namespace {

using test::ImporterModel;
using Extents = std::vector<int64_t>;

/// The dims of y where x, with a batch of 1 in the file, is opened; -1: dynamic.
std::vector<int64_t> opened_extents(ImporterModel& model) {
  ImportOptions options;
  options.open_batch = true;
  const auto opened = model.convert(options);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  std::vector<int64_t> extents;
  if (!opened.ok()) return extents;
  const Graph& infer = opened->entries[0].graph;
  for (const Dim& dim : infer[infer.outputs[0]].dims) extents.push_back(dim.extent);
  return extents;
}

void add_transpose(ImporterModel& model, const std::string& from, const std::string& to,
                   const Extents& order) {
  auto& perm = *model.node("Transpose", {from}, {to}).add_attribute();
  perm.set_name("perm");
  perm.set_type(7);
  for (const int64_t axis : order) perm.add_ints(axis);
}

TEST(OpenedBatch, IsFoundInShapesThatHoldIt) {
  // Attention in sequence-first order, as PyTorch's MultiheadAttention is exported: 5 positions, 2 heads
  // of 3.
  struct Case {
    std::vector<Extents> shapes;  // of Reshapes, one after the other; empty: transposes the first two axes
    Extents result;
  };
  const Case cases[] = {
      {{{1, 30}}, {-1, 30}},
      {{{1, -1}}, {-1, 30}},
      {{{5, 6}}, {-1, 6}},
      {{{1, 5, 2, 3}}, {-1, 5, 2, 3}},
      {{{}, {5, 2, 3}, {}}, {-1, 5, 3}},
      {{{}, {5, 2, 3}, {}, {1, 2, 5, 3}}, {-1, 2, 5, 3}},
      {{{}, {-1, 6}, {5, 1, 6}, {}}, {-1, 5, 6}},
      {{{}, {5, 2, 3}, {}, {}, {5, 6}, {5, 1, 6}, {}}, {-1, 5, 6}},
  };
  for (const Case& each : cases) {
    ImporterModel model(17);
    model.input("x", {"1", "5", "6"});
    std::string last = "x";
    for (size_t i = 0; i < each.shapes.size(); ++i) {
      const std::string name = i + 1 == each.shapes.size() ? "y" : "v" + std::to_string(i);
      if (each.shapes[i].empty()) {
        const auto rank = static_cast<int64_t>(i == 0 ? 3 : std::max<size_t>(3, each.shapes[i - 1].size()));
        Extents order = {1, 0};
        for (int64_t axis = 2; axis < rank; ++axis) order.push_back(axis);
        add_transpose(model, last, name, order);
      } else {
        model.integers("shape" + name, {static_cast<int64_t>(each.shapes[i].size())}, each.shapes[i]);
        model.node("Reshape", {last, "shape" + name}, {name});
      }
      last = name;
    }
    model.output("y");
    EXPECT_EQ(opened_extents(model), each.result) << each.shapes.size() << " operations";
  }
}

TEST(OpenedBatch, IsGivenToOperandsOfOneSample) {
  ImporterModel token(17);  // a class token in front of the positions
  token.input("x", {"1", "5", "6"});
  token.floats("token", {1, 1, 6}, std::vector<float>(6));
  token.node("Concat", {"token", "x"}, {"y"}, {{"axis", 1}});
  token.output("y");
  EXPECT_EQ(opened_extents(token), (std::vector<int64_t>{-1, 6, 6}));

  ImporterModel sizes(17);
  sizes.input("x", {"1", "2", "4", "4"});
  sizes.integers("sizes", {4}, {1, 2, 8, 8});
  sizes.node("Resize", {"x", "", "", "sizes"}, {"y"});
  sizes.output("y");
  EXPECT_EQ(opened_extents(sizes), (std::vector<int64_t>{-1, 2, 8, 8}));

  ImporterModel state(17);  // an initial state
  state.input("x", {"1", "5", "6"});
  add_transpose(state, "x", "steps", {1, 0, 2});
  state.floats("w", {1, 9, 6}, std::vector<float>(54));
  state.floats("r", {1, 9, 3}, std::vector<float>(27));
  state.floats("h", {1, 1, 3}, std::vector<float>(3));
  state.node("GRU", {"steps", "w", "r", "", "", "h"}, {"", "last"}, {{"hidden_size", 3}});
  state.integers("axes", {1}, {0});
  state.node("Squeeze", {"last", "axes"}, {"y"});
  state.output("y");
  EXPECT_EQ(opened_extents(state), (std::vector<int64_t>{-1, 3}));
}

}  // namespace
}  // namespace librt::onnx
