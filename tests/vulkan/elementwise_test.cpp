// Unary, binary, comparison, selection and cast kernels against the pages.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::test {
namespace {

ops::HostTensor floats(const Shape& shape, uint64_t seed, double low = -2, double high = 2) {
  return random_tensor({DType::F32, shape}, low, high, seed);
}

template <class Attributes>
void check_unary(Device& device, double low = -3, double high = 3, Attributes attributes = {}) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5, 4}, Shape{0, 3}})
    check_node(device, make_node(attributes, 1), {floats(shape, 1, low, high)});
}

TEST(VulkanElementwise, Unary) {
  RT_LAVAPIPE(device);
  check_unary<op::AbsAttributes>(device);
  check_unary<op::NegAttributes>(device);
  check_unary<op::ExpAttributes>(device, -20, 20);
  check_unary<op::LogAttributes>(device, 0.01, 100);
  check_unary<op::SqrtAttributes>(device, 0, 9);
  check_unary<op::ReciprocalAttributes>(device, 0.2, 4);
  check_unary<op::SinAttributes>(device);
  check_unary<op::CosAttributes>(device);
  check_unary<op::TanhAttributes>(device);
  check_unary<op::SigmoidAttributes>(device, -20, 20);
  check_unary<op::ReluAttributes>(device);
  check_unary<op::ErfAttributes>(device, -5, 5);
  check_unary<op::FloorAttributes>(device);
  check_unary<op::CeilAttributes>(device);
  check_unary<op::RoundAttributes>(device);
  check_unary<op::SignAttributes>(device);
  check_unary<op::SoftplusAttributes>(device, -30, 30);
  check_unary<op::LeakyReluAttributes>(device);
  check_unary<op::EluAttributes>(device);
  check_unary<op::HardSigmoidAttributes>(device);
  check_unary<op::HardSwishAttributes>(device, -5, 5);
  op::ClipAttributes clip;
  clip.minimum = -1;
  clip.maximum = 0.5f;
  check_unary(device, -2, 2, clip);
}

TEST(VulkanElementwise, UnarySpecialValues) {
  RT_LAVAPIPE(device);
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto x = tensor_of({DType::F32, {8}}, {inf, -inf, nan, 0.0, -0.0, 1.5, 2.5, -0.5});
  check_node(device, make_node(op::ReluAttributes{}, 1), {x});
  check_node(device, make_node(op::ExpAttributes{}, 1), {x});
  check_node(device, make_node(op::LogAttributes{}, 1), {x});
  check_node(device, make_node(op::TanhAttributes{}, 1), {x});
  check_node(device, make_node(op::SigmoidAttributes{}, 1), {x});
  check_node(device, make_node(op::RoundAttributes{}, 1), {x});
  check_node(device, make_node(op::SignAttributes{}, 1), {x});
  check_node(device, make_node(op::ErfAttributes{}, 1), {x});
  check_node(device, make_node(op::SqrtAttributes{}, 1), {x});
  check_node(device, make_node(op::ClipAttributes{}, 1), {x});
  check_node(device, make_node(op::HardSwishAttributes{}, 1), {x});
  const auto y = tensor_of({DType::F32, {8}}, {1, 1, 1, nan, 0.0, nan, -1, 7});
  check_node(device, make_node(op::MinimumAttributes{}, 2), {x, y});
  check_node(device, make_node(op::MaximumAttributes{}, 2), {x, y});
  check_node(device, make_node(op::EqualAttributes{}, 2), {x, y});
  check_node(device, make_node(op::LessAttributes{}, 2), {x, y});
}

// The range of drivers' own functions ends at pi.
TEST(VulkanElementwise, SineOfAnyAngle) {
  RT_LAVAPIPE(device);
  std::vector<double> angles;
  for (const double angle : {0.0, 1e-30, 0.7853981, 0.7853982, 1.5707963, 3.1415927, 22.0, 355.0, 8191.999,
                             8192.0, 11.0e4, 12345678.0, 16367173.0, 1e15, 0x1.000002p+64, 3.4028234e38})
    for (const double sign : {1.0, -1.0}) angles.push_back(sign * static_cast<float>(angle));
  const NodeInputs inputs{tensor_of({DType::F32, {static_cast<int64_t>(angles.size())}}, angles)};
  check_node(device, make_node(op::SinAttributes{}, 1), inputs, 0, ops::Tolerance{3e-7, 0});
  check_node(device, make_node(op::CosAttributes{}, 1), inputs, 0, ops::Tolerance{3e-7, 0});
}

