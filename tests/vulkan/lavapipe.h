// Opens Mesa's software device for tests, with validation as a hard error.
//
// Knows: the environment that pins the driver. Must not know: kernels.
#pragma once

#include "runtime/backend/backend.h"

namespace librt::test {

/// The device, opened once per program; null when it is absent, with the cause in `reason`.
Device* lavapipe(std::string& reason);

}  // namespace librt::test

/// At the start of a test: defines the reference `device`, or skips with the reason.
#define RT_LAVAPIPE(device)                                          \
  std::string rt_reason;                                             \
  ::librt::Device* rt_lavapipe = ::librt::test::lavapipe(rt_reason); \
  if (rt_lavapipe == nullptr) GTEST_SKIP() << rt_reason;             \
  ::librt::Device& device = *rt_lavapipe
