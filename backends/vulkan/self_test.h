// Trust in a driver: pipelines that drivers are known to compile wrongly, or to die on, are run once on a
// small problem against the host's answer before they are used; what fails is quarantined on this device and
// driver.
//
// Knows: how to run one Program alone, the file of verdicts, the variables RT_VULKAN_SELF_TEST and
// RT_VULKAN_QUARANTINE. Must not know: what shaders compute; their callers bring problem and answer.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/vulkan/program.h"
#include "backends/vulkan/verdicts.h"

namespace rt::vulkan {

/// A small problem for one pipeline: f32 operands, and what the host says about the f32 result.
struct SelfTest {
  std::unique_ptr<Program> program;
  std::vector<std::vector<float>> inputs;
  std::vector<float> expected;
};

class SelfTests {
 public:
  /// Variables in the environment are read here: RT_VULKAN_SELF_TEST=0 leaves all tests out, and the verdicts
  /// of earlier ones; RT_VULKAN_QUARANTINE=PATTERN,... quarantines shaders by hand, by name as a shell's
  /// patterns do (gemm_*_subgroup). An error if a pattern fits no shader.
  static Result<std::unique_ptr<SelfTests>> open(VulkanDevice& device, std::string file,
                                                 std::string_view key);

  /// Ok when the pipeline may be used; Unsupported, with the reason, when it is in quarantine, which the
  /// device's info then lists too. constants: those that change the code. The first call for a pipeline makes
  /// and runs the test. One that cannot be run for another reason (no memory) is not held against the
  /// pipeline.
  Status trusted(Shader shader, const std::vector<uint32_t>& constants,
                 const std::function<SelfTest()>& make);

 private:
  SelfTests(VulkanDevice& device, std::string file, std::string_view key)
      : device_(device), verdicts_(std::move(file), key) {}

  VulkanDevice& device_;
  Verdicts verdicts_;
  std::set<std::string> noted_;
  bool enabled_ = true;
  std::vector<std::string> by_hand_;
};

/// Numbers in memory of a type of 16 bits, as the words that a SelfTest takes; unchanged for f32.
std::vector<float> stored_as(DType dtype, const std::vector<float>& numbers);

/// Small whole numbers, so that sums of products are exact; different ones for different seeds.
std::vector<float> whole_numbers(int64_t count, int64_t seed);

}  // namespace rt::vulkan
