// The file of self-test verdicts: what is stored, and what remains when a process ends during a test.
#include "backends/vulkan/verdicts.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace rt::vulkan {
namespace {

std::string fresh_path() {
  const auto path = std::filesystem::temp_directory_path() / ("verdicts_test_" + std::to_string(getpid()));
  std::filesystem::remove(path);
  return path;
}

std::optional<std::string> verdict(const std::string& path, std::string_view key, const std::string& name) {
  Verdicts verdicts(path, key);
  return verdicts.begin(name).known();
}

TEST(Verdicts, AreRemembered) {
  const std::string path = fresh_path();
  Verdicts verdicts(path, "device 1");
  {
    auto test = verdicts.begin("gemm.8");
    EXPECT_FALSE(test.known());
    test.end("");
  }
  {
    auto test = verdicts.begin("gemm.16");
    test.end("gave 3\tfor 2\n");
  }
  EXPECT_EQ(verdict(path, "device 1", "gemm.8"), "");
  EXPECT_EQ(verdict(path, "device 1", "gemm.16"), "gave 3 for 2 ");
  EXPECT_EQ(verdict(path, "device 1", "gemm.4"), std::nullopt);
  // Another driver: all verdicts are discarded.
  EXPECT_EQ(verdict(path, "device 2", "gemm.16"), std::nullopt);
  EXPECT_EQ(verdict(path, "device 1", "gemm.16"), std::nullopt);
  std::filesystem::remove(path);
}

TEST(Verdicts, ATestWithoutEndIsDropped) {
  const std::string path = fresh_path();
  { auto test = Verdicts(path, "device").begin("gemm"); }
  EXPECT_EQ(verdict(path, "device", "gemm"), std::nullopt);
  std::filesystem::remove(path);
}

TEST(Verdicts, AProcessThatEndedDuringItsTestHasFailedIt) {
  const std::string path = fresh_path();
  const pid_t child = fork();
  if (child == 0) {
    Verdicts verdicts(path, "device");
    auto test = verdicts.begin("gemm");
    _exit(test.known() ? 1 : 0);  // no destructors run
  }
  int status = 1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(verdict(path, "device", "gemm"), "the process ended during its self-test");
  std::filesystem::remove(path);
}

TEST(Verdicts, WorkWithoutAFile) {
  Verdicts verdicts("", "device");
  verdicts.begin("gemm").end("wrong");
  EXPECT_EQ(verdicts.begin("gemm").known(), "wrong");
}

}  // namespace
}  // namespace rt::vulkan
