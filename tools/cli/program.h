// What every program's main() does around its work: standard streams, signals, exceptions, a full disk.
#pragma once

namespace librt::tools {

/// Calls work(argc, argv) and returns its exit code. An exception is a message and an exit code: no memory is
/// kBadMachine, as is one that nobody foresaw, and a mapped file that loses its bytes (SIGBUS). Results that
/// could not be written (a full disk) are kBadMachine where the work itself succeeded, or found a difference.
int run_program(const char* name, int argc, char** argv, int (*work)(int argc, char** argv));

}  // namespace librt::tools
