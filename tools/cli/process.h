// Other programs as child processes, and folders for the files that are exchanged with them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace librt::tools {

/// Descriptors that a child gets as its standard streams; -1: it inherits this program's.
struct Streams {
  int input = -1, output = -1, error = -1;
};

/// Starts arguments[0], a path or a name that is looked up in PATH. With `own_group`, Ctrl-C does not reach
/// it. Returns 0, or errno when it could not be started.
int start_process(pid_t& child, std::vector<std::string> arguments, const Streams& streams,
                  bool own_group = false);

/// Waits for the end of a child. Its exit code, or `otherwise` when it has none: after a signal.
int wait_for_process(pid_t child, int otherwise);

/// A folder that nobody else can read, deleted with what it holds.
class TemporaryFolder {
 public:
  /// `name` begins the folder's name. path() is empty when it could not be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace librt::tools
