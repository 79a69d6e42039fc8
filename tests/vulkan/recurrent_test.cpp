// Gradients of recurrent nets whose hidden units do not fit into shared memory, against the pages.
#include <gtest/gtest.h>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace rt::test {
namespace {

constexpr int64_t kSteps = 2, kBatch = 2, kInput = 3;

ops::HostTensor floats(const Shape& shape, uint64_t seed) {
  return random_tensor({DType::F32, shape}, -0.1, 0.1, seed);
}

template <class Attributes>
void check(int64_t hidden, int64_t gates, size_t outputs) {
  RT_LAVAPIPE(device);
  Attributes attributes;
  attributes.hidden = hidden;
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
  check_node(device, make_node(attributes, inputs.size(), outputs), inputs);
}

TEST(VulkanRecurrent, WideGradients) {
  check<op::LSTMGradAttributes>(515, 4, 5);
  check<op::GRUGradAttributes>(684, 3, 5);
}

}  // namespace
}  // namespace rt::test
