// Recurrent nets whose hidden units do not fit into shared memory, against the pages.
#include <gtest/gtest.h>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::test {
namespace {

constexpr int64_t kSteps = 2, kBatch = 2, kInput = 3;

ops::HostTensor floats(const Shape& shape, uint64_t seed) {
  return random_tensor({DType::F32, shape}, -0.1, 0.1, seed);
}

// The gradient's input y is the net's result.
template <class Forward, class Attributes>
void check(int64_t hidden, int64_t gates, size_t outputs) {
  RT_LAVAPIPE(device);
  Forward forward;
  Attributes attributes;
  forward.hidden = attributes.hidden = hidden;
  const Shape y{kSteps, 1, kBatch, hidden}, state{1, kBatch, hidden};
  NodeInputs inputs{floats({kSteps, kBatch, kInput}, 1),
                    floats({1, gates * hidden, kInput}, 2),
                    floats({1, gates * hidden, hidden}, 3),
                    floats(y, 4),
                    std::nullopt,
                    std::nullopt,
                    floats(state, 5),
                    floats(y, 6),
                    floats(state, 7)};
  if (gates == 4)
    inputs.insert(inputs.end(), {floats(state, 8), floats({1, 3 * hidden}, 9), floats(state, 10)});
  NodeInputs forward_inputs(inputs.begin(), inputs.begin() + 3);
  forward_inputs.insert(forward_inputs.end(), {std::nullopt, std::nullopt, inputs[6]});
  if (gates == 4) forward_inputs.insert(forward_inputs.end(), {inputs[9], inputs[10]});
  auto values = reference_node(make_node(forward, forward_inputs.size(), gates == 4 ? 3 : 2), forward_inputs);
  ASSERT_TRUE(values.ok()) << values.status().message();
  inputs[3] = std::move((*values)[0]);
  check_node(device, make_node(attributes, inputs.size(), outputs), inputs);
}

TEST(VulkanRecurrent, WideGradients) {
  check<op::LSTMAttributes, op::LSTMGradAttributes>(515, 4, 5);
  check<op::GRUAttributes, op::GRUGradAttributes>(684, 3, 5);
}

TEST(VulkanRecurrent, WideSteps) {
  RT_LAVAPIPE(device);
  constexpr int64_t kHidden = 2050;  // twice as many floats exceed 16 KiB
  op::RNNAttributes attributes;
  attributes.hidden = kHidden;
  const NodeInputs inputs{floats({kSteps, kBatch, kInput}, 1), floats({1, kHidden, kInput}, 2),
                          floats({1, kHidden, kHidden}, 3)};
  check_node(device, make_node(attributes, inputs.size(), 2), inputs);
}

}  // namespace
}  // namespace librt::test