TEST(VulkanElementwise, Integers) {
  RT_LAVAPIPE(device);
  for (DType dtype : {DType::I32, DType::I64}) {
    const auto a = random_tensor({dtype, {3, 7}}, -50, 50, 1);
    const auto b = random_tensor({dtype, {7}}, 1, 9, 2);
    check_node(device, make_node(op::AbsAttributes{}, 1), {a});
    check_node(device, make_node(op::NegAttributes{}, 1), {a});
    check_node(device, make_node(op::SignAttributes{}, 1), {a});
    check_node(device, make_node(op::AddAttributes{}, 2), {a, b});
    check_node(device, make_node(op::SubAttributes{}, 2), {a, b});
    check_node(device, make_node(op::MulAttributes{}, 2), {a, b});
    check_node(device, make_node(op::DivAttributes{}, 2), {a, b});
    check_node(device, make_node(op::ModAttributes{}, 2), {a, b});
    check_node(device, make_node(op::MinimumAttributes{}, 2), {a, b});
    check_node(device, make_node(op::EqualAttributes{}, 2), {a, b});
    check_node(device, make_node(op::LessAttributes{}, 2), {a, b});
  }
}

template <class Attributes>
void check_binary(Device& device, double low = -2, double high = 2, Attributes attributes = {}) {
  const std::pair<Shape, Shape> shapes[] = {
      {{3, 5}, {3, 5}}, {{2, 3, 8}, {8}},    {{2, 3, 8}, {3, 1}},          {{5, 1}, {1, 7}},
      {{}, {6}},        {{4, 1, 3}, {2, 1}}, {{2, 3, 4, 5}, {1, 3, 1, 5}}, {{9}, {1}}};
  for (const auto& [a, b] : shapes)
    check_node(device, make_node(attributes, 2), {floats(a, 1, low, high), floats(b, 2, low, high)});
}

TEST(VulkanElementwise, Binary) {
  RT_LAVAPIPE(device);
  check_binary<op::AddAttributes>(device);
  check_binary<op::SubAttributes>(device);
  check_binary<op::MulAttributes>(device);
  check_binary<op::DivAttributes>(device, 0.3, 3);
  check_binary<op::PowAttributes>(device, 0.3, 3);
  check_binary<op::MinimumAttributes>(device);
  check_binary<op::MaximumAttributes>(device);
  check_binary<op::ModAttributes>(device, 0.5, 5);
  check_binary<op::EqualAttributes>(device);
  check_binary<op::GreaterAttributes>(device);
  check_binary<op::GreaterOrEqualAttributes>(device);
  check_binary<op::LessOrEqualAttributes>(device);
}

TEST(VulkanElementwise, LogicAndWhere) {
  RT_LAVAPIPE(device);
  const auto c = random_tensor({DType::Bool, {3, 5}}, 0, 1, 1);
  const auto d = random_tensor({DType::Bool, {5}}, 0, 1, 2);
  check_node(device, make_node(op::NotAttributes{}, 1), {c});
  check_node(device, make_node(op::AndAttributes{}, 2), {c, d});
  check_node(device, make_node(op::OrAttributes{}, 2), {c, d});
  check_node(device, make_node(op::XorAttributes{}, 2), {c, d});
  for (DType dtype : {DType::F32, DType::F16, DType::I64, DType::U8})
    check_node(device, make_node(op::WhereAttributes{}, 3),
               {c, random_tensor({dtype, {3, 5}}, 0, 9, 3), random_tensor({dtype, {1}}, 0, 9, 4)});
}

}  // namespace
}  // namespace librt::test
