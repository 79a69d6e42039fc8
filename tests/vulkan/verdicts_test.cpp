// The file of self-test verdicts: what is stored, and what remains when a process ends during a test.
#include "backends/vulkan/self_tests/results.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace librt::vulkan {
namespace {

std::string fresh_path() {
  auto path = std::filesystem::temp_directory_path() / ("verdicts_test_" + std::to_string(getpid()));
  std::filesystem::remove(path);
  return path;
}

std::optional<std::string> stored_result(const std::string& path, std::string_view key,
                                         const std::string& name) {
  SelfTestResults results(path, key);
  return results.begin(name).known();
}

TEST(SelfTestResults, Persist) {
  const std::string path = fresh_path();
  SelfTestResults results(path, "device 1");
  {
    auto test = results.begin("gemm.8");
    EXPECT_FALSE(test.known());
    test.end("");
  }
  {
    auto test = results.begin("gemm.16");
    test.end("gave 3\tfor 2\n");
  }
  EXPECT_EQ(stored_result(path, "device 1", "gemm.8"), "");
  EXPECT_EQ(stored_result(path, "device 1", "gemm.16"), "gave 3 for 2 ");
  EXPECT_EQ(stored_result(path, "device 1", "gemm.4"), std::nullopt);
  // Another driver: all verdicts are discarded.
  EXPECT_EQ(stored_result(path, "device 2", "gemm.16"), std::nullopt);
  EXPECT_EQ(stored_result(path, "device 1", "gemm.16"), std::nullopt);
  std::filesystem::remove(path);
}

TEST(SelfTestResults, UnfinishedTestIsDropped) {
  const std::string path = fresh_path();
  { auto test = SelfTestResults(path, "device").begin("gemm"); }
  EXPECT_EQ(stored_result(path, "device", "gemm"), std::nullopt);
  std::filesystem::remove(path);
}

/// A process that ends while it tests.
void end_during_test(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    SelfTestResults results(path, "device");
    auto test = results.begin("gemm");
    _exit(test.known() ? 1 : 0);  // no destructors run
  }
  int status = 1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
}

// Once may have been the user.
TEST(SelfTestResults, SecondCrashDuringTestIsFailure) {
  const std::string path = fresh_path();
  end_during_test(path);
  EXPECT_EQ(stored_result(path, "device", "gemm"), std::nullopt);  // and dropped without a result
  end_during_test(path);
  EXPECT_EQ(stored_result(path, "device", "gemm"), "the process ended during its self-test, twice");
  EXPECT_EQ(stored_result(path, "device", "conv"), std::nullopt);
  std::filesystem::remove(path);
}

TEST(SelfTestResults, WithoutFile) {
  SelfTestResults results("", "device");
  results.begin("gemm").end("wrong");
  EXPECT_EQ(results.begin("gemm").known(), "wrong");
}

}  // namespace
}  // namespace librt::vulkan
