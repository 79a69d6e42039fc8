// A program of librt that does a part of the work in a process of its own, and is followed while it runs.
//
// Knows: processes and pipes. Must not know: what the program prints.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/data/file.h"
#include "tools/rtbench/study/budget.h"
#include "tools/rtbench/study/runner.h"

namespace librt::bench {

/// A budget may be exceeded by this share of what a part was given, and by this many seconds: what has begun
/// ends in that time, or is ended.
inline constexpr double kOverrun = 0.2, kOverrunSeconds = 1;

inline double grace_of(double seconds) noexcept {
  return kOverrunSeconds + kOverrun * (seconds > 0 ? seconds : 0);
}

/// How long a child may take, in seconds from its start.
struct ChildTime {
  double seconds = 1e9;         ///< then it gets SIGTERM,
  double without_result = 1e9;  ///< but not before this while it has no result; not less than `seconds`
  double grace = 1e9;           ///< after SIGTERM; then it gets SIGKILL
};

class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// A child that still runs is killed.
  ~Child();

  /// arguments[0]: a path, or a name that is looked up in PATH. Returns what is wrong; empty: it runs.
  std::string start(const std::vector<std::string>& arguments);
  /// Hands over the lines of its stdout until it ends. When its time is over, or once `stop` is requested, it
  /// gets SIGTERM, at which rttrain ends after its step, and after the time's grace SIGKILL. Returns its exit
  /// code, kBadMachine after a signal. has_result: whether it has done something that counts; empty: it has.
  int follow(const ChildTime& time, const StopRequest& stop,
             const std::function<void(const std::string&)>& on_line,
             const std::function<bool()>& has_result = {});
  /// All of its stderr so far.
  const std::string& errors() const noexcept { return errors_; }
  /// It got SIGTERM, or SIGKILL.
  bool was_ended() const noexcept { return asked_; }

 private:
  int wait();

  pid_t child_ = -1;
  tools::Descriptor output_, error_;
  std::string errors_;
  bool asked_ = false, killed_ = false;
};

/// The last line of `errors` that begins with "NAME: ", without that; else that it failed, with the first
/// line in words, which may be a launcher's (mpirun run as root), or without a message.
std::string last_error(const std::string& name, const std::string& errors);

/// The path under which a child reads a file of this process: a model in memory is a file descriptor, which
/// has another name there.
std::string path_for_child(const std::string& path);

}  // namespace librt::bench
