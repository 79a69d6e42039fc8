// main() of tests that are run once for each backend.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "runtime/backend/registry.h"

namespace librt::test {

/// Exit code of a test that does not apply on this machine, as CTest knows it.
inline constexpr int kSkipped = 77;

inline std::string backend_name;  ///< the first argument; "reference" without one
inline bool validation = false;   ///< whether the second argument is --validation

/// Sets backend_name and validation. The backend's device; null, with the reason on stdout, where there is
/// none.
inline DevicePtr open_backend(int argc, char** argv) {
  backend_name = argc > 1 ? argv[1] : "reference";
  validation = argc > 2 && std::string_view(argv[2]) == "--validation";
  auto found = open_device(backend_name, {});
  if (found.ok()) return std::move(*found);
  std::printf("skipped: %s\n", found.status().message().c_str());
  return nullptr;
}

/// The exit code of a program of GoogleTest. prepare(Device&) comes before the tests, with GoogleTest's own
/// arguments removed from argc and argv; the device stays open until they end.
template <typename Prepare>
int run_backend_tests(int& argc, char** argv, Prepare prepare) {
  testing::InitGoogleTest(&argc, argv);
  const DevicePtr device = open_backend(argc, argv);
  if (device == nullptr) return kSkipped;
  prepare(*device);
  return RUN_ALL_TESTS();
}

inline int run_backend_tests(int& argc, char** argv) {
  return run_backend_tests(argc, argv, [](Device&) {});
}

}  // namespace librt::test
