// Reproducible values for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace librt::test {

/// Between -0.5 and 0.5, by a linear congruential generator.
inline std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 24) - 0.5f;
  }
  return values;
}

}  // namespace librt::test
