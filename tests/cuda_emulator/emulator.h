// A functional emulator of CUDA on the CPU, for tests: the scheduler's interface for kernels (device.h,
// ptx.h), the runtime (runtime.cpp) and tests.
//
// One block runs at a time; each CUDA thread is a fiber with its own stack. A barrier or a warp operation
// suspends the fiber until all participants have arrived; the last one computes for all through pointers into
// the suspended stacks.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace cuda_emulator {

/// Source location of a call in a kernel.
struct Site {
  const char* file = nullptr;
  unsigned line = 0;
};
// Default arguments that capture the caller's location.
#define RT_CALLER_PARAMETERS \
  const char *caller_file = __builtin_FILE(), unsigned caller_line = __builtin_LINE()
#define RT_CALLER            \
  ::cuda_emulator::Site {    \
    caller_file, caller_line \
  }

struct ThreadContext {
  uint3 index{};
  unsigned number = 0;  ///< index in the block
  unsigned lane = 0;
  unsigned warp = 0;
};
struct BlockContext {
  uint3 index{};
  dim3 block, grid;
  void* dynamic_shared = nullptr;
  unsigned dynamic_shared_bytes = 0;
};
extern ThreadContext* current_thread;
extern BlockContext* current_block;

inline void* dynamic_shared() {
  return current_block->dynamic_shared;
}

/// Waits for all threads of the block.
void block_barrier(Site site);
/// A barrier that also counts the threads for which `predicate` holds.
int block_count(bool predicate, Site site);

/// Waits for every lane in `mask`; the last one to arrive runs `operation` on the lanes' records, which stay
/// valid on the suspended stacks. Lanes outside the mask have no record.
using WarpOperation = void (*)(void** records, unsigned mask);
void warp_collective(unsigned mask, void* record, WarpOperation operation, const char* what, Site site);
unsigned live_lanes();

/// A fatal error of the kernel: the launch fails.
[[noreturn]] void fault(const char* what, Site site);
/// An error that is reported; the block continues.
void complain(const char* what, Site site);
/// Lets other threads run.
void yield();
bool in_shared(const void* address, size_t bytes);

/// cp.async: copies are queued here until the thread waits for them.
struct AsyncCopy {
  void* destination;
  const void* source;
  int bytes;
};
void push_copy(const AsyncCopy& copy);
void commit_copies();
/// The next copy that is older than the newest `pending` groups.
bool pop_copy(int pending, AsyncCopy& copy);

/// The memory of the threads' stacks, taken once, before the first launch: no launch fails for it later.
/// False: there is none.
bool reserve_stacks() noexcept;
/// Runs all blocks of a grid now. False when a fault stopped it, or without memory.
bool run_grid(const std::function<void()>& body, dim3 grid, dim3 block, unsigned shared_bytes);

// Options and counters for tests.

/// The order in which blocks and threads start, and in which ready threads resume.
enum class Order { Forward, Reverse, Random };
struct Options {
  Order order = Order::Forward;
  uint64_t seed = 1;
  bool lazy_streams = false;  ///< run queued work only when something waits for it
  bool late_copies = true;    ///< data of cp.async arrives only at the wait
  bool poison = true;         ///< shared memory is NaN at the start of each block
  int compute_capability = 90;
  int devices = 1;
  size_t memory_bytes = size_t{8} << 30;
};
/// Initialized from RT_EMULATOR_ORDER (forward, reverse, random), RT_EMULATOR_STREAMS (eager, lazy),
/// RT_EMULATOR_CHIP (90) and RT_EMULATOR_DEVICES (1).
Options& options();

struct Counts {
  uint64_t launches = 0, blocks = 0, threads = 0, switches = 0, barriers = 0, collectives = 0, errors = 0;
};
const Counts& counts();
/// The first complaint or fault since clear_errors(); empty if none.
const char* error_text();
void clear_errors();

// Test hooks of the fake runtime.

/// During its lifetime, allocating memory or waiting in this thread fails with the error that it gives while
/// a graph is captured.
class StepScope {
 public:
  StepScope() noexcept;
  ~StepScope();
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;
};
/// Clears sticky errors, which CUDA would keep for the rest of the process.
void reset_runtime();
size_t device_bytes();

}  // namespace cuda_emulator
