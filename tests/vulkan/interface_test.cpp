// Shaders and the host match push constants and specialization constants by position, operands by binding.
#include <gtest/gtest.h>

#include <string>

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
  std::string error;
  EXPECT_EQ(spirv::interface_of(code.words, error).push, "iff");
  EXPECT_EQ(error, "");
  spirv::interface_of(code.words.first(6), error);  // the header, and half of OpCapability
  EXPECT_EQ(error, "an instruction is cut off");
  spirv::interface_of(code.words.subspan(1), error);
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

}  // namespace
}  // namespace librt::vulkan
