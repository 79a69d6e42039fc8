// The list of functions: every one has a conformance case, so that a backend without its formula fails there,
// and operators, epilogues and cells map to the function of their name.
#include <gtest/gtest.h>

#include <set>

#include "runtime/geometry/function.h"
#include "runtime/geometry/function_value.h"
#include "runtime/graph/attributes.h"
#include "runtime/ops/evaluate.h"
#include "tests/cases/case.h"
#include "tests/unit/page_test_support.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt::test {
namespace {

constexpr std::string_view kNames[] = {
#define RT_FUNCTION(Name, operands) #Name,
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
};
static_assert(std::size(kNames) == kFunctionCount);

std::string_view function_name(Function function) {
  return kNames[static_cast<size_t>(function)];
}

/// The functions that a case applies.
std::set<Function> functions_of(const Case& test_case) {
  std::set<Function> found;
  Node node;
  node.op = test_case.op;
  found.insert(function_call(node).function);
  if (const auto* matmul = test_case.op.AsMatMul())
    found.insert(function_call(matmul->epilogue.get()).function);
  const auto cells = [&](const auto* cell) {
    if (cell == nullptr) return;
    for (const op::RecurrentActivation activation : cell->activations) found.insert(function_of(activation));
  };
  cells(test_case.op.AsLSTM());
  cells(test_case.op.AsGRU());
  cells(test_case.op.AsRNN());
  return found;
}

TEST(Functions, EachHasAConformanceCase) {
  std::set<Function> found;
  for (const Case& test_case : all_cases()) found.merge(functions_of(test_case));
  for (int i = 0; i < kFunctionCount; ++i) EXPECT_TRUE(found.count(static_cast<Function>(i))) << kNames[i];
}

TEST(Functions, HaveTheNamesOfTheirOperatorsAndActivations) {
  for (int i = 0; i < kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (function_of(kind) == Function::Identity) continue;
    EXPECT_EQ(function_name(function_of(kind)), name_of(kind));
  }
  for (int i = 1; i <= static_cast<int>(op::Activation::MAX); ++i) {
    const auto activation = static_cast<op::Activation>(i);
    EXPECT_EQ(function_name(function_of(activation)), op::EnumNameActivation(activation));
    EXPECT_EQ(activation_of(function_of(activation)), activation);
  }
  for (int i = 1; i <= static_cast<int>(op::RecurrentActivation::MAX); ++i) {
    const auto activation = static_cast<op::RecurrentActivation>(i);
    EXPECT_EQ(function_name(function_of(activation)), op::EnumNameRecurrentActivation(activation));
  }
  EXPECT_EQ(activation_of(Function::Elu), std::nullopt);
}

TEST(Functions, OperatorsKeepTheParameters) {
  for (const Case& test_case : all_cases()) {
    Node node;
    node.op = test_case.op;
    const FunctionCall call = function_call(node);
    if (call.function == Function::Identity) continue;
    const OpAttributes made = operator_of(call);
    EXPECT_EQ(made.type, test_case.op.type) << test_case.name;
    EXPECT_EQ(attributes_text(made), attributes_text(test_case.op)) << test_case.name;
  }
}

// Gelu and Silu are composites: their bodies and their formulas agree.
TEST(Functions, BodiesOfCompositesComputeTheFormula) {
  op::GeluAttributes approximate;
  approximate.tanh_approximation = true;
  const std::vector<double> x{-3, -1, -0.25, 0, 0.5, 1, 2.5};
  const auto expect = [&](const auto& attributes, Function function) {
    Graph graph;
    compiler::Builder b(graph);
    b.output(b.emit(attributes, {b.input("x", DType::F64, {{.extent = 7}})}));
    ASSERT_TRUE(b.status().ok()) << b.status().message();
    ASSERT_TRUE(compiler::expand_composites(graph, {}).ok());
    const ops::HostTensor input = tensor(DType::F64, {7}, x);
    const ConstTensorView view = input.view();
    const auto got = ops::evaluate_graph(graph, std::span(&view, 1));
    ASSERT_TRUE(got.ok()) << got.status().message();
    const std::vector<double> y = numbers((*got)[0]);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], function_value({function}, x[i]), 1e-15) << function_name(function) << " of " << x[i];
  };
  expect(op::GeluAttributes{}, Function::Gelu);
  expect(approximate, Function::GeluTanh);
  expect(op::SiluAttributes{}, Function::Silu);
}

}  // namespace
}  // namespace librt::test
