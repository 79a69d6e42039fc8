// Parallel loops over the OpenMP pool that oneDNN uses too.
//
// Knows: how to split a range among threads. A loop runs on one thread or on all of the device's: libgomp
// ends its surplus threads when teams of changing size follow each other. The thread count is a property of
// the calling thread (ThreadScope), as in OpenMP. libgomp's workers spin while they wait for the next loop:
// where the cores are shared with other programs, GOMP_SPINCOUNT=4000 in the environment makes them yield
// sooner (nets run 2.5 to 4 times faster alongside a full build); this project's programs set it.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace librt::cpu {

/// While it lives, parallel loops and oneDNN primitives of the calling thread use `threads` threads.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) noexcept : before_(omp_get_max_threads()), now_(threads) {
    if (now_ != before_) omp_set_num_threads(now_);
  }
  ~ThreadScope() {
    if (now_ != before_) omp_set_num_threads(before_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_, now_;
};

inline int max_threads() noexcept {
  return omp_get_max_threads();
}

struct Range {
  int64_t begin, end;
};

/// Part `index` of `parts` of [0, count), cut at multiples of `unit`.
inline Range part_of(int64_t count, int index, int parts, int64_t unit = 1) noexcept {
  const int64_t units = (count + unit - 1) / unit;
  const int64_t begin = units * index / parts * unit;
  const int64_t end = units * (index + 1) / parts * unit;
  return {std::min(begin, count), std::min(end, count)};
}

/// Work below this many elementary operations is not worth waking other threads (fork and join take about 1
/// us).
inline constexpr int64_t kSerialWork = 16384;

/// Calls body(begin, end) for disjoint ranges that cover [0, count), cut at multiples of `unit`. `work` is
/// the number of elementary operations of one item. body must not throw.
template <class Body>
void parallel_for(int64_t count, int64_t work, int64_t unit, const Body& body) noexcept {
  if (count <= 0) return;
  const int threads = max_threads();
  if (threads <= 1 || count <= unit || count * std::max<int64_t>(work, 1) < kSerialWork) {
    body(int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const Range range = part_of(count, omp_get_thread_num(), omp_get_num_threads(), unit);
    if (range.begin < range.end) body(range.begin, range.end);
  }
}

/// body(part) for every part in [0, parts), one after another on each thread.
template <class Body>
void parallel_parts(int parts, const Body& body) noexcept {
  if (parts <= 1 || max_threads() <= 1) {
    for (int part = 0; part < parts; ++part) body(part);
    return;
  }
#pragma omp parallel num_threads(max_threads())
  {
    const Range range = part_of(parts, omp_get_thread_num(), omp_get_num_threads());
    for (int64_t part = range.begin; part < range.end; ++part) body(static_cast<int>(part));
  }
}

}  // namespace librt::cpu
