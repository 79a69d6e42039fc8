#include "backends/cpu/device/openmp.h"

#include <dlfcn.h>

#include <atomic>

#include "backends/cpu/device/team.h"

namespace librt::cpu {
namespace {

std::atomic<bool> s_called{false};
thread_local bool t_blocks_signals = false;  ///< a BlockedSignalsOfPrimitive of this thread lives

/// A function of libgomp, which oneDNN has loaded; null when it has not.
template <class Function>
Function libgomp(const char* name) noexcept {
  static void* const library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

/// Whether the call is from this backend's work. Calls of others who use the same oneDNN are libgomp's.
bool is_ours() noexcept {
  if (current_team() == nullptr) return false;
  if (!s_called.load(std::memory_order_relaxed)) s_called.store(true, std::memory_order_relaxed);
  return true;
}

using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);

/// A region whose parts signals do not interrupt, on threads of the application.
struct Uninterrupted {
  void (*work)(void*);
  void* context;

  static void run(void* region) {
    const BlockedSignals blocked;
    const auto& self = *static_cast<const Uninterrupted*>(region);
    self.work(self.context);
  }
};

/// Calls the function on each thread of the calling thread's regions in a foreign OpenMP runtime.
void on_foreign_threads(void (*function)(void*)) noexcept {
  if (onednn_uses_teams()) return;
  if (const auto parallel = libgomp<Parallel>("GOMP_parallel")) parallel(function, nullptr, 0, 0);
}

/// The mask of a thread of a foreign OpenMP runtime, while signals do not interrupt it.
thread_local sigset_t t_foreign_mask;
thread_local bool t_was_blocked = false;

int forwarded(const char* name, int otherwise) noexcept {
  const auto function = libgomp<int (*)()>(name);
  return function == nullptr ? otherwise : function();
}

}  // namespace

bool onednn_uses_teams() noexcept {
  return s_called.load(std::memory_order_relaxed);
}

int set_foreign_threads(int threads) noexcept {
  if (onednn_uses_teams()) return 0;
  const auto set = libgomp<void (*)(int)>("omp_set_num_threads");
  if (set == nullptr) return 0;
  const int before = forwarded("omp_get_max_threads", 0);
  set(threads);
  return before;
}

void restore_foreign_threads(int before) noexcept {
  if (before <= 0) return;
  if (const auto set = libgomp<void (*)(int)>("omp_set_num_threads")) set(before);
}

BlockedSignalsOfPrimitive::BlockedSignalsOfPrimitive() noexcept {
  t_blocks_signals = true;
  on_foreign_threads([](void*) {
    t_foreign_mask = block_signals();
    t_was_blocked = true;
  });
}

BlockedSignalsOfPrimitive::~BlockedSignalsOfPrimitive() {
  on_foreign_threads([](void*) {
    if (t_was_blocked) pthread_sigmask(SIG_SETMASK, &t_foreign_mask, nullptr);
    t_was_blocked = false;
  });
  t_blocks_signals = false;
}

}  // namespace librt::cpu

// As libgomp declares them, some in no header (GOMP_*: what g++ makes of `#pragma omp parallel` and
// `barrier`).
#pragma GCC visibility push(default)
extern "C" {

int omp_get_max_threads() noexcept {
  using namespace librt::cpu;
  if (!is_ours()) return forwarded("omp_get_max_threads", 1);
  return current_team()->size();
}

int omp_get_num_threads() noexcept {
  using namespace librt::cpu;
  if (!is_ours()) return forwarded("omp_get_num_threads", 1);
  return Team::place().parts;
}

int omp_get_thread_num() noexcept {
  using namespace librt::cpu;
  if (!is_ours()) return forwarded("omp_get_thread_num", 0);
  return Team::place().part;
}

int omp_in_parallel() noexcept {
  using namespace librt::cpu;
  if (!is_ours()) return forwarded("omp_in_parallel", 0);
  return Team::place().inside && Team::place().parts > 1 ? 1 : 0;
}

void GOMP_barrier() {
  using namespace librt::cpu;
  if (is_ours()) {
    current_team()->barrier();
    return;
  }
  if (const auto barrier = libgomp<void (*)()>("GOMP_barrier")) barrier();
}

void GOMP_parallel(void (*work)(void*), void* context, unsigned threads, unsigned flags) {
  using namespace librt::cpu;
  if (is_ours()) {
    Team& team = *current_team();
    const int parts = threads == 0 ? team.size() : static_cast<int>(threads);
    Uninterrupted region{work, context};
    if (t_blocks_signals && team.workers().pool != nullptr)
      team.run(parts, &Uninterrupted::run, &region);
    else
      team.run(parts, work, context);
    return;
  }
  if (const auto parallel = libgomp<Parallel>("GOMP_parallel"))
    parallel(work, context, threads, flags);
  else
    work(context);
}

}  // extern "C"
#pragma GCC visibility pop
