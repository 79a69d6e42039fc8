// Trust in a driver: pipelines that drivers are known to miscompile, or to crash on, are run once on a small
// problem and compared with the host's result before they are used; those that fail are quarantined on this
// device and driver.
//
// Knows: how to run one Program alone, the file of verdicts, the variables RT_VULKAN_SELF_TEST and
// RT_VULKAN_QUARANTINE. Must not know: what shaders compute; callers provide problem and expected result.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/vulkan/dispatch/program.h"
#include "backends/vulkan/self_tests/results.h"

namespace librt::vulkan {

/// A small problem for one pipeline: f32 operands, and the f32 result expected by the host.
struct SelfTest {
  std::unique_ptr<Program> program;
  std::vector<std::vector<float>> inputs;
  std::vector<float> expected;
};

class SelfTests {
 public:
  /// Reads environment variables: RT_VULKAN_SELF_TEST=0 skips all tests and ignores earlier verdicts;
  /// RT_VULKAN_QUARANTINE=PATTERN,... quarantines shaders by hand, by name with shell wildcards
  /// (gemm_*_subgroup). An error if a pattern matches no shader.
  static Result<std::unique_ptr<SelfTests>> open(VulkanDevice& device, std::string file,
                                                 std::string_view key);

  /// Ok if the pipeline may be used; Unsupported, with the reason, if it is in quarantine, which the device's
  /// info then lists too. constants: those that change the code. The first call for a pipeline makes and runs
  /// the test; it must not call this function, which waits for the test that is under way. A test that cannot
  /// run for another reason (no memory) does not count as failed.
  Status trusted(Shader shader, const std::vector<uint32_t>& constants,
                 const std::function<SelfTest()>& make);

 private:
  SelfTests(VulkanDevice& device, std::string file, std::string_view key)
      : device_(device), results_(std::move(file), key) {}

  VulkanDevice& device_;
  SelfTestResults results_;
  std::set<std::string> noted_;
  bool enabled_ = true;
  std::vector<std::string> excluded_;
};

/// Values stored as a 16-bit type, as the words that a SelfTest takes; unchanged for f32.
std::vector<float> stored_as(DType dtype, const std::vector<float>& values);

/// Small integers, so that sums of products are exact; different ones for different seeds.
std::vector<float> small_integers(int64_t count, int64_t seed);

}  // namespace librt::vulkan
