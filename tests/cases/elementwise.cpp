// Chains of element-wise operators: every operator that can be a step, types, broadcasting, and which results
// are read again.
#include <string>

#include "runtime/geometry/elementwise.h"
#include "runtime/geometry/function.h"
#include "tests/cases/case.h"

namespace librt::test {
namespace {

/// Steps in order; operands as in the schema: with n inputs k is input k, n + k the result of step k.
class Chain {
 public:
  template <class Attributes>
  Chain& then(Attributes attributes, std::array<int64_t, 3> operands) {
    return then(make_op(std::move(attributes)), operands);
  }
  Chain& then(OpAttributes op, std::array<int64_t, 3> operands) {
    Node node;
    node.op = std::move(op);
    append_step(attributes_, node, operands);
    return *this;
  }
  Case named(std::string name, std::vector<std::optional<CaseInput>> inputs) const {
    return make_case(std::move(name), attributes_, std::move(inputs));
  }

 private:
  op::ElementwiseAttributes attributes_;
};

CaseInput flags(Shape shape) {
  return tensor(DType::Bool, shape);
}

/// Each function of one operand after |x| + 1/2, where all are defined.
void add_functions(std::vector<Case>& cases) {
  for (int i = 0; i < kFunctionCount; ++i) {
    const auto function = static_cast<Function>(i);
    const OpAttributes op = operator_of(FunctionCall{function, 0.25f, 0.75f});
    if (op.type == OpKind::Identity || function == Function::Not) continue;
    Chain chain;
    chain.then(op::AbsAttributes{}, {0, -1, -1}).then(op::AddAttributes{}, {2, 1, -1}).then(op, {3, -1, -1});
    const bool flat = function == Function::GeluTanh;
    std::string name = "elementwise_" + std::string(name_of(op.type)) + (flat ? "_tanh" : "");
    for (char& letter : name)
      letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
    cases.push_back(no_gradient(chain.named(std::move(name), {f32({5, 13}), number(DType::F32, 0.5)})));
  }
}

void add_pairs(std::vector<Case>& cases) {
  const auto pair = [&](const char* name, auto attributes, CaseInput other) {
    cases.push_back(no_gradient(Chain()
                                    .then(op::NegAttributes{}, {0, -1, -1})
                                    .then(attributes, {2, 1, -1})
                                    .named(name, {in_range(f32({7, 9}), -2, -0.25), std::move(other)})));
  };
  const CaseInput positive = in_range(f32({7, 9}), 0.25, 2);
  pair("elementwise_sub", op::SubAttributes{}, f32({9}));
  pair("elementwise_div", op::DivAttributes{}, positive);
  pair("elementwise_pow", op::PowAttributes{}, positive);
  pair("elementwise_pow_scalar", op::PowAttributes{}, number(DType::F32, 2.5));
  pair("elementwise_minimum", op::MinimumAttributes{}, f32({7, 1}));
  pair("elementwise_maximum", op::MaximumAttributes{}, f32({}));
  pair("elementwise_mod", op::ModAttributes{}, positive);
  op::ModAttributes truncated;
  truncated.truncated = true;
  pair("elementwise_mod_truncated", truncated, positive);
  pair("elementwise_gelu_grad", op::GeluGradAttributes{}, f32({7, 9}));
  op::GeluGradAttributes tanh;
  tanh.tanh_approximation = true;
  pair("elementwise_gelu_tanh_grad", tanh, f32({7, 9}));
  pair("elementwise_silu_grad", op::SiluGradAttributes{}, f32({7, 9}));
  pair("elementwise_relu_grad", op::ReluGradAttributes{}, f32({7, 9}));
}

void add_conditions(std::vector<Case>& cases) {
  const auto relation = [&](const char* name, auto attributes) {
    cases.push_back(no_gradient(Chain()
                                    .then(attributes, {0, 1, -1})
                                    .then(op::WhereAttributes{}, {2, 0, 1})
                                    .named(name, {f32({3, 11}), f32({11})})));
  };
  relation("elementwise_equal", op::EqualAttributes{});
  relation("elementwise_less", op::LessAttributes{});
  relation("elementwise_less_or_equal", op::LessOrEqualAttributes{});
  relation("elementwise_greater", op::GreaterAttributes{});
  relation("elementwise_greater_or_equal", op::GreaterOrEqualAttributes{});
  // not (mask and (x > y or mask2)), as a number, times x
  cases.push_back(no_gradient(
      Chain()
          .then(op::GreaterAttributes{}, {0, 1, -1})
          .then(op::OrAttributes{}, {4, 3, -1})
          .then(op::AndAttributes{}, {2, 5, -1})
          .then(op::NotAttributes{}, {6, -1, -1})
          .then(op::CastAttributes{}, {7, -1, -1})
          .then(op::MulAttributes{}, {8, 0, -1})
          .named("elementwise_logic", {f32({4, 6, 10}), f32({6, 10}), flags({4, 6, 10}), flags({4, 1, 1})})));
  const Chain masked =
      Chain().then(op::WhereAttributes{}, {2, 0, 1}).then(op::SigmoidAttributes{}, {3, -1, -1});
  cases.push_back(masked.named("elementwise_where", {f32({3, 37}), f32({}), flags({3, 37})}));
  cases.push_back(masked.named("elementwise_where_row", {f32({3, 36}), f32({3, 1}), flags({36})}));
  cases.push_back(masked.named("elementwise_where_column", {f32({3, 36}), f32({36}), flags({3, 1})}));
  cases.push_back(masked.named("elementwise_where_scalar", {f32({3, 5}), f32({5}), flags({})}));
}

void add_shapes(std::vector<Case>& cases) {
  const Chain gate = Chain()
                         .then(op::MulAttributes{}, {0, 1, -1})
                         .then(op::AddAttributes{}, {3, 2, -1})
                         .then(op::SiluAttributes{}, {4, -1, -1});
  cases.push_back(gate.named("elementwise_same", {f32({2, 3, 40}), f32({2, 3, 40}), f32({2, 3, 40})}));
  cases.push_back(gate.named("elementwise_long", {f32({3, 1111}), f32({1111}), f32({3, 1})}));
  cases.push_back(no_gradient(gate.named("elementwise_many", {f32({40, 3000}), f32({40, 1}), f32({3000})})));
  cases.push_back(gate.named("elementwise_channels", {f32({2, 5, 3, 8}), f32({2, 1, 1, 8}), f32({8})}));
  cases.push_back(gate.named("elementwise_odd_channels", {f32({2, 5, 3, 7}), f32({2, 1, 1, 7}), f32({7})}));
  cases.push_back(gate.named("elementwise_small_first", {f32({6}), f32({5, 1}), f32({})}));
  cases.push_back(gate.named("elementwise_one", {f32({1}), f32({1}), f32({})}));
  cases.push_back(
      gate.named("elementwise_axes", {f32({2, 3, 2, 3, 2}), f32({3, 1, 3, 1}), f32({2, 1, 2, 1, 2})}));
  // Short rows: several in a block, equal ones, repeated elements, and blocks that begin within a row.
  cases.push_back(
      no_gradient(gate.named("elementwise_rows", {f32({3, 400, 24}), f32({3, 1, 24}), f32({24})})));
  cases.push_back(
      no_gradient(gate.named("elementwise_columns", {f32({3, 401, 23}), f32({401, 1}), f32({3, 1, 23})})));
  cases.push_back(
      no_gradient(gate.named("elementwise_outer", {f32({2, 40, 7}), f32({50, 1, 1, 7}), f32({40, 1})})));
  cases.push_back(no_gradient(gate.named("elementwise_empty", {f32({3, 0, 4}), f32({4}), f32({3, 1, 1})})));
  for (const DType type : {DType::F16, DType::BF16}) {
    const std::string suffix(name_of(type));
    const double unit = type == DType::F16 ? 2e-3 : 1.6e-2;  // the last roundings may differ
    const auto gated = [&](const char* name, Shape x, Shape a, Shape b) {
      cases.push_back(no_gradient(within(
          gate.named(name + suffix, {tensor(type, x), tensor(type, a), tensor(type, b)}), unit, unit)));
    };
    gated("elementwise_", {3, 45}, {45}, {});
    gated("elementwise_rows_", {4, 301, 20}, {20}, {301, 1});
    gated("elementwise_groups_", {6, 1200}, {6, 1}, {6, 1200});
    cases.push_back(no_gradient(Chain()
                                    .then(op::CastAttributes{}, {2, -1, -1})
                                    .then(op::MulAttributes{}, {3, 0, -1})
                                    .then(op::LessAttributes{}, {4, 1, -1})
                                    .then(op::WhereAttributes{}, {5, 4, 1})
                                    .named("elementwise_mask_" + suffix,
                                           {tensor(type, {5, 24}), tensor(type, {24}), flags({5, 24})})));
  }
}

/// Results that later steps read again, up to six inputs and eight steps.
void add_reuse(std::vector<Case>& cases) {
  const auto six = [](Shape shape) { return std::vector<std::optional<CaseInput>>(6, f32(shape)); };
  cases.push_back(Chain()
                      .then(op::TanhAttributes{}, {0, -1, -1})
                      .then(op::MulAttributes{}, {1, 1, -1})
                      .then(op::SubAttributes{}, {1, 2, -1})
                      .named("elementwise_reused", {f32({9, 11})}));
  // ((a b) + (c d)) - ((e f) + (a d)), kept until the end
  cases.push_back(Chain()
                      .then(op::MulAttributes{}, {0, 1, -1})
                      .then(op::MulAttributes{}, {2, 3, -1})
                      .then(op::MulAttributes{}, {4, 5, -1})
                      .then(op::MulAttributes{}, {0, 3, -1})
                      .then(op::AddAttributes{}, {6, 7, -1})
                      .then(op::AddAttributes{}, {8, 9, -1})
                      .then(op::SubAttributes{}, {10, 11, -1})
                      .named("elementwise_tree", six({5, 20})));
  // More results at a time than a GPU's kernel keeps.
  cases.push_back(
      Chain()
          .then(op::SigmoidAttributes{}, {0, -1, -1})
          .then(op::SigmoidAttributes{}, {1, -1, -1})
          .then(op::SigmoidAttributes{}, {2, -1, -1})
          .then(op::SigmoidAttributes{}, {3, -1, -1})
          .then(op::SigmoidAttributes{}, {4, -1, -1})
          .then(op::MulAttributes{}, {6, 7, -1})
          .then(op::WhereAttributes{}, {5, 8, 11})
          .then(op::MulAttributes{}, {12, 10, -1})
          .named("elementwise_wide", {f32({30}), f32({30}), f32({30}), f32({30}), f32({30}), flags({30})}));
  Chain longest;
  for (int64_t i = 0; i < kMostElementwiseSteps; ++i)
    longest.then(op::AddAttributes{},
                 {i == 0 ? 0 : kMostElementwiseInputs + i - 1, i % kMostElementwiseInputs, -1});
  cases.push_back(longest.named("elementwise_longest", six({3, 50})));
}

}  // namespace

std::vector<Case> cases_elementwise() {
  std::vector<Case> cases;
  add_functions(cases);
  add_pairs(cases);
  add_conditions(cases);
  add_shapes(cases);
  add_reuse(cases);
  return cases;
}

}  // namespace librt::test
