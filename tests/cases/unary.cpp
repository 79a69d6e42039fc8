// Functions of one tensor, element by element.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
void add_unary(std::vector<Case>& cases, const char* name) {
  cases.push_back(make_case(text(name, "_small"), Attributes{}, {f32({2, 3, 5})}));
  cases.push_back(make_case(text(name, "_odd"), Attributes{}, {f32({1031})}));
}

}  // namespace

std::vector<Case> cases_unary() {
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
  return cases;
}

}  // namespace librt::test
