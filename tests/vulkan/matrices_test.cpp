// Cooperative matrices: the choice of tiles, the SPIR-V rewriter, and matmuls if the device lists any.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/vulkan/device/device.h"
#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"
#include "tools/shaders/khr_matrices.h"

namespace librt::test {
namespace {

vulkan::DeviceFacts gpu() {
  vulkan::DeviceFacts facts;
  facts.name = "GPU";
  facts.api_version = 103;
  facts.type = DeviceType::DiscreteGpu;
  facts.max_storage_range = 128 << 20;
  facts.max_storage_buffers = 32;
  facts.max_invocations = 1024;
  facts.max_shared_bytes = 48 << 10;
  facts.subgroup_size = 32;
  facts.features.float16 = true;
  facts.queues = {{.compute = true, .count = 1}};
  facts.memory = {{.device_local = true, .host_visible = true, .host_coherent = true, .heap_bytes = 1 << 30}};
  using vulkan::Component;
  facts.matrices = {{16, 8, 8, Component::F16, Component::F32},
                    {16, 16, 16, Component::F16, Component::F32},
                    {16, 16, 32, Component::F16, Component::F16},
                    {16, 16, 32, Component::S8, Component::S32}};
  return facts;
}

TEST(VulkanMatrices, PlanSelectsLargestShape) {
  auto facts = gpu();
  const vulkan::MatrixPlan plan = vulkan::plan_device(facts)->half_matrices;
  EXPECT_EQ(plan.m, 16u);
  EXPECT_EQ(plan.n, 16u);
  EXPECT_EQ(plan.k, 16u);
  EXPECT_EQ(plan.rows, 32u);
  EXPECT_EQ(plan.step, 32u);
  EXPECT_EQ(plan.subgroups, 4u);
  EXPECT_EQ(plan.lanes, 128u);

  facts.max_shared_bytes = 16 << 10;  // less than two operand tiles and one accumulator tile, 64 x 64
  const vulkan::MatrixPlan small = vulkan::plan_device(facts)->half_matrices;
  EXPECT_TRUE(small.listed());
  EXPECT_LT(small.rows * small.columns * small.subgroups, 64u * 64u);

  facts.features.float16 = false;
  EXPECT_FALSE(vulkan::plan_device(facts)->half_matrices.listed());
  facts = gpu();
  facts.matrices = {{16, 16, 32, vulkan::Component::S8, vulkan::Component::S32}};
  EXPECT_FALSE(vulkan::plan_device(facts)->half_matrices.listed());
}

/// A module with three matrix types, a multiply-accumulate, a load and a store.
std::vector<uint32_t> module_of(uint32_t type_of_b) {
  std::vector<uint32_t> words{0x07230203, 0x00010300, 0, 40, 0};
  const auto add = [&](uint32_t operation, std::vector<uint32_t> operands) {
    words.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | operation);
    words.insert(words.end(), operands.begin(), operands.end());
  };
  add(17, {5357});  // OpCapability CooperativeMatrixNV
  add(10, {0x5f565053, 0x635f564e, 0x65706f6f, 0x69746172, 0x6d5f6576, 0x69727461, 0x78});
  add(21, {1, 32, 0});  // uint
  add(21, {2, 8, 1});   // int8_t
  add(21, {3, 32, 1});  // int
  add(20, {4});         // bool
  add(41, {4, 5});      // true
  add(43, {1, 6, 8});   // 8
  for (const uint32_t type : {10u, 11u}) add(5358, {type, 2, 6, 6, 6});
  add(5358, {12, 3, 6, 6, 6});
  add(5359, {10, 20, 30, 6, 5, 0});  // load, column by column
  add(5361, {12, 21, 20, 22, 23});
  words[words.size() - 2] = type_of_b == 10 ? 20 : 22;
  add(5359, {11, 22, 30, 6, 5});
  add(5362, {12, 23, 12});
  add(5360, {30, 21, 6, 5});  // store
  return words;
}

std::vector<std::vector<uint32_t>> instructions_of(const std::vector<uint32_t>& words) {
  std::vector<std::vector<uint32_t>> all;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    all.emplace_back(words.begin() + static_cast<ptrdiff_t>(at),
                     words.begin() + static_cast<ptrdiff_t>(at + (words[at] >> 16)));
    all.back()[0] &= 0xffff;
  }
  return all;
}

