// Matmuls against the pages.
#include <gtest/gtest.h>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::test {
namespace {

ops::HostTensor floats(const Shape& shape, uint64_t seed) {
  return random_tensor({DType::F32, shape}, -1, 1, seed);
}

TEST(VulkanMatMul, AllTranspositionsAndEdges) {
  RT_LAVAPIPE(device);
  const int64_t sizes[][3] = {{8, 8, 8},  {5, 7, 3},   {1, 20, 16}, {17, 4, 12},
                              {9, 70, 6}, {64, 5, 33}, {3, 3, 1}};
  for (const auto& [m, n, k] : sizes)
    for (int form = 0; form < 4; ++form) {
      op::MatMulAttributes attributes;
      attributes.transpose_a = (form & 1) != 0;
      attributes.transpose_b = (form & 2) != 0;
      const Shape a = attributes.transpose_a ? Shape{k, m} : Shape{m, k};
      const Shape b = attributes.transpose_b ? Shape{n, k} : Shape{k, n};
      check_node(device, make_node(attributes, 2), {floats(a, 1), floats(b, 2)}, 2);
    }
}

TEST(VulkanMatMul, Batches) {
  RT_LAVAPIPE(device);
  const std::pair<Shape, Shape> shapes[] = {{{3, 4, 5}, {5, 6}},
                                            {{2, 3, 4, 8}, {2, 3, 8, 4}},
                                            {{4, 5}, {3, 5, 6}},
                                            {{2, 1, 4, 5}, {3, 5, 6}},
                                            {{2, 3, 4, 5}, {3, 5, 6}}};
  for (const auto& [a, b] : shapes)
    check_node(device, make_node(op::MatMulAttributes{}, 2), {floats(a, 1), floats(b, 2)});
}

TEST(VulkanMatMul, Epilogue) {
  RT_LAVAPIPE(device);
  for (int activation = 0; activation <= 10; ++activation) {
    op::MatMulAttributes attributes;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->activation = static_cast<op::Activation>(activation);
    attributes.epilogue->alpha = -0.5f;
    attributes.epilogue->beta = 0.7f;
    attributes.epilogue->has_bias = true;
    attributes.epilogue->has_residual = true;
    check_node(device, make_node(attributes, 4),
               {floats({2, 5, 12}, 1), floats({12, 9}, 2), floats({9}, 3), floats({2, 5, 9}, 4)}, 2);
  }
  for (const Shape& bias : {Shape{}, Shape{5, 1}, Shape{5, 9}, Shape{2, 5, 9}, Shape{1, 9}}) {
    op::MatMulAttributes attributes;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->has_bias = true;
    check_node(device, make_node(attributes, 3), {floats({2, 5, 12}, 1), floats({12, 9}, 2), floats(bias, 3)},
               2);
  }
}

}  // namespace
}  // namespace librt::test
