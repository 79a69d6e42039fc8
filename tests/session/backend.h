// The backend that a test program is run on.
#pragma once

#include <cstdio>
#include <string>

#include "runtime/backend/registry.h"

namespace librt::test {

/// Exit code of a test that does not apply on this machine, as CTest knows it.
inline constexpr int kSkipped = 77;

/// name: argv[1], or "reference" without one. Its device; null, with the reason on stdout, where there is
/// none.
inline DevicePtr open_backend(int argc, char** argv, std::string& name) {
  name = argc > 1 ? argv[1] : "reference";
  auto found = open_device(name, {});
  if (found.ok()) return std::move(*found);
  std::printf("skipped: %s\n", found.status().message().c_str());
  return nullptr;
}

}  // namespace librt::test
