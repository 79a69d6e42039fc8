// Random choices of mutators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>

namespace librt::fuzz {

/// Deterministic for a seed on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// In [0, limit); 0 for limit 0.
  size_t below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(engine_() % limit); }
  bool one_in(size_t count) { return below(count) == 0; }
  template <class List>
  auto& pick(List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Numbers at which integer arithmetic, extents and indices go wrong.
inline constexpr int64_t kNumbers[] = {0,
                                       1,
                                       -1,
                                       2,
                                       -2,
                                       3,
                                       4,
                                       7,
                                       8,
                                       16,
                                       255,
                                       256,
                                       -128,
                                       65536,
                                       -65536,
                                       1'000'007,
                                       int64_t{1} << 31,
                                       (int64_t{1} << 31) - 1,
                                       -(int64_t{1} << 31),
                                       int64_t{1} << 32,
                                       1 - (int64_t{1} << 32),
                                       int64_t{1} << 40,
                                       INT64_MAX,
                                       INT64_MIN,
                                       INT64_MAX - 1,
                                       INT64_MIN + 1};

/// Another number: near the old one, small, or one of kNumbers.
inline int64_t changed(int64_t number, Random& random) {
  const auto wrapping = static_cast<uint64_t>(number);
  switch (random.below(6)) {
    case 0: return static_cast<int64_t>(wrapping + 1);
    case 1: return static_cast<int64_t>(wrapping - 1);
    case 2: return static_cast<int64_t>(0 - wrapping);
    case 3: return static_cast<int64_t>(wrapping * 2);
    case 4: return static_cast<int64_t>(random.below(9));
    default: return random.pick(kNumbers);
  }
}

}  // namespace librt::fuzz
