// Seeded orders and seeds: pure functions of their arguments, so that a resumed run and any number of threads
// see the same samples.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tools/data/random.h"

namespace rt::train {

/// The order of the samples in an epoch: depends only on (size, seed, epoch). Without shuffling: 0, 1, 2, ...
inline std::vector<uint32_t> epoch_order(size_t size, uint64_t seed, uint64_t epoch, bool shuffle) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  if (!shuffle) return order;
  uint64_t state = seed * 0x9e3779b97f4a7c15u + epoch;
  for (size_t i = size; i > 1; --i)
    std::swap(order[i - 1], order[librt::split_mix(state) % i]);  // Fisher-Yates
  return order;
}

/// The seed of a sample's random stream for its augmentation in one epoch.
inline uint64_t sample_seed(uint64_t seed, uint64_t epoch, uint64_t sample) {
  uint64_t state = seed;
  state = librt::split_mix(state) ^ epoch;
  state = librt::split_mix(state) ^ sample;
  return librt::split_mix(state);
}

}  // namespace rt::train
