#include "tools/cli/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>

#include "tools/cli/exit_code.h"

namespace librt::tools {
namespace {

const char* g_name = "";

/// A file must not get the number of a closed standard stream: what is printed would be written into it. A
/// stream opened here cannot be written to, so that results for a closed stdout are an error.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int caught(const char* name, int (*work)(int, char**), int argc, char** argv) {
  try {
    return work(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: not enough memory\n", name);
  } catch (const std::length_error&) {
    std::fprintf(stderr, "%s: not enough memory: something larger than all of it was asked for\n", name);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: an error that it did not expect: %s\n", name, error.what());
  } catch (...) {
    std::fprintf(stderr, "%s: an error that it did not expect\n", name);
  }
  return kBadMachine;
}

/// For a bad_alloc that a noexcept function cannot return, such as the destructor of nlohmann's JSON, which
/// allocates.
[[noreturn]] void end() {
  const char* reason = "an error that could not be returned";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      reason = "not enough memory, where that could not be returned";
    } catch (...) {
    }
  }
  std::fprintf(stderr, "%s: %s\n", g_name, reason);
  _exit(kBadMachine);
}

/// A page of a mapped file could not be read: there is nothing to return to.
void mapped_file_lost(int) {
  constexpr char kReason[] =
      ": a file was truncated, or its disk failed, while it was in use; --copy-model reads a model into "
      "memory\n";
  (void)!write(STDERR_FILENO, g_name, std::strlen(g_name));
  (void)!write(STDERR_FILENO, kReason, sizeof kReason - 1);
  _exit(kBadMachine);
}

}  // namespace

int run_program(const char* name, int argc, char** argv, int (*work)(int argc, char** argv)) {
  g_name = name;
  std::set_terminate(end);
  occupy_standard_streams();
  // A file above the limit (ulimit -f) is an error of write(), as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGBUS, mapped_file_lost);
  const int code = caught(name, work, argc, argv);
  std::cout.flush();
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && std::ferror(stdout) == 0 && std::cout.good()) return code;
  std::fprintf(stderr, "%s: the results cannot be written to stdout%s%s\n", name, flushed ? "" : ": ",
               flushed ? "" : std::strerror(error));
  return code == kBadInput ? code : kBadMachine;
}

}  // namespace librt::tools
