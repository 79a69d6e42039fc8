// Arithmetic, comparisons and logic of two tensors, element by element, with broadcasting.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
void add_binary(std::vector<Case>& cases, const char* name) {
  cases.push_back(make_case(text(name, "_same"), Attributes{}, {f32({3, 4, 5}), f32({3, 4, 5})}));
  cases.push_back(make_case(text(name, "_channel"), Attributes{}, {f32({2, 3, 4, 8}), f32({8})}));
  cases.push_back(make_case(text(name, "_both"), Attributes{}, {f32({4, 1, 5}), f32({3, 1})}));
  cases.push_back(make_case(text(name, "_scalar"), Attributes{}, {f32({}), f32({7, 3})}));
  cases.push_back(make_case(text(name, "_middle"), Attributes{}, {f32({2, 3, 4, 5}), f32({2, 3, 1, 5})}));
}

template <class Attributes>
void add_integer_binary(std::vector<Case>& cases, const char* name) {
  for (DType dtype : {DType::I32, DType::I64})
    cases.push_back(make_case(text(name, "_", name_of(dtype)), Attributes{},
                              {in_range(tensor(dtype, {5, 6}), -9, 9), in_range(tensor(dtype, {6}), 1, 9)}));
}

template <class Attributes>
void add_compare(std::vector<Case>& cases, const char* name) {
  cases.push_back(
      make_case(text(name, "_f32"), Attributes{},
                {with_values(f32({2, 3}), {1, 2, 3, -1, 0, 5}), with_values(f32({3}), {1, 2, 4})}));
  cases.push_back(make_case(
      text(name, "_i64"), Attributes{},
      {with_values(tensor(DType::I64, {4}), {1, 2, 3, -1}), with_values(tensor(DType::I64, {1}), {2})}));
}

template <class Attributes>
void add_logical(std::vector<Case>& cases, const char* name) {
  cases.push_back(
      make_case(text(name, "_bool"), Attributes{}, {tensor(DType::Bool, {3, 4}), tensor(DType::Bool, {4})}));
}

/// Gradients (grad_y, x) of functions.
template <class Attributes>
void add_grad(std::vector<Case>& cases, const std::string& name, const Attributes& attributes) {
  const auto add = [&](const char* suffix, const CaseInput& grad, const CaseInput& x,
                       double tolerance = 1e-4) {
    cases.push_back(within(make_case(name + suffix, attributes, {grad, x}), tolerance, tolerance / 10));
  };
  add("_small", f32({2, 3, 5}), f32({2, 3, 5}));
  add("_odd", f32({1031}), in_range(f32({1031}), -9, 9));
  const std::vector<double> far{-3e38, -1e30, -1e19, -200, -14, 14, 200, 1e19, 1e30, 3e38};
  add("_far", f32({10}), with_values(f32({10}), far));
  cases.back().gradient = false;
  cases.back().special =
      SpecialDomain{SpecialRule::Spreads, "a tiny slope may be 0, and 0 times infinity is NaN"};
  add("_empty", f32({0, 4}), f32({0, 4}));
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const CaseInput x = tensor(dtype, {7, 37});
    add(dtype == DType::F16 ? "_f16" : "_bf16", x, in_range(x, -5, 5), dtype == DType::F16 ? 2e-3 : 1.6e-2);
    cases.back().gradient = false;
  }
}

/// A selection is exact.
void add_relu_grad(std::vector<Case>& cases) {
  const auto add = [&](const char* suffix, const CaseInput& grad, const CaseInput& y) {
    cases.push_back(within(make_case(text("relu_grad", suffix), op::ReluGradAttributes{}, {grad, y}), 0, 0));
  };
  add("_small", f32({2, 3, 5}), f32({2, 3, 5}));
  add("_odd", f32({1031}), f32({1031}));
  add("_rows", f32({6, 64}), f32({6, 64}));
  add("_repeated", f32({3, 7, 1, 1}), f32({3, 7, 4, 4}));
  add("_scalar", f32({}), f32({5, 16}));
  add("_zero", f32({8}), with_values(f32({8}), {0, -0.0, 1e-30, -1e-30, 3e38, -3e38, 1, 0}));
  cases.back().gradient = false;
  add("_empty", f32({0, 4}), f32({0, 4}));
  const CaseInput integers = in_range(tensor(DType::I32, {5, 6}), -9, 9);
  add("_i32", integers, integers);
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const CaseInput odd = tensor(dtype, {7, 37}), rows = tensor(dtype, {5, 128});
    add(dtype == DType::F16 ? "_f16" : "_bf16", odd, odd);
    cases.back().gradient = false;
    add(dtype == DType::F16 ? "_rows_f16" : "_rows_bf16", rows, rows);
    cases.back().gradient = false;
  }
}

}  // namespace

std::vector<Case> cases_binary() {
  std::vector<Case> cases;
  add_binary<op::AddAttributes>(cases, "add");
  add_binary<op::SubAttributes>(cases, "sub");
  add_binary<op::MulAttributes>(cases, "mul");
  add_binary<op::MinimumAttributes>(cases, "minimum");
  add_binary<op::MaximumAttributes>(cases, "maximum");
  cases.push_back(make_case("div", op::DivAttributes{}, {f32({4, 6}), in_range(f32({6}), 0.5, 3)}));
  cases.push_back(
      make_case("pow", op::PowAttributes{}, {in_range(f32({4, 6}), 0.5, 3), in_range(f32({6}), -2, 3)}));
  cases.push_back(
      no_gradient(make_case("pow_square", op::PowAttributes{}, {f32({3, 9}), with_values(weight({}), {2})})));
  add_integer_binary<op::AddAttributes>(cases, "add");
  add_integer_binary<op::SubAttributes>(cases, "sub");
  add_integer_binary<op::MulAttributes>(cases, "mul");
  add_integer_binary<op::DivAttributes>(cases, "div");
  add_integer_binary<op::ModAttributes>(cases, "mod");
  add_integer_binary<op::MaximumAttributes>(cases, "maximum");
  op::ModAttributes truncated;
  truncated.truncated = true;
  cases.push_back(no_gradient(make_case("mod_f32", truncated, {f32({8}), in_range(f32({8}), 0.5, 2)})));

  add_compare<op::EqualAttributes>(cases, "equal");
  add_compare<op::LessAttributes>(cases, "less");
  add_compare<op::LessOrEqualAttributes>(cases, "less_or_equal");
  add_compare<op::GreaterAttributes>(cases, "greater");
  add_compare<op::GreaterOrEqualAttributes>(cases, "greater_or_equal");
  add_logical<op::AndAttributes>(cases, "and");
  add_logical<op::OrAttributes>(cases, "or");
  add_logical<op::XorAttributes>(cases, "xor");
  op::GeluGradAttributes gelu_grad;
  add_grad(cases, "gelu_grad", gelu_grad);
  gelu_grad.tanh_approximation = true;
  add_grad(cases, "gelu_grad_tanh", gelu_grad);
  add_grad(cases, "silu_grad", op::SiluGradAttributes{});
  add_relu_grad(cases);
  return cases;
}

}  // namespace librt::test
