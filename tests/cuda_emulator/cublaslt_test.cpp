// Which GEMMs use cuBLASLt on the emulated device. The conformance harness checks their values.
#include "backends/cuda/libraries/cublaslt.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/device/device.h"

namespace librt::cuda {
namespace {

class EmulatedCublasLt : public testing::Test {
 protected:
  void SetUp() override {
    setenv("RT_EMULATOR_LIBRARIES", "cublasLt", 1);
    auto device = CudaDevice::open({});
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(*device);
  }
  void TearDown() override { unsetenv("RT_EMULATOR_LIBRARIES"); }

  /// Error of the library's row for [5, k] x [k, n]; empty if it is the first candidate and creates a kernel.
  std::string answer(int64_t k, int64_t n, DType weight_type, bool constant) {
    Node node;
    node.op.Set(op::MatMulIntegerAttributes{});
    const std::vector<std::byte> bytes(static_cast<size_t>(k * n), std::byte{1});
    const Operand operands[] = {{.present = true, .info = {.dtype = DType::U8, .shape = {5, k}}},
                                {.present = true,
                                 .info = {.dtype = weight_type, .shape = {k, n}},
                                 .value = constant ? bytes.data() : nullptr}};
    const TensorInfo result[] = {{.dtype = DType::I32, .shape = {5, n}}};
    const NodeView view{.node = node, .inputs = operands, .outputs = result};
    for (const KernelRow* row : device_->kernels().rows(OpKind::MatMulInteger))
      if (std::string_view(row->name) == "matmul_integer.cublaslt")
        if (const Status status = row->supports(*device_, view); !status.ok()) return status.message();
    const auto rows = device_->kernels().candidates(*device_, view);
    if (!rows.ok()) return rows.status().message();
    if (std::string_view((*rows)[0]->name) != "matmul_integer.cublaslt") return (*rows)[0]->name;
    const auto kernel = (*rows)[0]->create(*device_, view, {});
    if (!kernel.ok()) return kernel.status().message();
    // Scratch for the library and for signed 8-bit values; the transposed weight, and its column sums.
    const Requirements needs = (*kernel)->requirements();
    EXPECT_EQ(needs.scratch, 512u + 512u);
    EXPECT_EQ(needs.packed, 1536u + static_cast<size_t>(n) * 4);
    EXPECT_EQ(needs.replaced_inputs, 2u);
    return {};
  }
  DevicePtr device_;
};

/// Activations that the library has are part of its kernel; the others are a pass over the result.
TEST_F(EmulatedCublasLt, Activations) {
  for (const auto activation : {op::Activation::Relu, op::Activation::Gelu, op::Activation::Silu,
                                op::Activation::Tanh, op::Activation::Sigmoid}) {
    Node node;
    op::MatMulAttributes attributes;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->activation = activation;
    node.op.Set(std::move(attributes));
    const Operand operands[] = {{.present = true, .info = {.dtype = DType::F16, .shape = {128, 64}}},
                                {.present = true, .info = {.dtype = DType::F16, .shape = {64, 256}}}};
    const TensorInfo result[] = {{.dtype = DType::F16, .shape = {128, 256}}};
    const NodeView view{.node = node, .inputs = operands, .outputs = result};
    const auto rows = device_->kernels().candidates(*device_, view);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_STREQ((*rows)[0]->name, "matmul.cublaslt") << static_cast<int>(activation);
    EXPECT_TRUE((*rows)[0]->create(*device_, view, {}).ok());
  }
}

TEST_F(EmulatedCublasLt, IntegerGemm) {
  EXPECT_EQ(answer(68, 20, DType::I8, true), "");
  EXPECT_EQ(answer(70, 20, DType::I8, true),
            "cuBLASLt: an i8 matmul needs n and k to be multiples of 4, found 20 and 70");
  EXPECT_EQ(answer(68, 21, DType::I8, true),
            "cuBLASLt: an i8 matmul needs n and k to be multiples of 4, found 21 and 68");
  for (const auto& [type, constant] : {std::pair(DType::I8, false), std::pair(DType::U8, true)})
    EXPECT_EQ(answer(68, 20, type, constant), "cuBLASLt: B must be a constant i8 matrix");
}

}  // namespace
}  // namespace librt::cuda
