// Normalizations, softmax, reductions and optimizer steps against the pages.
#include <gtest/gtest.h>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::test {
namespace {

ops::HostTensor floats(const Shape& shape, uint64_t seed, double low = -2, double high = 2) {
  return random_tensor({DType::F32, shape}, low, high, seed);
}

TEST(VulkanNorm, BatchNormTrainAndGradient) {
  RT_LAVAPIPE(device);
  for (const Shape& shape : {Shape{3, 5, 4, 8}, Shape{70, 3}, Shape{1100, 5}}) {
    const int64_t c = shape.back();
    op::BatchNormTrainAttributes attributes;
    for (const bool unbiased : {false, true}) {
      attributes.unbiased = unbiased;
      check_node(device, make_node(attributes, 5, 5),
                 {floats(shape, 1), floats({c}, 2), floats({c}, 3), floats({c}, 4), floats({c}, 5, 0.5, 2)});
    }
    check_node(device, make_node(op::BatchNormGradAttributes{}, 5, 3),
               {floats(shape, 1), floats(shape, 2), floats({c}, 3), floats({c}, 4), floats({c}, 5, 0.5, 2)},
               0, ops::Tolerance{2e-4, 2e-4});
  }
}

TEST(VulkanNorm, Softmax) {
  RT_LAVAPIPE(device);
  for (const Shape& shape : {Shape{5, 33}, Shape{2, 3, 4}, Shape{7, 4}, Shape{300}})
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      op::SoftmaxAttributes softmax;
      softmax.axis = axis;
      check_node(device, make_node(softmax, 1), {floats(shape, 1, -5, 5)});
      op::LogSoftmaxAttributes log;
      log.axis = axis;
      check_node(device, make_node(log, 1), {floats(shape, 1, -5, 5)});
    }
}

template <class Attributes>
void check_reduce(Device& device, double low, double high) {
  const std::vector<std::vector<int64_t>> lists{{},     {0},    {1},  {2},         {0, 1},
                                                {0, 2}, {1, 3}, {-1}, {0, 1, 2, 3}};
  for (const auto& axes : lists)
    for (const bool keep : {false, true}) {
      Attributes attributes;
      attributes.axes = axes;
      attributes.keep_dims = keep;
      check_node(device, make_node(attributes, 1), {floats({3, 4, 5, 20}, 1, low, high)});
    }
}

TEST(VulkanReduce, Floats) {
  RT_LAVAPIPE(device);
  check_reduce<op::ReduceSumAttributes>(device, -2, 2);
  check_reduce<op::ReduceMeanAttributes>(device, -2, 2);
  check_reduce<op::ReduceMaxAttributes>(device, -2, 2);
  check_reduce<op::ReduceMinAttributes>(device, -2, 2);
  check_reduce<op::ReduceProdAttributes>(device, 0.95, 1.05);
  op::ReduceSumAttributes all;
  check_node(device, make_node(all, 1), {floats({9000}, 1)}, 0, ops::Tolerance{1e-4, 1e-3});
  check_node(device, make_node(all, 1), {floats({0, 4}, 1)});
}

TEST(VulkanReduce, IntegersAndPositions) {
  RT_LAVAPIPE(device);
  for (DType dtype : {DType::I32, DType::I64}) {
    const auto x = random_tensor({dtype, {4, 30}}, -50, 50, 3);
    op::ReduceSumAttributes sum;
    sum.axes = {1};
    check_node(device, make_node(sum, 1), {x});
    op::ReduceMaxAttributes max;
    max.axes = {0};
    check_node(device, make_node(max, 1), {x});
  }
  for (const bool last : {false, true})
    for (int64_t axis = 0; axis < 3; ++axis) {
      op::ArgMaxAttributes max;
      max.axis = axis;
      max.select_last = last;
      check_node(device, make_node(max, 1), {floats({3, 5, 4}, 4)});
      check_node(device, make_node(max, 1), {random_tensor({DType::I32, {3, 5, 4}}, 0, 3, 5)});
      op::ArgMinAttributes min;
      min.axis = axis;
      min.keep_dims = false;
      check_node(device, make_node(min, 1), {floats({3, 5, 4}, 4)});
    }
}

TEST(VulkanOptimizer, Steps) {
  RT_LAVAPIPE(device);
  const Shape shape{7, 5};
  const auto rate = scalar_tensor(DType::F32, 0.1);
  for (const bool nesterov : {false, true}) {
    op::SgdStepAttributes sgd;
    sgd.momentum = 0.9f;
    sgd.weight_decay = 0.01f;
    sgd.nesterov = nesterov;
    check_node(device, make_node(sgd, 4, 2), {floats(shape, 1), floats(shape, 2), floats(shape, 3), rate});
  }
  check_node(device, make_node(op::SgdStepAttributes{}, 4),
             {floats(shape, 1), floats(shape, 2), std::nullopt, rate});
  for (const double step : {1.0, 3.0, 1000.0})
    for (const bool decoupled : {false, true}) {
      op::AdamStepAttributes adam;
      adam.weight_decay = 0.01f;
      adam.decoupled = decoupled;
      check_node(device, make_node(adam, 6, 3),
                 {floats(shape, 1), floats(shape, 2), floats(shape, 3), floats(shape, 4, 0.1, 1),
                  scalar_tensor(DType::I32, step), rate});
    }
}

}  // namespace
}  // namespace librt::test
