// The forms that pages declare, against the operators' reference implementations: passes rely on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"
#include "tests/cases/case.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt::test {
namespace {

using ops::Form;
using Tensors = std::vector<ops::HostTensor>;

ops::HostTensor irregular(const TensorInfo& info, int64_t seed) {
  ops::HostTensor tensor(info);
  for (int64_t i = 0; i < info.elements(); ++i) {
    const int64_t value = (i * 7 + seed) % 5 + 1;
    if (is_float(info.dtype))
      store_element(tensor.bytes.data(), info.dtype, i, static_cast<double>(value) / 8);
    else
      store_integer(tensor.bytes.data(), info.dtype, i, info.dtype == DType::Bool ? value % 2 : value);
  }
  return tensor;
}

/// The last element first: all axes reversed.
ops::HostTensor reversed(const ops::HostTensor& tensor) {
  ops::HostTensor result(tensor.info);
  const size_t size = size_of(tensor.info.dtype), count = tensor.bytes.size() / size;
  for (size_t i = 0; i < count; ++i)
    std::copy_n(tensor.bytes.data() + i * size, size, result.bytes.data() + (count - 1 - i) * size);
  return result;
}

Result<Tensors> evaluate(const Case& test_case, const Tensors& inputs) {
  Graph graph;
  compiler::Builder b(graph);
  std::vector<ValueId> operands;
  std::vector<ConstTensorView> views;
  for (const ops::HostTensor& input : inputs) {
    std::vector<Dim> dims;
    for (int axis = 0; axis < input.info.shape.rank(); ++axis)
      dims.push_back({.extent = input.info.shape[axis], .symbol = -1});
    operands.push_back(b.input(text("x", operands.size()), input.info.dtype, dims));
    views.push_back(input.view());
  }
  for (const ValueId result : b.emit_many(OpAttributes(test_case.op), operands, test_case.outputs))
    b.output(result);
  RT_TRY(b.status());
  RT_TRY(compiler::expand_composites(graph, {}));
  return ops::evaluate_graph(graph, views);
}

TEST(PageForm, ResultsFollowTheirOperandsElementByElement) {
  int tried = 0;
  for (const Case& c : all_cases()) {
    const Form form = ops::form_of(c.op.type);
    if (form == Form::Opaque) continue;
    SCOPED_TRACE(c.name);
    Tensors inputs, mirrored;
    for (const auto& input : c.inputs) {
      ASSERT_TRUE(input.has_value()) << "operands are never absent";
      inputs.push_back(irregular(input->info, static_cast<int64_t>(inputs.size())));
      mirrored.push_back(reversed(inputs.back()));
    }
    const auto results = evaluate(c, inputs), mirrored_results = evaluate(c, mirrored);
    ASSERT_TRUE(results.ok()) << results.status().message();
    ASSERT_TRUE(mirrored_results.ok());
    ASSERT_EQ(results->size(), 1U);
    if (form == Form::Unary) {
      ASSERT_EQ(inputs.size(), 1U);
      EXPECT_EQ(results->front().info, inputs[0].info);
    }
    EXPECT_TRUE(std::ranges::equal(mirrored_results->front().bytes, reversed(results->front()).bytes));
    ++tried;
  }
  EXPECT_GT(tried, 150);
}

TEST(PageForm, MovementsHoldElementsOfTheFirstOperand) {
  int tried = 0;
  for (const Case& c : all_cases()) {
    if (!ops::moves_elements(c.op.type)) continue;
    SCOPED_TRACE(c.name);
    const auto values = case_values(c);
    const Node node{.op = c.op};
    std::vector<Operand> operands;
    std::vector<ConstTensorView> views;
    for (const auto& value : values) {
      operands.push_back(value ? Operand{.present = true, .info = value->info, .value = value->bytes.data()}
                               : Operand{});
      views.push_back(value ? value->view() : ConstTensorView{});
    }
    const auto results = ops::evaluate_node({.node = node, .inputs = operands}, views);
    ASSERT_TRUE(results.ok()) << results.status().message();
    ASSERT_EQ(results->size(), 1U);
    ASSERT_EQ(results->front().info.dtype, values[0]->info.dtype);
    const size_t size = size_of(values[0]->info.dtype);
    std::set<std::string_view> given;
    const auto element = [size](const ops::HostTensor& tensor, size_t at) {
      return std::string_view(reinterpret_cast<const char*>(tensor.bytes.data()) + at, size);
    };
    for (size_t at = 0; at < values[0]->bytes.size(); at += size) given.insert(element(*values[0], at));
    for (size_t at = 0; at < results->front().bytes.size(); at += size)
      ASSERT_TRUE(given.contains(element(results->front(), at))) << "element " << at / size;
    ++tried;
  }
  EXPECT_GE(tried, 30);
}

TEST(PageForm, TheShapeRulesAgree) {
  for (size_t i = 1; i < kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const auto rule = ops::extent_rule(kind);
    // A forgotten rule costs speed where dimensions are dynamic: everything after the node has unknown
    // extents.
    EXPECT_EQ(rule == ops::ExtentRule::Unknown, kind == OpKind::Unique)
        << name_of(kind) << ": its page states `extents`, or why not";
    EXPECT_EQ(ops::form_of(kind) == Form::Broadcast, rule == ops::ExtentRule::Broadcast) << name_of(kind);
    if (ops::form_of(kind) == Form::Unary) {
      EXPECT_EQ(rule, ops::ExtentRule::LikeFirst) << name_of(kind);
    }
  }
}

}  // namespace
}  // namespace librt::test
