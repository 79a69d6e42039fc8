// RT_TEST_FAULT=N:KIND in the environment: the Nth call (from 1) of a simulated device's driver fails.
//
// Knows: the variable and a count of calls. Must not know: which device, what a kind means.
#pragma once

#include <cstdlib>
#include <string>

namespace librt::test {

/// Counts a call. Its KIND if it is to fail, else "". Counting starts again when the variable changes;
/// RT_TEST_FAULT_MET is set in the environment when the call is reached. Not thread-safe. counts(KIND):
/// whether this call counts.
template <class Counts>
std::string device_fault(const Counts& counts) {
  static std::string current;
  static long calls = 0;
  const char* value = std::getenv("RT_TEST_FAULT");
  if (current != (value != nullptr ? value : "")) {
    current = value != nullptr ? value : "";
    calls = 0;
  }
  if (value == nullptr) return {};
  char* end = nullptr;
  const long at = std::strtol(value, &end, 10);
  std::string kind = *end == ':' ? end + 1 : "";
  if (!counts(kind) || ++calls != at) return {};
  setenv("RT_TEST_FAULT_MET", "1", 1);
  return kind;
}

}  // namespace librt::test
