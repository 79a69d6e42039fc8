#include "backends/cpu/device/team.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>

#include "backends/cpu/device/blocked_signals.h"
#include "backends/cpu/device/openmp.h"
#include "runtime/core/exception.h"
#include "runtime/core/text.h"

namespace librt::cpu {
namespace {

// How long a thread spins before it sleeps, in ns. Sleeping and waking take some 50 us in a virtual machine,
// so that a quiet machine's threads spin over the gaps between the loops of a net. On a busy machine they
// leave the core to whoever has work.
constexpr int64_t kQuietSpin = 200'000;
constexpr int64_t kBusySpin = 10'000;
// Two looks at the clock that lie further apart than this while spinning: the thread was descheduled between
// them.
constexpr int64_t kDescheduled = 500'000;
// What cost time is avoided for so many times that time. On an idle virtual machine a thread was without its
// core for over 0.5 ms three times a second; when each of them counted as a busy machine for 100 ms, an LSTM
// that two threads ran in 2.3 ms took 3.9 ms in half of its runs.
constexpr int64_t kTimesCost = 8;
// Beside another program, a thread that is tried again is without its core within so long.
constexpr int64_t kSoon = 30'000'000;
// At most so long do threads spin shortly; and run regions with many barriers alone, where each late one
// takes the time slices of other programs, some ms.
constexpr int64_t kLongestShortSpins = 100'000'000, kLongestAlone = 3'200'000'000;
constexpr int kLooks = 16;  ///< at a flag, between two looks at the clock

// Others whose pieces a part takes: with more, looking for pieces takes longer than they do.
constexpr int kNeighbours = 8;

thread_local Place t_place;
thread_local Team* t_team = nullptr;
thread_local Team* t_last = nullptr;  ///< the team used last, to find it without a lock

int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// All teams of the process. They live as long as it does: a thread may be asleep in one when the process
/// ends.
struct Teams {
  std::mutex mutex;
  std::vector<Team*> all;
  std::vector<std::unique_ptr<const Placement>> placements;
};

Teams& teams() {
  static Teams* const teams = [] {
    // A forked child has none of the threads: it makes new teams, and the old ones' memory is left alone.
    pthread_atfork([] { cpu::teams().mutex.lock(); }, [] { cpu::teams().mutex.unlock(); },
                   [] {
                     cpu::teams().all.clear();
                     cpu::teams().mutex.unlock();
                     t_last = nullptr;
                   });
    return new Teams;
  }();
  return *teams;
}

}  // namespace

Workers::Workers(Team& application) noexcept : threads(application.size()), pool(&application) {}

Team::Team(const rt_parallel& pool)
    : size_(pool.threads), pool_(pool), claims_(new Claim[static_cast<size_t>(pool.threads)]) {}

Team::Team(int threads, const Placement* placement)
    : size_(threads), placement_(placement), claims_(new Claim[static_cast<size_t>(threads)]) {
  const BlockedSignals inherited;  // signals are for the application's threads
  const int priority = placement_ != nullptr ? placement_->priority : 0;
  std::atomic<int> started{0}, refusal{0};
  threads_.reserve(static_cast<size_t>(threads - 1));
  RT_ATTEMPT {
    for (int i = 1; i < threads; ++i) {
      threads_.emplace_back([this, i, priority, &started, &refusal] {
        if (priority != 0) {
          // On Linux of the calling thread alone.
          if (setpriority(PRIO_PROCESS, 0, priority) != 0) refusal.store(errno);
          started.fetch_add(1);
        }
        serve(i);
      });
      pthread_setname_np(threads_.back().native_handle(), "librt-cpu");
      if (placement_ != nullptr) place(threads_.back());
      // `started` and `refusal` live until the thread has used them.
      while (priority != 0 && started.load() < i) std::this_thread::yield();
      if (const int error = refusal.load(); error != 0)
        RT_THROW(PlacementError(text("priority ", priority, ": ", std::strerror(error))));
    }
  }
  RT_CAUGHT {
    stop();
    RT_RETHROW;
  }
}

void Team::place(std::thread& thread) const {
  if (placement_->cpus.empty()) return;
  cpu_set_t wanted, found;
  CPU_ZERO(&wanted);
  CPU_ZERO(&found);
  for (const int cpu : placement_->cpus) CPU_SET(static_cast<size_t>(cpu), &wanted);
  int error = pthread_setaffinity_np(thread.native_handle(), sizeof wanted, &wanted);
  if (error == 0) error = pthread_getaffinity_np(thread.native_handle(), sizeof found, &found);
  if (error != 0) RT_THROW(PlacementError(text("cpus: ", std::strerror(error))));
  // The OS leaves out what the process must not use, as long as something remains.
  for (const int cpu : placement_->cpus)
    if (!CPU_ISSET(static_cast<size_t>(cpu), &found))
      RT_THROW(PlacementError(text("cpus: this process cannot use CPU ", cpu)));
}

const Placement* Team::placement(Placement wanted) {
  if (wanted.cpus.empty() && wanted.priority == 0) return nullptr;
  std::sort(wanted.cpus.begin(), wanted.cpus.end());
  wanted.cpus.erase(std::unique(wanted.cpus.begin(), wanted.cpus.end()), wanted.cpus.end());
  Teams& all = teams();
  const std::lock_guard lock(all.mutex);
  for (const auto& known : all.placements)
    if (known->cpus == wanted.cpus && known->priority == wanted.priority) return known.get();
  return all.placements.emplace_back(std::make_unique<const Placement>(std::move(wanted))).get();
}

/// Only of a team that could not be completed: others are used until the process ends.
void Team::stop() noexcept {
  ends_.store(true);
  calls_.fetch_add(1);
  calls_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

const Place& Team::place() noexcept {
  return t_place;
}

void Team::reserve(const Workers& workers) {
  acquire_or_make(workers).release();
}

Team& Team::acquire_or_make(const Workers& workers) {
  Team* const last = t_last;
  if (last != nullptr && last->serves(workers) && !last->used_.exchange(true, std::memory_order_acquire))
    return *last;
  Teams& all = teams();
  const std::lock_guard lock(all.mutex);
  for (Team* team : all.all) {
    if (!team->serves(workers) || team->used_.exchange(true, std::memory_order_acquire)) continue;
    t_last = team;
    return *team;
  }
  all.all.reserve(all.all.size() + 1);
  std::unique_ptr<Team> made(new Team(workers.threads, workers.placement));
  made->used_.store(true, std::memory_order_relaxed);
  all.all.push_back(made.get());
  t_last = made.get();
  return *made.release();
}

Team& Team::acquire(const Workers& workers) noexcept {
  for (;;) {
    RT_ATTEMPT {
      return acquire_or_make(workers);
    }
    RT_CAUGHT {
      // reserve() made one: it is in use by another thread.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

bool Avoidance::lasts() const noexcept {
  const int64_t until = until_.load(std::memory_order_relaxed);
  return until != 0 && now() < until;
}

void Avoidance::begin(int64_t cost, int64_t longest) noexcept {
  const int64_t time = now(), before = period_.load(std::memory_order_relaxed);
  const bool again = time < until_.load(std::memory_order_relaxed) + std::max(before, kSoon);
  const int64_t period = std::min(std::max(again ? 2 * before : 0, kTimesCost * cost), longest);
  period_.store(period, std::memory_order_relaxed);
  until_.store(time + period, std::memory_order_relaxed);
}

void Team::set_busy(int64_t late) noexcept {
  alone_.begin(late, kLongestAlone);
}

int64_t Team::spin_limit() const noexcept {
  return short_spins_.lasts() ? kBusySpin : kQuietSpin;
}

/// Whether ready() became true within `limit` ns.
template <class Ready>
bool Team::spin(const Ready& ready, int64_t limit) noexcept {
  const int64_t start = now();
  for (int64_t before = start;;) {
    for (int look = 0; look < kLooks; ++look) {
      if (ready()) return true;
      pause();
    }
    const int64_t after = now();
    if (after - before > kDescheduled) {
      short_spins_.begin(after - before, kLongestShortSpins);
      return ready();
    }
    if (after - start > limit) return false;
    before = after;
  }
}

bool Team::claim(uint64_t region, int part) noexcept {
  std::atomic<uint64_t>& begun = claims_[static_cast<size_t>(part)].region;
  uint64_t last = begun.load(std::memory_order_relaxed);
  if (last >= region || !begun.compare_exchange_strong(last, region, std::memory_order_acq_rel)) return false;
  unclaimed_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

/// Runs the thread's own part of the region, then parts that others have not begun.
void Team::work_on(uint64_t state, int own) noexcept {
  const uint64_t region = state >> kPartBits;
  const int parts = static_cast<int>(state & ((1U << kPartBits) - 1));
  int part = own;
  for (int tried = 0; tried < parts; ++tried, ++part) {
    if (part >= parts) part = 0;
    if (tried > 0 && unclaimed_.load(std::memory_order_relaxed) <= 0) return;
    if (!claim(region, part)) continue;
    // The region lasts until this part is finished.
    t_place = {part, parts, true};
    work_(context_);
    t_place = {};
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

void Team::run(int parts, Work work, void* context) noexcept {
  parts = std::min(parts, size_);
  if (parts <= 1 || t_place.inside) {
    const Place outer = t_place;
    t_place = {0, 1, true};
    work(context);
    t_place = outer;
    return;
  }
  work_ = work;
  context_ = context;
  unclaimed_.store(parts, std::memory_order_relaxed);
  unfinished_.store(parts, std::memory_order_relaxed);
  const uint64_t region = (state_.load(std::memory_order_relaxed) >> kPartBits) + 1;
  const uint64_t state = region << kPartBits | static_cast<uint64_t>(parts);
  state_.store(state, std::memory_order_seq_cst);
  if (pool_.run != nullptr) {
    run_on_pool(parts);
    return;
  }
  if (asleep_.load(std::memory_order_seq_cst) > 0) {
    calls_.fetch_add(1, std::memory_order_seq_cst);
    calls_.notify_all();
  }
  work_on(state, 0);
  while (!spin([this] { return unfinished_.load(std::memory_order_acquire) == 0; }, spin_limit())) {
    const int32_t left = unfinished_.load(std::memory_order_acquire);
    if (left != 0) unfinished_.wait(left, std::memory_order_acquire);
  }
}

/// A call that comes again, or late, finds the part begun, or begins one of the region that runs then.
void Team::work_for_pool(int part) noexcept {
  const uint64_t state = state_.load(std::memory_order_acquire);
  const int parts = static_cast<int>(state & ((1U << kPartBits) - 1));
  if (part < 0 || part >= parts || !claim(state >> kPartBits, part)) {
    misused_.store(true, std::memory_order_relaxed);
    return;
  }
  [[maybe_unused]] const DefaultFloatEnvironment floats;
  const Place outer = t_place;
  Team* const team = t_team;
  t_place = {part, parts, true};
  t_team = this;  // so that oneDNN finds its place
  work_(context_);
  t_team = team;
  t_place = outer;
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
}

void Team::run_on_pool(int parts) noexcept {
  pool_.run(
      pool_.user, parts, [](void* team, int32_t part) { static_cast<Team*>(team)->work_for_pool(part); },
      this);
  if (unfinished_.load(std::memory_order_acquire) == 0) return;
  // What was not run is done here, so that nothing refers to the region when this returns.
  misused_.store(true, std::memory_order_relaxed);
  for (int part = 0; part < parts; ++part)
    if (unclaimed_.load(std::memory_order_relaxed) > 0) work_for_pool(part);
  while (const int32_t left = unfinished_.load(std::memory_order_acquire))
    unfinished_.wait(left, std::memory_order_acquire);
}

int64_t Team::take(int per_part) noexcept {
  const Place here = t_place;
  if (here.parts <= 1) return -1;
  const uint64_t region = state_.load(std::memory_order_relaxed) >> kPartBits;
  const uint64_t none = region << kPieceBits;
  int part = here.part;
  for (int tried = 0; tried <= std::min(kNeighbours, here.parts - 1); ++tried, ++part) {
    if (part >= here.parts) part = 0;
    std::atomic<uint64_t>& taken = claims_[static_cast<size_t>(part)].taken;
    uint64_t before = taken.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t begun = before < none ? 0 : before - none;
      if (begun >= static_cast<uint64_t>(per_part)) break;
      if (taken.compare_exchange_weak(before, none + begun + 1, std::memory_order_relaxed))
        return int64_t{part} * per_part + static_cast<int64_t>(begun);
    }
  }
  return -1;
}

int64_t Team::barrier() noexcept {
  const int parts = t_place.parts;
  if (parts <= 1) return 0;
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_acq_rel);
    generation_.notify_all();
    return 0;
  }
  const auto passed = [&] { return generation_.load(std::memory_order_acquire) != generation; };
  if (spin(passed, kQuietSpin))
    return 0;  // steps are short: sleeping between them would take most of the time
  const int64_t start = now();
  while (!passed()) generation_.wait(generation, std::memory_order_acquire);
  const int64_t late = now() - start;
  return late > kDescheduled ? late : 0;
}

/// The life of thread `index`.
void Team::serve(int index) noexcept {
  // Threads begin with the environment of the one that makes them.
  [[maybe_unused]] const DefaultFloatEnvironment floats;
  t_team = this;  // so that oneDNN finds its place
  uint64_t seen = 0;
  for (;;) {
    const auto changed = [&] { return state_.load(std::memory_order_acquire) != seen; };
    if (!changed() && !spin(changed, spin_limit())) {
      const uint32_t calls = calls_.load(std::memory_order_seq_cst);
      asleep_.fetch_add(1, std::memory_order_seq_cst);
      if (state_.load(std::memory_order_seq_cst) == seen && !ends_.load()) calls_.wait(calls);
      asleep_.fetch_sub(1, std::memory_order_relaxed);
    }
    if (ends_.load(std::memory_order_relaxed)) return;
    const uint64_t state = state_.load(std::memory_order_acquire);
    if (state == seen) continue;
    seen = state;
    if (index < static_cast<int>(state & ((1U << kPartBits) - 1))) work_on(state, index);
  }
}

Team* current_team() noexcept {
  return t_team;
}

Workers current_workers() noexcept {
  return t_team == nullptr || t_place.inside ? Workers(1) : t_team->workers();
}

ThreadScope::ThreadScope(const Workers& workers) noexcept : before_(t_team) {
  if (before_ != nullptr && (workers.pool != nullptr ? before_ == workers.pool : before_->serves(workers)))
    return;
  acquired_ = workers.pool != nullptr ? workers.pool : &Team::acquire(workers);
  t_team = acquired_;
  foreign_before_ = set_foreign_threads(workers.threads);
}

ThreadScope::~ThreadScope() {
  if (acquired_ == nullptr) return;
  acquired_->release();
  t_team = before_;
  restore_foreign_threads(foreign_before_);
}

}  // namespace librt::cpu