TEST(VulkanMatrices, RewriterAddsMatrixUse) {
  std::string error;
  const auto rewritten = instructions_of(spirv::khr_matrices(module_of(11), error));
  ASSERT_FALSE(rewritten.empty()) << error;
  // New ids start at the old bound: 40, 41 and 42 are the constants 0, 1, 2.
  using Words = std::vector<uint32_t>;
  const auto has = [&](const Words& words) { return std::ranges::find(rewritten, words) != rewritten.end(); };
  EXPECT_TRUE(has({17, 6022}));
  EXPECT_TRUE(has({43, 1, 42, 2}));
  EXPECT_TRUE(has({4456, 10, 2, 6, 6, 6, 40}));
  EXPECT_TRUE(has({4456, 11, 2, 6, 6, 6, 41}));
  EXPECT_TRUE(has({4456, 12, 3, 6, 6, 6, 42}));
  EXPECT_TRUE(has({4457, 10, 20, 30, 41, 6, 0}));
  EXPECT_TRUE(has({4459, 12, 21, 20, 22, 23, 15}));  // all four signed
  EXPECT_TRUE(has({4458, 30, 21, 41, 6}));
  for (const auto& words : rewritten) EXPECT_FALSE(words[0] >= 5358 && words[0] <= 5362);
}

TEST(VulkanMatrices, RewriterRejectsUnsupported) {
  std::string error;
  EXPECT_TRUE(spirv::khr_matrices(module_of(10), error).empty());
  EXPECT_NE(error.find("two parts"), std::string::npos) << error;
  const std::vector<uint32_t> empty{0x07230203, 0x00010300, 0, 1, 0};
  EXPECT_TRUE(spirv::khr_matrices(empty, error).empty());
  EXPECT_NE(error.find("no cooperative matrices"), std::string::npos) << error;
  const std::vector<uint32_t> cut{0x07230203, 0x00010300, 0, 1, 0, 5u << 16 | 17};
  EXPECT_TRUE(spirv::khr_matrices(cut, error).empty());
  EXPECT_NE(error.find("length"), std::string::npos) << error;
}

ops::HostTensor halves(const Shape& shape, uint64_t seed) {
  return random_tensor({DType::F16, shape}, -1, 1, seed);
}

/// At the start of a test: skips if the device lists no cooperative matrices.
#define RT_MATRICES(device)                                                                \
  RT_LAVAPIPE(device);                                                                     \
  if (!static_cast<vulkan::VulkanDevice&>(device).plan().half_matrices.listed())           \
  GTEST_SKIP() << device.info().driver << " lists no cooperative matrices of f16, or the " \
               << "validation layer does not know them (RT_TEST_NO_VALIDATION=1 leaves it out)"

void check_matmul(Device& device, op::MatMulAttributes attributes, const NodeInputs& inputs) {
  const Node node = make_node(std::move(attributes), inputs.size());
  const auto rows = rows_for(device, node, inputs);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->front(), "matmul.matrices");
  check_node(device, node, inputs, 2, ops::Tolerance{2e-3, 1e-3});
}

