// Shaders and the host match push constants and specialization constants by position, operands by binding.
#include <gtest/gtest.h>

#include <string>

#include "backends/vulkan/dispatch/capabilities.h"
#include "backends/vulkan/dispatch/program.h"
#include "tools/shaders/interface.h"

namespace librt::vulkan {
namespace {

// shaders/unary.comp: uint count; float alpha; float beta, and constant_id 1.
TEST(VulkanInterface, ReadsPushConstants) {
  const ShaderCode& code = shader_code(Shader::unary);
  EXPECT_STREQ(code.push, "iff");
  EXPECT_EQ(code.constants, 2U);
  EXPECT_EQ(code.bindings, 3U);
  const auto words = shader_words(code);
  ASSERT_TRUE(words.ok()) << words.status().message();
  std::string error;
  EXPECT_EQ(spirv::interface_of(*words, error).push, "iff");
  EXPECT_TRUE(code.capabilities.empty());
  EXPECT_EQ(error, "");
  spirv::interface_of(words->first(6), error);  // the header, and half of OpCapability
  EXPECT_EQ(error, "an instruction is cut off");
  spirv::interface_of(words->subspan(1), error);
  EXPECT_EQ(error, "expected a SPIR-V module");
}

TEST(VulkanInterface, RejectsMismatchedPushConstants) {
  const auto status = [](const auto& fill) {
    Program program("test");
    fill(program.dispatch(Shader::unary, 1, 64));
    return std::string(program.check_interfaces().message());
  };
  EXPECT_EQ(status([](Step& s) { s.spec(3).push(8).push(0.5f).push(0.25f); }), "");
  EXPECT_NE(
      status([](Step& s) { s.spec(3).push(8).push(0.5f); }).find("expected the push constants iff, found if"),
      std::string::npos);
  EXPECT_NE(status([](Step& s) { s.spec(3).push(0.5f).push(8).push(0.25f); }).find("found fif"),
            std::string::npos);
  EXPECT_NE(status([](Step& s) {
              s.push(8).push(0.5f).push(0.25f);
            }).find("expected 2 specialization constants, found 1"),
            std::string::npos);
}

TEST(VulkanInterface, RejectsOperandsAtOtherBindings) {
  Program program("test");
  program.dispatch(Shader::unary, 1, 64)
      .spec(3)
      .push(8)
      .push(0.5f)
      .push(0.25f)
      .read(0, in(0))
      .write(2, out(0));
  EXPECT_NE(program.check_interfaces().message().find("shader unary has no binding 2"), std::string::npos);
}

/// A device with every feature and limit that shaders ask for.
DeviceFacts rich_device() {
  DeviceFacts facts;
  facts.max_storage_buffers = kStorageBindings;
  facts.subgroup_shuffle = true;
  facts.matrices.push_back({.m = 16, .n = 16, .k = 16});
  facts.features = {.storage_8bit = true,
                    .storage_16bit = true,
                    .float16 = true,
                    .int8 = true,
                    .int16 = true,
                    .int64 = true,
                    .integer_dot = true};
  return facts;
}

TEST(VulkanCapabilities, EveryShaderRunsWhereNothingIsMissing) {
  for (size_t i = 0; i < kShaderCount; ++i) {
    const Status status = runs(rich_device(), shader_code(static_cast<Shader>(i)));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  DeviceFacts plain = rich_device();  // what a DevicePlan does not choose is not missed
  plain.subgroup_shuffle = plain.features.integer_dot = false;
  plain.matrices.clear();
  EXPECT_TRUE(runs_basic_shaders(plain));
}

TEST(VulkanCapabilities, NamesAllThatIsMissing) {
  DeviceFacts facts = rich_device();
  facts.features.storage_8bit = facts.features.int64 = false;
  facts.max_storage_buffers = 2;
  EXPECT_FALSE(runs_basic_shaders(facts));
  EXPECT_EQ(runs(facts, shader_code(Shader::compare_i64)).message(),
            "shader compare_i64 needs 64-bit integers and 8-bit storage and 3 storage buffers (it has 2), "
            "which the device lacks");
  const uint32_t unknown[] = {5000};
  const ShaderCode foreign{.name = "foreign", .words = 1, .at = unknown, .capabilities = unknown};
  EXPECT_EQ(runs(rich_device(), foreign).message(),
            "shader foreign needs SPIR-V's capability 5000, which the device lacks");
}

// Small types are stored, not computed with: devices that only store them run every shader but those of
// cooperative matrices. An optimizer step of f32 needs no small type.
TEST(VulkanCapabilities, SmallTypesAreOnlyStored) {
  DeviceFacts facts = rich_device();
  facts.features.float16 = facts.features.int8 = facts.features.int16 = false;
  EXPECT_TRUE(runs_basic_shaders(facts));
  facts.features = {};
  for (const Shader shader : {Shader::optimizer_scalars, Shader::optimizer_step_3, Shader::narrow_float})
    EXPECT_TRUE(runs(facts, shader_code(shader)).ok()) << shader_code(shader).name;
  EXPECT_FALSE(runs(facts, shader_code(Shader::unary_halves)).ok());
}

}  // namespace
}  // namespace librt::vulkan
