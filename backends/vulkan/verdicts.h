// What self-tests found on a device, kept in a file between processes.
//
// Knows: the file. Must not know: Vulkan, what is tested. A line is appended when a test begins and when it
// ends, under a lock that the test's process holds meanwhile: a test that began and has no end when the lock
// is free has taken its process with it, and counts as failed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rt::vulkan {

class Verdicts {
 public:
  /// path: empty for nowhere. `key` names device, driver and build: lines of another key are dropped.
  Verdicts(std::string path, std::string_view key);

  /// While it lives, other processes wait with their tests.
  class Test {
   public:
    ~Test();
    Test(const Test&) = delete;
    Test& operator=(const Test&) = delete;
    /// What is known already, also from other processes: empty for right, else why not. Then there is nothing
    /// to run.
    const std::optional<std::string>& known() const noexcept { return known_; }
    /// The result: empty for right, else why not. Without it, the test counts as never begun.
    void end(std::string_view reason);

   private:
    friend class Verdicts;
    Test(Verdicts& verdicts, std::string name);
    Verdicts& verdicts_;
    std::string name_;
    int file_ = -1;
    std::optional<std::string> known_;
  };
  /// A test of `name`, which holds neither tabs nor line breaks.
  Test begin(std::string name) { return Test(*this, std::move(name)); }

  const std::string& path() const noexcept { return path_; }

 private:
  void read(int file);

  std::string path_;
  std::string header_;
  std::map<std::string, std::string> verdicts_;  ///< by name: empty for right, else why not
};

}  // namespace rt::vulkan
