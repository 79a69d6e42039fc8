// What a Custom node may say: hostile descriptions of results and attributes are errors.
#include "runtime/geometry/custom.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tools/compiler/builder.h"
#include "tools/compiler/train/autodiff.h"

namespace librt {
namespace {

/// Infers an operator with the operands f32[2,3] and one that is left out.
testing::AssertionResult refused(const op::CustomAttributes& attributes, std::string_view words) {
  Node node;
  node.op = make_op(attributes);
  const Operand operands[] = {{.present = true, .info = {DType::F32, {2, 3}}}, {}};
  std::vector<TensorInfo> results;
  const Status status = infer_custom({.node = node, .inputs = operands}, results);
  if (words.empty() ? status.ok() : status.message().find(words) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected '" << words << "', found '" << status.message() << "'";
}

op::CustomAttributes with_outputs(std::vector<int64_t> outputs) {
  op::CustomAttributes attributes;
  attributes.name = "X";
  attributes.outputs = std::move(outputs);
  return attributes;
}

TEST(CustomNode, ResultsAreChecked) {
  constexpr auto kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(refused(with_outputs({}), ""));
  EXPECT_TRUE(refused(with_outputs({0, 0, 12, 2, custom_extent_of(0, 1), 7}), ""));
  EXPECT_TRUE(refused(with_outputs({0}), "a rank"));
  EXPECT_TRUE(refused(with_outputs({13, 0}), "found type 13"));
  EXPECT_TRUE(refused(with_outputs({-1, 0}), "found type -1"));
  EXPECT_TRUE(refused(with_outputs({0, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1}), "rank 9"));
  EXPECT_TRUE(refused(with_outputs({0, -1}), "rank -1"));
  EXPECT_TRUE(refused(with_outputs({0, 2, 1}), "rank 2"));
  EXPECT_TRUE(refused(with_outputs({0, kMost}), "rank 9223372036854775807"));
  EXPECT_TRUE(refused(with_outputs({0, 1, custom_extent_of(0, 2)}), "an operand 0 with an axis 2"));
  EXPECT_TRUE(refused(with_outputs({0, 1, custom_extent_of(1, 0)}), "an operand 1"));
  EXPECT_TRUE(refused(with_outputs({0, 1, custom_extent_of(2, 0)}), "an operand 2"));
  EXPECT_TRUE(refused(with_outputs({0, 1, kLeast}), "an operand"));
  EXPECT_TRUE(refused(with_outputs({0, 1, kMost}), "too large"));
  EXPECT_TRUE(refused(with_outputs({0, 2, kMost / 4, 4}), "too large"));
  EXPECT_TRUE(refused({}, "name"));
}

TEST(CustomNode, AttributesAreChecked) {
  const auto described = [](std::string words, std::string_view expected) {
    op::CustomAttributes attributes = with_outputs({0, 0});
    attributes.attributes = std::move(words);
    attributes.ints = {1, 2};
    attributes.floats = {3};
    attributes.text = "word";
    EXPECT_TRUE(refused(attributes, expected)) << attributes.attributes;
  };
  described("a:i1 b:i1 c:f1 d:s4", "");
  described("a:i0 b:s0", "");
  for (const char* words : {":i1", "a", "a:", "a:i", "a b:i1", " "}) described(words, "no description");
  for (const char* words :
       {"a:x1", "a:i3", "a:i1 b:i2", "a:f2", "a:s5", "a:i-1", "a:i1x", "a:i99999999999999999999999",
        "a:i18446744073709551615", "a:i2 b:i18446744073709551615"})
    described(words, "expected a type and as many of");
}

TEST(CustomNode, IsNotTrainedThrough) {
  Graph graph;
  compiler::Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 2}});
  const ValueId w = build.input("w", DType::F32, {{.extent = 2}});
  const ValueId custom = build.emit(with_outputs({0, 1, 2}), {x});
  const ValueId loss =
      build.emit(op::ReduceSumAttributes{.axes = {0}, .keep_dims = false}, {build.mul(custom, w)});
  ASSERT_TRUE(build.status().ok()) << build.status().message();
  const auto behind = compiler::differentiate(build, loss, std::array{w});
  EXPECT_TRUE(behind.ok()) << behind.status().message();
  const auto through = compiler::differentiate(build, loss, std::array{x});
  ASSERT_FALSE(through.ok());
  EXPECT_NE(through.status().message().find("it is an operator of the application"), std::string::npos)
      << through.status().message();
}

}  // namespace
}  // namespace librt
