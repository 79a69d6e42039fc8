// Convolutions through cuDNN's graphs on the emulated device, whose fake library checks them: which plan is
// selected, and the fallback without one. The conformance harness checks the values.
#include "backends/cuda/libraries/cudnn.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/device/device.h"
#include "cuda_emulator/emulator.h"
#include "tests/support/cudnn_requests.h"

namespace librt::cuda {
namespace {

class EmulatedCudnn : public testing::Test {
 protected:
  void SetUp() override { setenv("RT_EMULATOR_LIBRARIES", "cublasLt,cudnn", 1); }
  void TearDown() override { unsetenv("RT_EMULATOR_LIBRARIES"); }
};

TEST_F(EmulatedCudnn, PlansEveryGraph) {
  auto cudnn = Cudnn::open();
  ASSERT_TRUE(cudnn.ok()) << cudnn.status().message();
  for (const ElementType type : {ElementType::F32, ElementType::F16, ElementType::BF16})
    for (const bool tf32 : {false, true})
      each_cudnn_request(type, tf32, true, [&](const std::string& name, const CudnnRequest& request) {
        const auto plan = (*cudnn)->plan(request);
        ASSERT_TRUE(plan.ok()) << name << ": " << plan.status().message();
        EXPECT_EQ((*plan)->workspace_bytes(), 512u) << name;
        const auto again = (*cudnn)->plan(request);
        EXPECT_TRUE(again.ok() && *again == *plan) << name << ": planned twice";
      });
}

TEST_F(EmulatedCudnn, GivesTheLibrarysReason) {
  auto cudnn = Cudnn::open();
  ASSERT_TRUE(cudnn.ok()) << cudnn.status().message();
  const ConvArguments arguments{.type = ElementType::F16,
                                .windows = conv_windows_of(1, 8, 9, 8, 3, 1, 1, 1, 4)};
  const auto plan = (*cudnn)->plan({arguments});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(
      plan.status().message(),
      "cuDNN: describing the operation of a convolution failed: CUDNN_STATUS_BAD_PARAM (channels of image, "
      "filter and result disagree)");
}

/// A Conv with all epilogues uses the library's row before our tiled kernels, which are used without the
/// library.
TEST_F(EmulatedCudnn, IsARowOfTheTable) {
  op::ConvAttributes attributes;
  attributes.strides = attributes.dilations = {1, 1};
  attributes.pads = {1, 1, 1, 1};
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
  attributes.epilogue->activation = op::Activation::Relu;
  attributes.epilogue->has_bias = attributes.epilogue->has_residual = true;
  Node node;
  node.op.Set(std::move(attributes));
  const auto operand = [](const Shape& shape) {
    return Operand{.present = true, .info = {.dtype = DType::F32, .shape = shape}};
  };
  const Operand operands[] = {operand({1, 8, 8, 16}), operand({16, 3, 3, 16}), operand({16}),
                              operand({1, 8, 8, 16})};
  const TensorInfo result[] = {operands[3].info};
  const NodeView view{.node = node, .inputs = operands, .outputs = result};
  for (const bool has_library : {true, false}) {
    if (!has_library) unsetenv("RT_EMULATOR_LIBRARIES");
    auto device = CudaDevice::open({});
    ASSERT_TRUE(device.ok()) << device.status().message();
    EXPECT_EQ((*device)->info().driver.find("cuDNN 9.19.0") != std::string::npos, has_library);
    const auto rows = (*device)->kernels().candidates(**device, view);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_STREQ((*rows)[0]->name, has_library ? "conv.cudnn" : "conv.plain");
    const auto kernel = (*rows)[0]->create(**device, view, {});
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    EXPECT_EQ((*kernel)->requirements().scratch == 512, has_library);
  }
}

}  // namespace
}  // namespace librt::cuda
