// The scheduler: runs blocks one after the other, each CUDA thread as a fiber. Compiled without
// ThreadSanitizer instrumentation; it reports to ThreadSanitizer only the ordering by barriers and warp
// operations.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cuda_emulator/emulator.h"

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define RT_EMULATOR_ASAN 1
#include <sanitizer/common_interface_defs.h>
#else
#define RT_EMULATOR_ASAN 0
#endif
#if !defined(RT_EMULATOR_TSAN)  // set by the build, because this file is not instrumented
#define RT_EMULATOR_TSAN 0
#endif
#if RT_EMULATOR_TSAN
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void*, unsigned);
void __tsan_acquire(void*);
void __tsan_release(void*);
}
#endif

// Saves the callee-saved registers on this stack and its pointer in *save, and switches to the other stack.
extern "C" void cuda_emulator_switch(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
.text
.globl cuda_emulator_switch
.hidden cuda_emulator_switch
.type cuda_emulator_switch,@function
cuda_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_emulator_switch,.-cuda_emulator_switch
)");
#else
#error "the emulator's switch between stacks is written for x86-64 only"
#endif

extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_cuda_shared[];
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __stop_cuda_shared[];

namespace cuda_emulator {
ThreadContext* current_thread = nullptr;
BlockContext* current_block = nullptr;

namespace {
constexpr size_t kPage = 4096;
constexpr size_t kStackBytes = RT_EMULATOR_ASAN || RT_EMULATOR_TSAN ? 512 << 10 : 128 << 10;
// The tops of the stacks, all of them in use at once, are spread over the sets of the CPU's caches.
constexpr size_t kStackShift = 5 * 64, kStackShifts = 12;
constexpr unsigned kMaxThreads = 1024, kMaxWarps = 32;
constexpr int kMaxCopies = 256;

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  void* asan = nullptr;
  void* tsan = nullptr;
};

enum class State : unsigned char { NotStarted, Ready, AtBarrier, InWarp, Done };

/// Lanes that wait in one warp operation.
struct Group {
  unsigned mask = 0, arrived = 0;
  void* records[32] = {};
  const char* what = "";
  char tsan_key = 0;
};
/// Masks of waiting groups are disjoint, so 32 are enough.
struct Warp {
  unsigned live = 0;
  unsigned used = 0;  ///< the first groups, of which some may wait
  Group groups[32];
};
struct Barrier {
  unsigned arrived = 0;
  int count = 0, result = 0;
  Site site;
  char tsan_key = 0;
};

struct Thread : ThreadContext {
  Fiber* fiber = nullptr;
  State state = State::NotStarted;
  Site site;
  const char* what = "";
  int first_copy = 0, end_copy = 0, group = 0;  ///< of its PendingCopies
};
/// The cp.async that a thread has under way.
struct PendingCopies {
  struct {
    AsyncCopy copy;
    int group;
  } copies[kMaxCopies];
};

struct Scheduler {
  std::mutex mutex;
  Options options;
  Counts counts;
  std::string error;
  std::vector<Fiber*> idle;
  std::vector<Fiber*> by_thread;  ///< ThreadSanitizer: one fiber per thread
  std::vector<Thread> threads = std::vector<Thread>(kMaxThreads);
  std::vector<PendingCopies> copies = std::vector<PendingCopies>(kMaxThreads);  ///< by thread
  std::vector<Warp> warps = std::vector<Warp>(kMaxWarps);
  Barrier barrier;
  Thread* ready[kMaxThreads] = {};  ///< a ring; contains each thread at most once
  unsigned ready_first = 0, ready_end = 0;
  char* stacks = nullptr;  ///< of all fibers, each above a page that cannot be accessed
  std::unique_ptr<Fiber[]> all_fibers;
  size_t fibers = 0;                  ///< of these, how many were made
  std::vector<unsigned> start_order;  ///< the order in which threads start
  size_t next_start = 0;
  unsigned count = 0, live = 0;
  bool aborted = false;
  const std::function<void()>* body = nullptr;
  void* stack_pointer = nullptr;
  void* asan = nullptr;
  const void* asan_bottom = nullptr;
  size_t asan_size = 0;
  void* tsan = nullptr;
  std::mt19937_64 random{1};
  char tsan_start = 0, tsan_end = 0;
  std::vector<void*> old_dynamic;

