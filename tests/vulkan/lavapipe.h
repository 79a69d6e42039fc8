// Opens Mesa's software device for tests, with validation as a hard error.
//
// Knows: the environment that pins the driver. Must not know: kernels.
#pragma once

#include "runtime/backend/backend.h"

namespace rt::test {

/// The device, opened once per program; null when it is absent, with the cause in `reason`.
Device* lavapipe(std::string& reason);

}  // namespace rt::test

/// At the start of a test: defines the reference `device`, or skips with the reason.
#define RT_LAVAPIPE(device)                                    \
  std::string rt_reason;                                       \
  ::rt::Device* rt_lavapipe = ::rt::test::lavapipe(rt_reason); \
  if (rt_lavapipe == nullptr) GTEST_SKIP() << rt_reason;       \
  ::rt::Device& device = *rt_lavapipe
