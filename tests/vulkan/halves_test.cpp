// Elementwise kernels and pools in f16 and bf16 against the pages: 16-bit storage, f32 arithmetic.
#include <gtest/gtest.h>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::test {
namespace {

/// One rounding of the result, which the page computes from the same operands.
ops::Tolerance rounding(DType dtype) {
  const double unit = dtype == DType::F16 ? 0x1p-10 : 0x1p-7;
  return {unit, unit};
}

constexpr DType kHalves[] = {DType::F16, DType::BF16};

TEST(VulkanHalves, BinaryAndUnary) {
  RT_LAVAPIPE(device);
  const std::pair<Shape, Shape> shapes[] = {{{2, 3, 8}, {2, 3, 8}}, {{2, 3, 8}, {8}}, {{2, 3, 8}, {1, 3, 1}},
                                            {{2, 3, 7}, {3, 1}},    {{5}, {}},        {{1, 3, 5}, {2, 1, 5}}};
  for (const DType dtype : kHalves) {
    for (const auto& [a, b] : shapes) {
      const NodeInputs inputs{random_tensor({dtype, a}, -2, 2, 1), random_tensor({dtype, b}, 1, 3, 2)};
      check_node(device, make_node(op::AddAttributes{}, 2), inputs, 0, rounding(dtype));
      check_node(device, make_node(op::DivAttributes{}, 2), inputs, 0, rounding(dtype));
    }
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5, 4}})
      check_node(device, make_node(op::HardSwishAttributes{}, 1), {random_tensor({dtype, shape}, -4, 4, 1)},
                 0, rounding(dtype));
  }
}

TEST(VulkanHalves, Pools) {
  RT_LAVAPIPE(device);
  for (const DType dtype : kHalves)
    for (const int64_t channels : {8, 3}) {
      const NodeInputs inputs{random_tensor({dtype, {2, 7, 9, channels}}, -2, 2, 1)};
      op::MaxPoolAttributes maximum;
      maximum.kernel = {3, 3};
      maximum.strides = {2, 2};
      maximum.pads = {1, 1, 1, 1};
      check_node(device, make_node(maximum, 1), inputs, 0, rounding(dtype));
      op::AveragePoolAttributes average;
      average.kernel = {3, 2};
      average.strides = {2, 1};
      average.pads = {1, 0, 1, 1};
      check_node(device, make_node(average, 1), inputs, 0, rounding(dtype));
    }
}

}  // namespace
}  // namespace librt::test