  Scheduler() {
    if (const char* order = std::getenv("RT_EMULATOR_ORDER"); order != nullptr) {
      if (std::strcmp(order, "reverse") == 0) options.order = Order::Reverse;
      if (std::strcmp(order, "random") == 0) options.order = Order::Random;
    }
    if (const char* streams = std::getenv("RT_EMULATOR_STREAMS"); streams != nullptr)
      options.lazy_streams = std::strcmp(streams, "lazy") == 0;
    if (const char* architecture = std::getenv("RT_EMULATOR_CHIP"); architecture != nullptr)
      options.compute_capability = static_cast<int>(std::strtol(architecture, nullptr, 10));
    if (const char* devices = std::getenv("RT_EMULATOR_DEVICES"); devices != nullptr)
      options.devices = static_cast<int>(std::strtol(devices, nullptr, 10));
    start_order.reserve(kMaxThreads);
    idle.reserve(2 * kMaxThreads);
  }
};

Scheduler& scheduler() {
  static auto* const instance = new Scheduler;  // never destroyed: fibers' stacks are never unwound
  return *instance;
}

void order_after([[maybe_unused]] void* key) {
#if RT_EMULATOR_TSAN
  __tsan_acquire(key);
#endif
}
void order_before([[maybe_unused]] void* key) {
#if RT_EMULATOR_TSAN
  __tsan_release(key);
#endif
}

Thread* running() {
  return static_cast<Thread*>(current_thread);
}

void fiber_main();

/// The stack layout expected by cuda_emulator_switch: six registers, then the return address.
void prepare(Fiber* fiber) {
  const auto number = static_cast<size_t>(fiber - scheduler().all_fibers.get());
  auto** top =
      reinterpret_cast<void**>(fiber->stack + kStackBytes - 64 - number % kStackShifts * kStackShift);
  *--top = nullptr;  // a return address for fiber_main, which keeps the stack aligned
  *--top = reinterpret_cast<void*>(&fiber_main);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber->stack_pointer = top;
}

Fiber* make_fiber() {
  Scheduler& s = scheduler();
  if (s.stacks == nullptr || s.fibers == kMaxThreads) std::abort();  // reserve_stacks() was not called
  Fiber* fiber = &s.all_fibers[s.fibers];
  char* memory = s.stacks + s.fibers++ * (kStackBytes + kPage);
  mprotect(memory, kPage, PROT_NONE);
  fiber->stack = memory + kPage;
#if RT_EMULATOR_TSAN
  fiber->tsan = __tsan_create_fiber(0);
#endif
  prepare(fiber);
  return fiber;
}

void make_ready(Thread* thread) {
  Scheduler& s = scheduler();
  thread->state = State::Ready;
  s.ready[s.ready_end++ % kMaxThreads] = thread;
}

Thread* take_not_started() {
  Scheduler& s = scheduler();
  return s.next_start < s.count ? &s.threads[s.start_order[s.next_start++]] : nullptr;
}

/// The thread that runs next, which has a fiber: one that is ready, else one that has not started. Null: all
/// wait or are done.
Thread* take_next() {
  Scheduler& s = scheduler();
  if (s.ready_first != s.ready_end) {
    if (s.options.order == Order::Random)
      std::swap(s.ready[s.ready_first % kMaxThreads],
                s.ready[(s.ready_first + s.random() % (s.ready_end - s.ready_first)) % kMaxThreads]);
    return s.ready[s.ready_first++ % kMaxThreads];
  }
  Thread* thread = take_not_started();
  if (thread == nullptr) return nullptr;
#if RT_EMULATOR_TSAN
  // Rotated by the block index, so that a fiber is not always the same thread and races between blocks are
  // detected.
  thread->fiber = s.by_thread[(thread->number + static_cast<unsigned>(s.counts.blocks)) % s.by_thread.size()];
#else
  if (s.idle.empty()) s.idle.push_back(make_fiber());
  thread->fiber = s.idle.back();
  s.idle.pop_back();
#endif
  thread->state = State::Ready;
  return thread;
}

/// From the scheduler into a fiber.
void enter(Fiber* fiber) {
  Scheduler& s = scheduler();
  ++s.counts.switches;
#if RT_EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&s.asan, fiber->stack, kStackBytes);
#endif
#if RT_EMULATOR_TSAN
  __tsan_switch_to_fiber(fiber->tsan, 1);
#endif
  cuda_emulator_switch(&s.stack_pointer, fiber->stack_pointer);
#if RT_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(s.asan, nullptr, nullptr);
#endif
}

/// From a fiber to the next thread's, or back to the scheduler where there is none. Sanitizers must know each
/// stack's neighbour, so under them the scheduler always lies between.
void leave(Fiber* fiber) {
  Scheduler& s = scheduler();
  if (!RT_EMULATOR_ASAN && !RT_EMULATOR_TSAN && !s.aborted)
    if (Thread* next = take_next(); next != nullptr) {
      current_thread = next;
      if (next->fiber == fiber) return;
      ++s.counts.switches;
      cuda_emulator_switch(&fiber->stack_pointer, next->fiber->stack_pointer);
      return;
    }
#if RT_EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&fiber->asan, s.asan_bottom, s.asan_size);
#endif
#if RT_EMULATOR_TSAN
  __tsan_switch_to_fiber(s.tsan, 1);
#endif
  cuda_emulator_switch(&fiber->stack_pointer, s.stack_pointer);
#if RT_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(fiber->asan, nullptr, nullptr);
#endif
}

void suspend(Thread* thread, State state) {
  thread->state = state;
  leave(thread->fiber);
  current_thread = thread;
}

void report(const char* what, Site site) {
  Scheduler& s = scheduler();
  ++s.counts.errors;
  if (!s.error.empty()) return;
  const uint3 block = current_block != nullptr ? current_block->index : uint3{};
  const uint3 thread = current_thread != nullptr ? current_thread->index : uint3{};
  char text[512];
  std::snprintf(text, sizeof text, "%s at %s:%u, block (%u,%u,%u) thread (%u,%u,%u)", what,
                site.file != nullptr ? site.file : "?", site.line, block.x, block.y, block.z, thread.x,
                thread.y, thread.z);
  s.error = text;
  order_before(&s.tsan_end);  // readers wait for the grid, though this thread does not end
}

void release_barrier() {
  Scheduler& s = scheduler();
  s.barrier.arrived = 0;
  s.barrier.result = s.barrier.count;
  s.barrier.count = 0;
  for (unsigned i = 0; i < s.count; ++i)
    if (Thread& thread = s.threads[s.start_order[i]]; thread.state == State::AtBarrier) make_ready(&thread);
}

void thread_exit(Thread* thread) {
  Scheduler& s = scheduler();
  thread->state = State::Done;
  --s.live;
  s.warps[thread->warp].live &= ~(1u << thread->lane);
  if (s.barrier.arrived == 0) return;
  current_thread = thread;
  report("a thread exits while others wait at the __syncthreads", s.barrier.site);
  if (s.barrier.arrived == s.live) release_barrier();
}

void fiber_main() {
  Scheduler& s = scheduler();
#if RT_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &s.asan_bottom, &s.asan_size);
#endif
  for (;;) {
    Thread* thread = running();
    Fiber* const fiber = thread->fiber;
    for (;;) {
      order_after(&s.tsan_start);
      (*s.body)();
      order_before(&s.tsan_end);
      thread_exit(thread);
      thread->fiber = nullptr;
      // Runs the next CUDA thread on the same stack, without a switch.
      Thread* next = RT_EMULATOR_TSAN || s.aborted ? nullptr : take_not_started();
      if (next == nullptr) break;
      next->fiber = fiber;
      next->state = State::Ready;
      current_thread = thread = next;
    }
    if (!RT_EMULATOR_TSAN) s.idle.push_back(fiber);
    leave(fiber);
  }
}

/// No thread can run: lists which threads wait where.
void report_deadlock() {
  Scheduler& s = scheduler();
  std::string text = "deadlock:";
  Site first;
  int shown = 0;
  for (unsigned i = 0; i < s.count && shown < 4; ++i) {
    Thread& thread = s.threads[i];
    if (thread.state == State::Done) continue;
    unsigned last = i;
    while (last + 1 < s.count && s.threads[last + 1].state == thread.state &&
           s.threads[last + 1].site.line == thread.site.line)
      ++last;
    text += " threads " + std::to_string(i) + "-" + std::to_string(last) + " wait in " + thread.what +
            " in line " + std::to_string(thread.site.line) + ";";
    if (first.file == nullptr) {
      first = thread.site;
      current_thread = &thread;
    }
    ++shown;
    i = last;
  }
  report(text.c_str(), first);
}

void poison_shared([[maybe_unused]] BlockContext& block) {
  Scheduler& s = scheduler();
  const auto size = static_cast<size_t>(__stop_cuda_shared - __start_cuda_shared);
#if RT_EMULATOR_TSAN
  // Fresh pages and a fresh buffer reset the access history of the previous block: reusing its shared memory
  // is not a race.
  if ((reinterpret_cast<uintptr_t>(__start_cuda_shared) | size) % kPage != 0) {
    std::fputs("emulator: link with shared_pages.ld\n", stderr);
    std::abort();
  }
  if (size > 0 && mmap(__start_cuda_shared, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    std::abort();
  if (block.dynamic_shared != nullptr) {
    s.old_dynamic.push_back(block.dynamic_shared);
    if (posix_memalign(&block.dynamic_shared, 128, block.dynamic_shared_bytes) != 0) std::abort();
  }
#endif
  if (!s.options.poison) return;
  if (block.dynamic_shared != nullptr) std::memset(block.dynamic_shared, 0xff, block.dynamic_shared_bytes);
  if (size > 0) {  // not memset: AddressSanitizer keeps redzones between the variables there
    unsigned char* to = __start_cuda_shared;
    size_t left = size;
    asm volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(0xff) : "memory");
  }
}

void begin_block(BlockContext& block, unsigned count) {
  Scheduler& s = scheduler();
  ++s.counts.blocks;
  s.counts.threads += count;
  current_block = &block;
  s.count = s.live = count;
  s.aborted = false;
  s.ready_first = s.ready_end = 0;
  s.next_start = 0;
  s.start_order.resize(count);
  for (unsigned i = 0; i < (count + 31) / 32; ++i) {
    s.warps[i].live = s.warps[i].used = 0;
  }
  s.barrier.arrived = 0;
  s.barrier.count = 0;
  uint3 index{};
  for (unsigned i = 0; i < count; ++i) {
    Thread& thread = s.threads[i];
    thread.index = index;
    if (++index.x == block.block.x) {
      index.x = 0;
      if (++index.y == block.block.y) index.y = 0, ++index.z;
    }
    thread.number = i;
    thread.lane = i % 32;
    thread.warp = i / 32;
    thread.state = State::NotStarted;
    thread.fiber = nullptr;
    thread.first_copy = thread.end_copy = thread.group = 0;
    s.warps[thread.warp].live |= 1u << thread.lane;
    s.start_order[i] = s.options.order == Order::Reverse ? count - 1 - i : i;
  }
  if (s.options.order == Order::Random) std::shuffle(s.start_order.begin(), s.start_order.end(), s.random);
#if RT_EMULATOR_TSAN
  while (s.by_thread.size() < count) s.by_thread.push_back(make_fiber());
#endif
  poison_shared(block);
  order_before(&s.tsan_start);
}

void run_block(BlockContext& block, unsigned count) {
  Scheduler& s = scheduler();
  begin_block(block, count);
  while (s.live > 0 && !s.aborted) {
    if (Thread* thread = take_next(); thread != nullptr) {
      current_thread = thread;
      enter(thread->fiber);
    } else {
      report_deadlock();
      s.aborted = true;
    }
  }
  if (s.aborted)
    for (unsigned i = 0; i < count; ++i)
      if (Thread& thread = s.threads[i]; thread.fiber != nullptr) {
        prepare(thread.fiber);
        if (!RT_EMULATOR_TSAN) s.idle.push_back(thread.fiber);
        thread.fiber = nullptr;
      }
  current_block = nullptr;
  current_thread = nullptr;
}

}  // namespace

bool reserve_stacks() noexcept {
  Scheduler& s = scheduler();
  if (s.stacks != nullptr) return true;
  if (s.all_fibers == nullptr) s.all_fibers.reset(new (std::nothrow) Fiber[kMaxThreads]);
  if (s.all_fibers == nullptr) return false;
  void* memory = mmap(nullptr, kMaxThreads * (kStackBytes + kPage), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  s.stacks = static_cast<char*>(memory);
  return true;
}

Options& options() {
  return scheduler().options;
}
const Counts& counts() {
  return scheduler().counts;
}
const char* error_text() {
  return scheduler().error.c_str();
}
void clear_errors() {
  scheduler().error.clear();
  scheduler().counts.errors = 0;
}

unsigned live_lanes() {
  return scheduler().warps[current_thread->warp].live;
}

void complain(const char* what, Site site) {
  report(what, site);
}

void fault(const char* what, Site site) {
  report(what, site);
  scheduler().aborted = true;
  for (;;) leave(running()->fiber);
}

void yield() {
  make_ready(running());
  suspend(running(), State::Ready);
}

bool in_shared(const void* address, size_t bytes) {
  const auto* first = static_cast<const unsigned char*>(address);
  const auto* dynamic = static_cast<const unsigned char*>(current_block->dynamic_shared);
  if (dynamic != nullptr && first >= dynamic &&
      first + bytes <= dynamic + current_block->dynamic_shared_bytes)
    return true;
  return first >= __start_cuda_shared && first + bytes <= __stop_cuda_shared;
}

void push_copy(const AsyncCopy& copy) {
  Thread* thread = running();
  if (thread->end_copy == kMaxCopies) fault("more than 256 cp.async under way in one thread", {});
  scheduler().copies[thread->number].copies[thread->end_copy++] = {copy, thread->group};
}
void commit_copies() {
  ++running()->group;
}
bool pop_copy(int pending, AsyncCopy& copy) {
  Thread* thread = running();
  if (thread->first_copy == thread->end_copy) {
    thread->first_copy = thread->end_copy = 0;
    return false;
  }
  const auto& next = scheduler().copies[thread->number].copies[thread->first_copy];
  if (next.group >= thread->group - pending) return false;
  ++thread->first_copy;
  copy = next.copy;
  return true;
}

int block_count(bool predicate, Site site) {
  Scheduler& s = scheduler();
  ++s.counts.barriers;
  Thread* thread = running();
  Barrier& barrier = s.barrier;
  if (barrier.arrived == 0)
    barrier.site = site;
  else if (barrier.site.line != site.line)
    report("threads of one block meet at different __syncthreads", site);
  if (s.live != s.count) report("__syncthreads after some threads of the block have exited", site);
  order_before(&barrier.tsan_key);
  ++barrier.arrived;
  barrier.count += predicate ? 1 : 0;
  thread->site = site;
  thread->what = "__syncthreads";
  if (barrier.arrived == s.live) {
    thread->state = State::AtBarrier;
    release_barrier();
    leave(thread->fiber);  // the scheduler chooses which thread resumes first
    current_thread = thread;
  } else {
    suspend(thread, State::AtBarrier);
  }
  order_after(&barrier.tsan_key);
  return barrier.result;
}

void block_barrier(Site site) {
  block_count(false, site);
}

namespace {
/// The group of this mask in which other lanes wait, or a free one.
Group& group_of(Warp& warp, unsigned mask, const char* what, Site site) {
  Group* free = nullptr;
  for (Group& group : std::span(warp.groups).first(warp.used)) {
    if (group.arrived == 0) {
      if (free == nullptr) free = &group;
    } else if (group.mask == mask) {
      if (group.what != what && std::strcmp(group.what, what) != 0)
        fault("lanes of a warp meet in different *_sync operations", site);
      return group;
    }
  }
  if (free == nullptr) {
    if (warp.used == std::size(warp.groups)) fault("too many *_sync operations wait in one warp", site);
    free = &warp.groups[warp.used++];
    free->arrived = 0;
  }
  free->mask = mask;
  free->what = what;
  return *free;
}
}  // namespace

void warp_collective(unsigned mask, void* record, WarpOperation operation, const char* what, Site site) {
  Scheduler& s = scheduler();
  ++s.counts.collectives;
  Thread* thread = running();
  Warp& warp = s.warps[thread->warp];
  // In a block's partial last warp a full mask means the existing lanes.
  const unsigned lanes = std::min(32u, s.count - thread->warp * 32);
  if (lanes < 32) mask &= (1u << lanes) - 1;
  if ((mask >> thread->lane & 1u) == 0) fault("the caller is not in the mask of its *_sync operation", site);
  if ((mask & ~warp.live) != 0) fault("the mask of a *_sync operation names a lane that has exited", site);
  Group& group = group_of(warp, mask, what, site);
  order_before(&group.tsan_key);
  group.records[thread->lane] = record;
  group.arrived |= 1u << thread->lane;
  thread->site = site;
  thread->what = what;
  if (group.arrived == mask) {
    order_after(&group.tsan_key);
    if (operation != nullptr) operation(group.records, mask);
    order_before(&group.tsan_key);
    group.arrived = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      if ((mask >> lane & 1u) != 0 && lane != thread->lane) make_ready(&s.threads[thread->warp * 32 + lane]);
    return;  // the last one to arrive continues
  }
  suspend(thread, State::InWarp);
  order_after(&group.tsan_key);
}

bool run_grid(const std::function<void()>& body, dim3 grid, dim3 block, unsigned shared_bytes) {
  Scheduler& s = scheduler();
  const std::lock_guard lock(s.mutex);
  BlockContext context{{0, 0, 0}, block, grid, nullptr, shared_bytes};
  if (!reserve_stacks()) return false;
  if (shared_bytes > 0 && posix_memalign(&context.dynamic_shared, 128, shared_bytes) != 0) return false;
  ++s.counts.launches;
  s.body = &body;
#if RT_EMULATOR_TSAN
  s.tsan = __tsan_get_current_fiber();
#endif
  s.aborted = false;
  order_before(&s.tsan_start);
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  std::vector<uint64_t> order;
  if (s.options.order != Order::Forward) {
    order.resize(blocks);
    for (uint64_t i = 0; i < blocks; ++i) order[i] = blocks - 1 - i;
  }
  if (s.options.order == Order::Random) {
    s.random.seed(s.options.seed);
    std::shuffle(order.begin(), order.end(), s.random);
  }
  for (uint64_t i = 0; i < blocks && !s.aborted; ++i) {
    const uint64_t number = order.empty() ? i : order[i];
    context.index =
        uint3{static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
              static_cast<unsigned>(number / grid.x / grid.y)};
    run_block(context, block.x * block.y * block.z);
  }
  order_after(&s.tsan_end);
  std::free(context.dynamic_shared);
  for (void* memory : s.old_dynamic) std::free(memory);
  s.old_dynamic.clear();
  return !s.aborted;
}

}  // namespace cuda_emulator
