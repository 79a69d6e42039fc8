#include "tools/cli/process.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace librt::tools {

int start_process(pid_t& child, std::vector<std::string> arguments, const Streams& streams, bool own_group) {
  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions); error != 0) return error;
  posix_spawnattr_t attributes;
  if (const int error = posix_spawnattr_init(&attributes); error != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }
  if (streams.input >= 0) posix_spawn_file_actions_adddup2(&actions, streams.input, STDIN_FILENO);
  if (streams.output >= 0) posix_spawn_file_actions_adddup2(&actions, streams.output, STDOUT_FILENO);
  if (streams.error >= 0) posix_spawn_file_actions_adddup2(&actions, streams.error, STDERR_FILENO);
  if (own_group) {
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int error = posix_spawnp(&child, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

int wait_for_process(pid_t child, int otherwise) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return otherwise;
  return WIFEXITED(status) ? WEXITSTATUS(status) : otherwise;
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / (name + "-XXXXXX")).string();
  if (!error && mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace librt::tools
