#include "tools/compiler/shape/probe_choice.h"

#include <algorithm>

#include "tools/compiler/shape/primes.h"

namespace librt::compiler {
namespace {

std::array<int64_t, kProbes> choose(int strategy, int symbol, std::optional<AxisPosition> at) {
  // A data-dependent extent is unrelated to all others: primes that no input has.
  constexpr int kInputPrimes = 64;
  if (!at) return prime_pair(kInputPrimes + symbol, 1);
  const AxisPosition position = *at;
  const bool first = position.axis == 0;
  const auto one = std::array<int64_t, kProbes>{1, 1};
  switch (strategy) {
    case kFree:
    case kDistinct: return prime_pair(symbol, position.rank >= 4 && !first ? 64 : 1);
    case kDistinctSmall: return prime_pair(symbol, 1);
    case kDistinctLarge: return prime_pair(symbol, first ? 1 : 64);
    case kByAxis: return prime_pair(position.axis, position.rank >= 4 && !first ? 64 : 1);
    case kByAxisLarge: return prime_pair(position.axis, first ? 1 : 64);
    case kHuge: return prime_pair(symbol, 1024);
    case kSquare: return first ? prime_pair(0, 1) : prime_pair(1, 64);
    case kAllEqual: return prime_pair(0, 1);
    case kOneSample: return first ? one : prime_pair(symbol + 1, position.rank >= 4 ? 64 : 1);
    case kOneSampleLarge: return first ? one : prime_pair(position.axis, 64);
    default: return one;
  }
}

/// Brings a pair within the symbol's upper bound, keeping it a multiple of a power of two if it was.
std::array<int64_t, kProbes> within(std::array<int64_t, kProbes> pair, int64_t bound) {
  if (bound <= 0) return pair;
  while (std::max(pair[0], pair[1]) > bound && pair[0] % 2 == 0 && pair[1] % 2 == 0) {
    pair[0] /= 2;
    pair[1] /= 2;
  }
  if (std::max(pair[0], pair[1]) > bound) pair = {std::max<int64_t>(bound - 1, 1), bound};
  return pair;
}

}  // namespace

std::array<int64_t, kProbes> choose_probes(const Graph& graph, int strategy, int32_t symbol,
                                           std::optional<AxisPosition> position) {
  const auto index = static_cast<size_t>(symbol);
  if (index >= graph.symbols.size()) return choose(strategy, symbol, std::nullopt);
  return within(choose(strategy, symbol, position), graph.symbols[index].bound);
}

}  // namespace librt::compiler
