// Convolutions, their gradients and pools against the pages.
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::test {
namespace {

ops::HostTensor floats(const Shape& shape, uint64_t seed) {
  return random_tensor({DType::F32, shape}, -1, 1, seed);
}

struct Case {
  Shape x, weight;
  std::vector<int64_t> strides, pads, dilations;
  int64_t groups = 1;
};

const Case kCases[] = {
    {{2, 7, 9, 8}, {12, 3, 3, 8}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {{1, 8, 8, 3}, {10, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {{1, 9, 11, 4}, {5, 5, 3, 4}, {2, 1}, {2, 0, 1, 3}, {1, 2}},
    {{3, 5, 5, 16}, {20, 1, 1, 16}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {{1, 6, 6, 8}, {8, 3, 3, 4}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2},
    {{2, 6, 7, 8}, {8, 3, 3, 1}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 8},
    {{1, 6, 6, 6}, {9, 3, 3, 2}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},
    {{2, 13, 5}, {4, 3, 5}, {2}, {1, 1}, {1}},
    {{1, 4, 5, 6, 2}, {3, 2, 3, 2, 2}, {1, 2, 1}, {0, 1, 0, 1, 1, 0}, {1, 1, 2}},
};

template <class Attributes>
Attributes attributes_of(const Case& c) {
  Attributes attributes;
  attributes.strides = c.strides;
  attributes.pads = c.pads;
  attributes.dilations = c.dilations;
  attributes.groups = c.groups;
  return attributes;
}

TEST(VulkanConv, Forward) {
  RT_LAVAPIPE(device);
  for (const Case& c : kCases)
    check_node(device, make_node(attributes_of<op::ConvAttributes>(c), 2),
               {floats(c.x, 1), floats(c.weight, 2)}, 2);
}

TEST(VulkanConv, Winograd) {
  RT_LAVAPIPE(device);
  op::ConvAttributes attributes;
  for (const std::vector<int64_t>& pads : std::vector<std::vector<int64_t>>{{1, 1, 1, 1}, {0, 2, 1, 0}}) {
    attributes.pads = pads;
    const NodeInputs inputs{floats({2, 13, 15, 64}, 1), floats({76, 3, 3, 64}, 2)};
    const auto rows = rows_for(device, make_node(attributes, 2), inputs, 2);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ(rows->front(), "conv.winograd");
    check_node(device, make_node(attributes, 2), inputs, 2, ops::Tolerance{1e-4, 2e-4});
    const auto changing = rows_for(device, make_node(attributes, 2), inputs, 0);
    ASSERT_TRUE(changing.ok()) << changing.status().message();
    EXPECT_EQ(changing->front(), "conv.tiled") << "the weights change";
  }
  NodeInputs infinite{floats({2, 13, 15, 64}, 1), floats({64, 3, 3, 64}, 2)};
  reinterpret_cast<float*>(infinite[1]->bytes.data())[70] = std::numeric_limits<float>::infinity();
  const auto rows = rows_for(device, make_node(attributes, 2), infinite, 2);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->front(), "conv.tiled") << "a weight is infinite";
}

TEST(VulkanConv, Epilogue) {
  RT_LAVAPIPE(device);
  op::ConvAttributes attributes = attributes_of<op::ConvAttributes>(kCases[0]);
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
  attributes.epilogue->activation = op::Activation::Relu;
  attributes.epilogue->has_bias = true;
  attributes.epilogue->has_residual = true;
  check_node(device, make_node(attributes, 4),
             {floats({2, 7, 9, 8}, 1), floats({12, 3, 3, 8}, 2), floats({12}, 3), floats({2, 7, 9, 12}, 4)},
             2);
}

Shape result_of(const Case& c) {
  const Node node = make_node(attributes_of<op::ConvAttributes>(c), 2);
  std::vector<TensorInfo> outputs;
  const librt::Operand operands[] = {{true, {DType::F32, c.x}}, {true, {DType::F32, c.weight}}};
  EXPECT_TRUE(ops::infer_node({node, operands}, outputs).ok());
  return outputs[0].shape;
}

TEST(VulkanConv, DataGradient) {
  RT_LAVAPIPE(device);
  for (const Case& c : kCases) {
    const Shape y = result_of(c);
    std::vector<int64_t> size(c.x.begin() + 1, c.x.end() - 1);
    check_node(device, make_node(attributes_of<op::ConvTransposeAttributes>(c), 3),
               {floats(y, 1), floats(c.weight, 2), ints_tensor(size)}, 2);
  }
}

TEST(VulkanConv, WeightGradient) {
  RT_LAVAPIPE(device);
  for (const Case& c : kCases) {
    op::ConvWeightGradAttributes attributes = attributes_of<op::ConvWeightGradAttributes>(c);
    for (int i = 1; i + 1 < c.weight.rank(); ++i) attributes.kernel.push_back(c.weight[i]);
    check_node(device, make_node(attributes, 2), {floats(c.x, 1), floats(result_of(c), 2)}, 0,
               ops::Tolerance{1e-4, 1e-4});
  }
}

template <class Attributes>
Attributes pool(std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> pads,
                bool ceil) {
  Attributes attributes;
  attributes.kernel = std::move(kernel);
  attributes.strides = std::move(strides);
  attributes.pads = std::move(pads);
  attributes.ceil_mode = ceil;
  return attributes;
}

TEST(VulkanPool, ForwardAndGradients) {
  RT_LAVAPIPE(device);
  for (const int64_t channels : {8, 3})
    for (const bool ceil : {false, true}) {
      const Shape shape{2, 7, 8, channels};
      const auto x = floats(shape, 1);
      const auto max = pool<op::MaxPoolAttributes>({3, 3}, {2, 2}, {1, 1, 1, 1}, ceil);
      check_node(device, make_node(max, 1), {x});
      auto average = pool<op::AveragePoolAttributes>({3, 2}, {2, 2}, {1, 0, 1, 0}, ceil);
      check_node(device, make_node(average, 1), {x});
      average.count_include_pad = true;
      check_node(device, make_node(average, 1), {x});

      std::vector<TensorInfo> max_outputs, average_outputs;
      const librt::Operand operands[] = {{true, {DType::F32, shape}}};
      ASSERT_TRUE(ops::infer_node({make_node(max, 1), operands}, max_outputs).ok());
      ASSERT_TRUE(ops::infer_node({make_node(average, 1), operands}, average_outputs).ok());
      check_node(device, make_node(pool<op::MaxPoolGradAttributes>({3, 3}, {2, 2}, {1, 1, 1, 1}, ceil), 2),
                 {x, floats(max_outputs[0].shape, 2)});
      auto gradient = pool<op::AveragePoolGradAttributes>({3, 2}, {2, 2}, {1, 0, 1, 0}, ceil);
      check_node(device, make_node(gradient, 2),
                 {ints_tensor({2, 7, 8, channels}), floats(average_outputs[0].shape, 3)});
    }
}

}  // namespace
}  // namespace librt::test
