#include "runtime/session/memory/planner.h"

#include <algorithm>

#include "runtime/core/order.h"

namespace librt {

namespace {

struct Placed {
  size_t offset;
  size_t bytes;
  Lifetime life;
};

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The tightest gap of at least `bytes` between the ranges (sorted by offset) that are live together with
/// `life`.
size_t find_gap(const std::vector<Placed>& placed, const Lifetime& life, size_t bytes) {
  size_t best = ~size_t{0}, best_gap = ~size_t{0}, free_from = 0;
  for (const Placed& other : placed) {
    if (!overlap(life, other.life)) continue;
    if (other.offset > free_from) {
      const size_t gap = other.offset - free_from;
      if (gap >= bytes && gap < best_gap) {
        best = free_from;
        best_gap = gap;
      }
    }
    free_from = std::max(free_from, other.offset + other.bytes);
  }
  return best != ~size_t{0} ? best : free_from;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, size_t alignment) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  const std::vector<size_t> order = sorted_order(lifetimes.size(), [&](size_t a, size_t b) {
    if (lifetimes[a].bytes != lifetimes[b].bytes) return lifetimes[a].bytes > lifetimes[b].bytes;
    return lifetimes[a].first < lifetimes[b].first;
  });
  std::vector<Placed> placed;
  placed.reserve(lifetimes.size());
  for (const size_t index : order) {
    const Lifetime& life = lifetimes[index];
    if (life.bytes == 0) continue;
    const size_t bytes = (life.bytes + alignment - 1) & ~(alignment - 1);
    const size_t offset = find_gap(placed, life, bytes);
    plan.offsets[index] = offset;
    plan.peak = std::max(plan.peak, offset + bytes);
    plan.naive += bytes;
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [](size_t value, const Placed& p) { return value < p.offset; });
    placed.insert(position, {offset, bytes, life});
  }
  return plan;
}

}  // namespace librt
