// The threads that run parallel loops and oneDNN's primitives.
//
// Knows: threads, waiting, how parts of a region are handed out. Must not know: what a region computes.
//
// A region is a function that is called once for each of its parts, which may meet at barriers. Part i
// belongs to thread i, so that values stay in its caches from loop to loop; but a thread that has finished
// takes parts that others have not begun. A thread that the OS has descheduled thus delays the parts it has
// begun, not the region. oneDNN's primitives are such regions (openmp.cpp), cut for a fixed number of
// threads.
//
// Threads wait for each other by spinning for a while, then asleep. A thread that finds itself descheduled
// while it spins knows that the machine has other work: its team spins shortly then, for spinning takes a
// core from the very thread that is being waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/core/float_environment.h"
#include "runtime/core/thread_limit.h"
#include "runtime/include/rt/hooks.h"

namespace librt::cpu {

/// The calling thread's place in a region. Outside of one: part 0 of 1.
struct Place {
  int part = 0, parts = 1;
  bool inside = false;
};

/// Where a team's threads may run, and how urgent they are.
struct Placement {
  std::vector<int> cpus;  ///< empty: anywhere
  int priority = 0;       ///< nice value; 0: that of the thread that makes the team
};

/// The OS refused a placement; what() says why.
struct PlacementError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Team;

/// The threads that a ThreadScope uses.
struct Workers {
  Workers(int count) noexcept : threads(count) {}  // NOLINT: implicit on purpose
  Workers(int count, const Placement* place) noexcept : threads(count), placement(place) {}
  explicit Workers(Team& application) noexcept;
  int threads;
  const Placement* placement = nullptr;  ///< of Team::placement()
  Team* pool = nullptr;                  ///< the application's threads; null: librt's own
};

/// How long something is avoided that cost time because a thread was without a core: in proportion to what it
/// cost, so that a rare disturbance costs little more than itself, and twice as long each time that it is
/// tried in vain soon after, as beside other programs.
class Avoidance {
 public:
  bool lasts() const noexcept;
  void begin(int64_t cost, int64_t longest) noexcept;  ///< ns

 private:
  std::atomic<int64_t> until_{0};  ///< nanoseconds of the steady clock
  std::atomic<int64_t> period_{0};
};

class Team {
 public:
  using Work = void (*)(void* context);

  /// Sees to it that a team of this size exists, so that acquire() finds one. Throws std::system_error when
  /// the OS refuses a thread, std::bad_alloc.
  /// PlacementError.
  static void reserve(const Workers& workers);
  /// A team that no other thread uses, until release(). Waits for one where none is free and none can be
  /// created.
  static Team& acquire(const Workers& workers) noexcept;
  /// The one object for this placement, which lives as long as the process; null for that of any thread.
  static const Placement* placement(Placement wanted);
  /// The application's threads; used by one thread at a time.
  explicit Team(const rt_parallel& pool);
  /// Of the application's threads: whether they did not run each part once, since this was asked last.
  bool was_misused() noexcept { return misused_.exchange(false, std::memory_order_relaxed); }
  void release() noexcept { used_.store(false, std::memory_order_release); }

  /// Calls work(context) for parts 0 to parts - 1; place() says which. At most size() parts run at a
  /// time, and `parts` is reduced to that. In a region: runs as a single part on this thread. work must not
  /// throw.
  void run(int parts, Work work, void* context) noexcept;
  /// In a region: the next of parts * per_part pieces of work that the calling part is to do, or -1 when all
  /// have been begun. Part i begins with its own pieces, i * per_part and on. `per_part` is the same in all
  /// calls of a region, at most kMostPieces.
  int64_t take(int per_part) noexcept;
  static constexpr int kMostPieces = 4;
  /// Waits until all parts of the region have arrived. To be called by all of them. How many ns that took
  /// longer than threads spin, where it is over 0.5 ms, else 0: where steps between barriers are shorter,
  /// another part's thread has no core.
  int64_t barrier() noexcept;

  int size() const noexcept { return size_; }
  Workers workers() noexcept { return pool_.run != nullptr ? Workers(*this) : Workers(size_, placement_); }
  /// Whether these workers are threads of librt like this team's.
  bool serves(const Workers& workers) const noexcept {
    return size_ == workers.threads && placement_ == workers.placement && pool_.run == nullptr;
  }
  /// Whether a barrier was lately late: regions with many barriers better run as one part.
  bool busy() const noexcept { return alone_.lasts(); }
  /// To be called when a barrier was late by so many ns.
  void set_busy(int64_t late) noexcept;
  static const Place& place() noexcept;

  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  struct alignas(64) Claim {
    std::atomic<uint64_t> region{0};  ///< the last region in which the part was begun
    std::atomic<uint64_t> taken{
        0};  ///< number of a region << kPieceBits | pieces of this part's share begun in it
  };

  Team(int threads, const Placement* placement);
  static Team& acquire_or_make(const Workers& workers);
  void place(std::thread& thread) const;
  void run_on_pool(int parts) noexcept;
  void work_for_pool(int part) noexcept;
  void stop() noexcept;
  void serve(int index) noexcept;
  void work_on(uint64_t state, int own) noexcept;
  bool claim(uint64_t region, int part) noexcept;
  template <class Ready>
  bool spin(const Ready& ready, int64_t limit) noexcept;
  /// The time to spin between regions.
  int64_t spin_limit() const noexcept;

  static constexpr int kPartBits = 16, kPieceBits = 8;
  static_assert(kMostThreads < 1 << kPartBits && kMostPieces < 1 << kPieceBits);
  const int size_;
  const Placement* const placement_ = nullptr;
  const rt_parallel pool_ = {};  ///< run null: librt's own threads
  std::atomic<bool> misused_{false};
  std::atomic<bool> used_{false};

  // A region: written by the caller, read by those who claimed a part.
  Work work_ = nullptr;
  void* context_ = nullptr;
  std::unique_ptr<Claim[]> claims_;
  alignas(64) std::atomic<uint64_t> state_{0};     ///< number of the region << kPartBits | its parts
  alignas(64) std::atomic<int32_t> unclaimed_{0};  ///< a hint: parts that nobody has begun
  alignas(64) std::atomic<int32_t> unfinished_{0};
  alignas(64) std::atomic<int32_t> arrived_{0};  ///< at the barrier
  std::atomic<uint32_t> generation_{0};          ///< of the barrier
  alignas(64) std::atomic<uint32_t> calls_{0};   ///< changes when sleeping threads are called
  std::atomic<int32_t> asleep_{0};
  Avoidance short_spins_;  ///< of long spins
  Avoidance alone_;        ///< of set_busy()
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

/// The team of the calling thread's innermost ThreadScope, or null.
Team* current_team() noexcept;
/// What a ThreadScope with the same threads takes: one in a region, and outside of every ThreadScope.
Workers current_workers() noexcept;

/// While it lives, parallel loops and oneDNN's primitives of the calling thread use these threads, in the
/// default floating point environment.
class ThreadScope {
 public:
  explicit ThreadScope(const Workers& workers) noexcept;
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  [[maybe_unused]] const DefaultFloatEnvironment floats_;
  Team* before_;
  Team* acquired_ = nullptr;
  int foreign_before_ = 0;  ///< threads of the application's OpenMP runtime, to be restored
};

}  // namespace librt::cpu
