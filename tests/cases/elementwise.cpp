// unary, activation, binary, compare, select, cast: element by element, with broadcasting.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
void add_unary(std::vector<Case>& cases, const char* name) {
  cases.push_back(make_case(text(name, "_small"), Attributes{}, {f32({2, 3, 5})}));
  cases.push_back(make_case(text(name, "_odd"), Attributes{}, {f32({1031})}));
}

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

Case cast_case(const char* name, DType from, DType to, std::vector<double> values) {
  op::CastAttributes attributes;
  attributes.to = static_cast<uint8_t>(to);
  const auto count = static_cast<int64_t>(values.size());
  return no_gradient(
      make_case(text("cast_", name), attributes, {with_values(tensor(from, {count}), std::move(values))}));
}

}  // namespace

std::vector<Case> cases_elementwise() {
  std::vector<Case> cases;
  add_unary<op::AbsAttributes>(cases, "abs");
  add_unary<op::NegAttributes>(cases, "neg");
  add_unary<op::ExpAttributes>(cases, "exp");
  add_unary<op::LogAttributes>(cases, "log");
  add_unary<op::SqrtAttributes>(cases, "sqrt");
  add_unary<op::ReciprocalAttributes>(cases, "reciprocal");
  add_unary<op::SinAttributes>(cases, "sin");
  add_unary<op::CosAttributes>(cases, "cos");
  add_unary<op::TanhAttributes>(cases, "tanh");
  add_unary<op::AtanAttributes>(cases, "atan");
  add_unary<op::SigmoidAttributes>(cases, "sigmoid");
  add_unary<op::ReluAttributes>(cases, "relu");
  add_unary<op::ErfAttributes>(cases, "erf");
  add_unary<op::FloorAttributes>(cases, "floor");
  add_unary<op::CeilAttributes>(cases, "ceil");
  add_unary<op::RoundAttributes>(cases, "round");
  add_unary<op::SignAttributes>(cases, "sign");
  add_unary<op::SoftplusAttributes>(cases, "softplus");
  add_unary<op::LeakyReluAttributes>(cases, "leaky_relu");
  add_unary<op::EluAttributes>(cases, "elu");
  add_unary<op::HardSigmoidAttributes>(cases, "hard_sigmoid");
  add_unary<op::HardSwishAttributes>(cases, "hard_swish");
  add_unary<op::GeluAttributes>(cases, "gelu");
  add_unary<op::SiluAttributes>(cases, "silu");
  cases.push_back(make_case("hard_swish_wide", op::HardSwishAttributes{}, {in_range(f32({257}), -8, 8)}));
  cases.push_back(make_case("not_bool", op::NotAttributes{}, {tensor(DType::Bool, {9})}));
  cases.push_back(make_case("abs_i64", op::AbsAttributes{}, {in_range(tensor(DType::I64, {9}), -20, 20)}));
  cases.push_back(make_case("neg_i32", op::NegAttributes{}, {in_range(tensor(DType::I32, {9}), -20, 20)}));
  cases.push_back(make_case("relu_scalar", op::ReluAttributes{}, {f32({})}));
  cases.push_back(make_case("relu_empty", op::ReluAttributes{}, {f32({0, 4})}));
  op::GeluAttributes gelu_tanh;
  gelu_tanh.tanh_approximation = true;
  cases.push_back(make_case("gelu_tanh", gelu_tanh, {in_range(f32({6, 33}), -4, 4)}));
  op::ClipAttributes clip;
  clip.minimum = -1;
  clip.maximum = 0.5f;
  cases.push_back(make_case("clip", clip, {f32({5, 7})}));

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
  cases.push_back(make_case("where_same", op::WhereAttributes{},
                            {tensor(DType::Bool, {3, 5}), f32({3, 5}), f32({3, 5})}));
  cases.push_back(
      make_case("where_broadcast", op::WhereAttributes{}, {tensor(DType::Bool, {5}), f32({3, 1}), f32({})}));
  cases.push_back(make_case("where_i64", op::WhereAttributes{},
                            {tensor(DType::Bool, {4}), tensor(DType::I64, {4}), tensor(DType::I64, {1})}));

  cases.push_back(cast_case("f32_i64", DType::F32, DType::I64, {-2.7, -0.5, 0, 0.9, 3.2, 1e6}));
  cases.push_back(cast_case("f32_i32", DType::F32, DType::I32, {-2.7, -0.5, 0, 0.9, 3.2, 1e6}));
  cases.push_back(cast_case("f32_u8", DType::F32, DType::U8, {0, 0.9, 3.2, 200, 255}));
  cases.push_back(cast_case("f32_bool", DType::F32, DType::Bool, {0, 1, -3, 0.25}));
  cases.push_back(cast_case("f32_f16", DType::F32, DType::F16, {0, 1, -3, 0.1, 70000, 1e-7, 65504}));
  cases.push_back(cast_case("f16_f32", DType::F16, DType::F32, {0, 1, -3, 0.1, 1e-7, 65504}));
  cases.push_back(cast_case("bf16_f32", DType::BF16, DType::F32, {0, 1, -3, 0.1, 1e30}));
  cases.push_back(cast_case("f32_bf16", DType::F32, DType::BF16, {0, 1, -3, 0.1, 1e30}));
  cases.push_back(cast_case("i64_f32", DType::I64, DType::F32, {0, 1, -3, 12345678}));
  cases.push_back(cast_case("i32_i64", DType::I32, DType::I64, {0, 1, -3, 12345678}));
  cases.push_back(cast_case("u8_f32", DType::U8, DType::F32, {0, 1, 127, 255}));
  cases.push_back(cast_case("bool_f32", DType::Bool, DType::F32, {0, 1, 1}));
  return cases;
}

}  // namespace librt::test
