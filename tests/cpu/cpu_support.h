// The CPU device shared by the tests of this directory, and helpers for inputs.
#pragma once

#include <cstdlib>

#include "backends/cpu/device/open.h"
#include "tests/support/run_node.h"

namespace librt::test {

inline Device& cpu_device() {
  static DevicePtr device = [] {
    auto opened = cpu::open({});
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status().message();
      std::abort();
    }
    return std::move(opened).value();
  }();
  return *device;
}

inline ops::HostTensor f32(const Shape& shape, double low = -2, double high = 2, uint64_t seed = 1) {
  return random_tensor({DType::F32, shape}, low, high, seed);
}
inline ops::HostTensor ramp(DType dtype, const Shape& shape, double low, double high, uint64_t seed = 1) {
  return random_tensor({dtype, shape}, low, high, seed);
}

}  // namespace librt::test
