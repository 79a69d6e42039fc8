// Parallel loops over the threads of a team, which oneDNN uses too.
//
// Knows: how to split a range among threads. The thread count is a property of the calling thread
// (ThreadScope). What is computed for one item must not depend on where a range is cut.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/device/team.h"

namespace librt::cpu {

/// The number of threads that a region started here has: 1 in a region, and outside of every ThreadScope.
inline int max_threads() noexcept {
  const Team* const team = current_team();
  return team == nullptr || Team::place().inside ? 1 : team->size();
}

/// The calling thread's part of the region it is in, below max_threads(): scratch memory for each part is
/// indexed by it.
inline int thread_index() noexcept {
  return Team::place().part;
}

struct Range {
  int64_t begin, end;
};

/// Part `index` of `parts` of [0, count), cut at multiples of `unit`.
inline Range part_of(int64_t count, int64_t index, int64_t parts, int64_t unit = 1) noexcept {
  const int64_t units = (count + unit - 1) / unit;
  const int64_t begin = units * index / parts * unit;
  const int64_t end = units * (index + 1) / parts * unit;
  return {std::min(begin, count), std::min(end, count)};
}

/// Calls body(part, parts) for each part of a region of at most `parts` parts, which run at the same time and
/// may meet at current_team()->barrier(). body must not throw.
template <class Body>
void parallel_region(int parts, const Body& body) noexcept {
  Team* const team = current_team();
  if (parts <= 1 || team == nullptr) {
    body(0, 1);
    return;
  }
  team->run(
      parts,
      [](void* context) {
        const Place place = Team::place();
        (*static_cast<const Body*>(context))(place.part, place.parts);
      },
      const_cast<Body*>(&body));
}

/// Work below this many elementary operations is not worth waking other threads (fork and join take about 1
/// us).
inline constexpr int64_t kSerialWork = 16384;
/// Shares are not cut into pieces of fewer operations (some 10 us).
inline constexpr int64_t kPieceWork = 65536;

/// Calls body(begin, end) for disjoint ranges that cover [0, count), cut at multiples of `unit`. `work` is
/// the number of elementary operations of one item. body must not throw.
///
/// Each thread begins with its own share, in pieces, and then takes pieces of others: one that was
/// descheduled holds up one piece.
template <class Body>
void parallel_for(int64_t count, int64_t work, int64_t unit, const Body& body) noexcept {
  if (count <= 0) return;
  const int threads = max_threads();
  const int64_t operations = count * std::max<int64_t>(work, 1);
  if (threads <= 1 || count <= unit || operations < kSerialWork) {
    body(int64_t{0}, count);
    return;
  }
  const int per_part =
      static_cast<int>(std::clamp<int64_t>(operations / threads / kPieceWork, 1, Team::kMostPieces));
  parallel_region(threads, [&](int part, int parts) noexcept {
    if (per_part == 1) {
      const Range range = part_of(count, part, parts, unit);
      if (range.begin < range.end) body(range.begin, range.end);
      return;
    }
    for (int64_t piece = 0; (piece = current_team()->take(per_part)) >= 0;) {
      const Range range = part_of(count, piece, int64_t{parts} * per_part, unit);
      if (range.begin < range.end) body(range.begin, range.end);
    }
  });
}

/// body(part) for every part in [0, parts), any number of them on each thread.
template <class Body>
void parallel_parts(int parts, const Body& body) noexcept {
  const int threads = std::min(parts, max_threads());
  if (threads <= 1) {
    for (int part = 0; part < parts; ++part) body(part);
    return;
  }
  parallel_region(threads, [&](int index, int count) noexcept {
    const Range range = part_of(parts, index, count);
    for (int64_t part = range.begin; part < range.end; ++part) body(static_cast<int>(part));
  });
}

}  // namespace librt::cpu
