// Exit codes of the programs; the same in every --help.
#pragma once

#include <cstdio>
#include <string>

#include "tools/cli/terminal.h"

namespace librt::tools {

enum ExitCode : int {
  kFine = 0,
  kDifferent = 1,     ///< compared, and not equal
  kBadInput = 2,      ///< an invalid file, option or shape
  kBadMachine = 3,    ///< no such device, no memory, a driver or disk error
  kInterrupted = 130  ///< by Ctrl-C: 128 + SIGINT, as shells count
};

inline constexpr const char* kExitCodeHelp =
    "Exit codes: 0 success, 1 outputs differ, 2 invalid input, 3 machine error (no such device, no memory, a "
    "full disk), 130 interrupted.";

/// Code is librt::Code of either header: the values are the same.
template <class Code>
int exit_code_of(Code code) noexcept {
  switch (static_cast<int>(code)) {
    case 0: return kFine;
    case 5:   // OutOfMemory
    case 6:   // Device
    case 8:   // Internal
    case 11:  // DeviceLost
      return kBadMachine;
    case 9: return kInterrupted;  // Cancelled
    default: return kBadInput;
  }
}

/// Prints "program: message" to stderr; returns the exit code.
template <class Status>
int report_failure(const char* program, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", program, printable(status.message(), Lines::Several).c_str());
  return exit_code_of(status.code());
}

}  // namespace librt::tools