TEST(VulkanMatrices, AllTranspositionsAndEdges) {
  RT_MATRICES(device);
  const int64_t sizes[][3] = {{16, 16, 16}, {64, 32, 48}, {19, 70, 33}, {33, 21, 4}, {47, 36, 1}};
  for (const auto& [m, n, k] : sizes)
    for (int form = 0; form < 4; ++form) {
      op::MatMulAttributes attributes;
      attributes.transpose_a = (form & 1) != 0;
      attributes.transpose_b = (form & 2) != 0;
      const Shape a = attributes.transpose_a ? Shape{k, m} : Shape{m, k};
      const Shape b = attributes.transpose_b ? Shape{n, k} : Shape{k, n};
      check_matmul(device, std::move(attributes), {halves(a, 1), halves(b, 2)});
    }
}

TEST(VulkanMatrices, BatchesAndEpilogue) {
  RT_MATRICES(device);
  check_matmul(device, {}, {halves({2, 1, 16, 20}, 1), halves({3, 20, 24}, 2)});
  for (const int64_t n : {24, 19}) {
    op::MatMulAttributes attributes;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->activation = op::Activation::Relu;
    attributes.epilogue->has_bias = true;
    attributes.epilogue->has_residual = true;
    check_matmul(device, std::move(attributes),
                 {halves({2, 17, 12}, 1), halves({12, n}, 2), halves({n}, 3), halves({2, 17, n}, 4)});
  }
}

TEST(VulkanMatrices, PointwiseConvolutions) {
  RT_MATRICES(device);
  for (const int64_t channels : {24, 19}) {
    op::ConvAttributes attributes;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->activation = op::Activation::Relu;
    attributes.epilogue->has_bias = true;
    const Node node = make_node(std::move(attributes), 3);
    const NodeInputs inputs{halves({2, 5, 7, 20}, 1), halves({channels, 1, 1, 20}, 2), halves({channels}, 3)};
    const auto rows = rows_for(device, node, inputs);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ(rows->front(), "conv.matrices");
    check_node(device, node, inputs, 2, ops::Tolerance{2e-3, 1e-3});
  }
}

TEST(VulkanMatrices, Windows) {
  RT_MATRICES(device);
  for (const auto& [channels, row] : {std::pair{76, "conv.matrix_windows"}, {19, "conv.tiled"}}) {
    op::ConvAttributes attributes;
    attributes.strides = {1, 2};
    attributes.pads = {1, 2, 3, 1};
    attributes.dilations = {2, 1};
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->activation = op::Activation::Relu;
    attributes.epilogue->has_bias = true;
    const Node node = make_node(std::move(attributes), 3);
    const NodeInputs inputs{halves({2, 13, 19, 20}, 1), halves({channels, 3, 5, 20}, 2),
                            halves({channels}, 3)};
    const auto rows = rows_for(device, node, inputs);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ(rows->front(), row);
    check_node(device, node, inputs, 2, ops::Tolerance{4e-3, 2e-3});
  }
}

TEST(VulkanMatrices, Bytes) {
  RT_LAVAPIPE(device);
  if (!static_cast<vulkan::VulkanDevice&>(device).plan().byte_matrices.listed())
    GTEST_SKIP() << device.info().driver << " lists no cooperative matrices of signed bytes, or the "
                 << "validation layer does not know them";
  for (const DType a : {DType::U8, DType::I8})
    for (const DType b : {DType::U8, DType::I8})
      for (const int64_t k : {20, 64}) {
        const Node node = make_node(op::MatMulIntegerAttributes{}, 4);
        const NodeInputs inputs{random_tensor({a, {35, k}}, 0, 127, 1),
                                random_tensor({b, {k, 29}}, 0, 127, 2), scalar_tensor(a, 9),
                                scalar_tensor(b, 5)};
        const auto got = run_node(device, node, inputs, {.row = "matmul_integer.tiled"});
        const auto want = run_node(device, node, inputs, {.row = "matmul_integer.direct"});
        ASSERT_TRUE(got.ok() && want.ok()) << got.status().message() << want.status().message();
        EXPECT_TRUE(near(got->outputs[0], want->outputs[0], {}));
      }
}

}  // namespace
}  // namespace librt::test
