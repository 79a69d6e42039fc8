#include "runtime/session/memory/planner.h"

#include <algorithm>

#include "runtime/core/order.h"

namespace librt {

namespace {

struct Placed {
  uint64_t offset;
  uint64_t bytes;
  Lifetime life;
};

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The ranges that are placed, found by when they are live: a binary tree over all ranges in the order of
/// their first steps. Each node has the step after the last one of the placed ranges below it.
class PlacedRanges {
 public:
  explicit PlacedRanges(std::span<const Lifetime> lifetimes)
      : order_(sorted_order(lifetimes.size(),
                            [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; })),
        positions_(order_.size()),
        placed_(order_.size()) {
    while (leaves_ < order_.size()) leaves_ *= 2;
    ends_.resize(2 * leaves_);
    for (size_t i = 0; i < order_.size(); ++i) positions_[order_[i]] = i;
  }

  void place(size_t index, const Placed& range) {
    placed_[positions_[index]] = range;
    for (size_t node = leaves_ + positions_[index]; node > 0; node /= 2)
      ends_[node] = std::max(ends_[node], uint64_t{range.life.last} + 1);
  }

  /// Those that are live together with `life`, sorted by offset; false where they are too many.
  bool find(const Lifetime& life, std::vector<Placed>& found) {
    found.clear();
    open_.assign(1, 1);
    while (!open_.empty()) {
      const size_t node = open_.back();
      open_.pop_back();
      if (ends_[node] <= life.first) continue;
      if (node < leaves_) {
        open_.push_back(2 * node + 1);
        open_.push_back(2 * node);
        continue;
      }
      const Placed& range = placed_[node - leaves_];
      if (range.life.first > life.last) break;  // and so have all that follow
      if (found.size() == kMostNeighbours) return false;
      found.push_back(range);
    }
    std::vector<Placed> sorted;
    for (const size_t i :
         sorted_order(found.size(), [&](size_t a, size_t b) { return found[a].offset < found[b].offset; }))
      sorted.push_back(found[i]);
    found = std::move(sorted);
    return true;
  }

 private:
  std::vector<size_t> order_;      ///< indices of ranges
  std::vector<size_t> positions_;  ///< by index of a range: where it is in this order
  std::vector<Placed> placed_;     ///< in this order
  std::vector<uint64_t> ends_;     ///< by node of the tree, whose root is 1
  std::vector<size_t> open_;
  size_t leaves_ = 1;
};

/// The tightest gap of at least `bytes` between the ranges (sorted by offset) that are live together with
/// `life`.
uint64_t find_gap(const std::vector<Placed>& placed, const Lifetime& life, uint64_t bytes) {
  constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t best = kNone, best_gap = kNone, free_from = 0;
  for (const Placed& other : placed) {
    if (!overlap(life, other.life)) continue;
    if (other.offset > free_from) {
      const uint64_t gap = other.offset - free_from;
      if (gap >= bytes && gap < best_gap) {
        best = free_from;
        best_gap = gap;
      }
    }
    free_from = std::max(free_from, other.offset + other.bytes);
  }
  return best != kNone ? best : free_from;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  const std::vector<size_t> order = sorted_order(lifetimes.size(), [&](size_t a, size_t b) {
    if (lifetimes[a].bytes != lifetimes[b].bytes) return lifetimes[a].bytes > lifetimes[b].bytes;
    return lifetimes[a].first < lifetimes[b].first;
  });
  const bool many = lifetimes.size() > kManyRanges;
  PlacedRanges ranges(many ? lifetimes : std::span<const Lifetime>());
  std::vector<Placed> placed;  // sorted by offset; of many ranges, the neighbours of the one at hand
  for (const size_t index : order) {
    const Lifetime& life = lifetimes[index];
    if (life.bytes == 0) continue;
    const uint64_t bytes = (life.bytes + alignment - 1) & ~(alignment - 1);
    const bool compared = !many || ranges.find(life, placed);
    const uint64_t offset = compared ? find_gap(placed, life, bytes) : plan.peak;
    plan.offsets[index] = offset;
    plan.peak = std::max(plan.peak, offset + bytes);
    plan.naive += bytes;
    if (many) {
      ranges.place(index, {offset, bytes, life});
      continue;
    }
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [](uint64_t value, const Placed& p) { return value < p.offset; });
    placed.insert(position, {offset, bytes, life});
  }
  return plan;
}

}  // namespace librt
