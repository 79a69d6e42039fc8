// Extents for probes: pairs of primes, no two with the same ratio.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace librt::compiler {

inline int64_t nth_prime(int n) {
  static thread_local std::vector<int64_t> primes = {2};
  while (primes.size() <= static_cast<size_t>(n)) {
    int64_t candidate = primes.back() + 1;
    const auto is_prime = [&] {
      const auto large = [&](int64_t prime) { return prime * prime > candidate || candidate % prime == 0; };
      const auto found = std::find_if(primes.begin(), primes.end(), large);
      return found == primes.end() || candidate % *found != 0;
    };
    while (!is_prime()) ++candidate;
    primes.push_back(candidate);
  }
  return primes[static_cast<size_t>(n)];
}

/// Pairs (2,3), (5,7), (11,13)... times `unit`.
inline std::array<int64_t, 2> prime_pair(int index, int64_t unit) {
  return {unit * nth_prime(2 * index), unit * nth_prime(2 * index + 1)};
}

}  // namespace librt::compiler
