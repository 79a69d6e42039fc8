// Results of self-tests on a device, kept in a file between processes.
//
// Knows: what is in the file. Must not know: Vulkan, what is tested; how files of the cache folder are opened
// (runtime/core/cache_file.h). A line is appended when a test begins and when it ends, while the test's
// process holds a lock: a test that began and has no end when the lock is free ended with its process. That
// may have been the user's doing; the second time it counts as failed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/cache_file.h"

namespace librt::vulkan {

class SelfTestResults {
 public:
  /// path: empty for none. `key` identifies device, driver and build: lines of another key are dropped.
  SelfTestResults(std::string path, std::string_view key);

  /// While it exists, other processes wait with their tests.
  class Test {
   public:
    ~Test();
    Test(const Test&) = delete;
    Test& operator=(const Test&) = delete;
    /// A verdict that is already known, also from other processes: empty for passed, else the failure. Then
    /// there is nothing to run.
    const std::optional<std::string>& known() const noexcept { return known_; }
    /// The result: empty for passed, else the failure. Without it, the test counts as never begun.
    void end(std::string_view reason);

   private:
    friend class SelfTestResults;
    Test(SelfTestResults& results, std::string name);
    SelfTestResults& results_;
    std::string name_;
    std::string dropped_;  ///< the line for a test without a result
    CacheFile file_;       ///< holds the lock
    std::optional<std::string> known_;
  };
  /// A test of `name`, which holds neither tabs nor line breaks.
  Test begin(std::string name) { return Test(*this, std::move(name)); }

  /// Empty for none: also once the file could not be used.
  const std::string& path() const noexcept { return path_; }
  /// Why the file is not used any more; ok if it is.
  const Status& problem() const noexcept { return problem_; }

 private:
  void read(int file);

  std::string path_;
  Status problem_;
  std::string header_;
  std::map<std::string, std::string> results_;  ///< by name: empty for passed, else the failure
};

}  // namespace librt::vulkan
