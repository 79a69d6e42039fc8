// Recorded work of the CPU backend: a list of tasks that submit() runs one after another.
//
// Knows: slots, tasks, marks. Must not know: what a task computes, oneDNN. Operand addresses are resolved
// once, at the first submit after recording or after a bind_host(); submit() and wait() allocate nothing.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/device/team.h"
#include "runtime/backend/backend.h"

namespace librt::cpu {

/// The base addresses of the slots of one command list.
class Addresses {
 public:
  explicit Addresses(std::span<std::byte* const> bases) noexcept : bases_(bases) {}
  /// Null for an absent buffer.
  std::byte* of(const BufferRef& buffer) const noexcept {
    return buffer.present() ? bases_[buffer.slot] + buffer.offset : nullptr;
  }

 private:
  std::span<std::byte* const> bases_;
};

/// One step of a command list. Owns or shares all it needs, so that it may outlive the kernel that recorded
/// it.
class Task {
 public:
  virtual ~Task() = default;
  /// Called before the next run() when operands have moved. Must not allocate.
  virtual Status resolve(const Addresses& addresses) noexcept = 0;
  virtual Status run() noexcept = 0;
};

class Commands final : public CommandList {
 public:
  /// `workers` is what parallel loops use while this list runs.
  Commands(const RecordOptions& options, const Workers& workers);

  /// For kernels: appends a task under the current mark.
  Status add(std::unique_ptr<Task> task) noexcept;

  Status mark(uint32_t span) noexcept override;
  Status copy(const BufferRef& destination, const BufferRef& source) noexcept override;
  Status finish() noexcept override;
  Status bind_host(uint32_t slot, void* address, size_t bytes) noexcept override;
  Status submit() noexcept override;
  Status wait() noexcept override { return {}; }
  Status timings(std::span<uint64_t> nanoseconds) noexcept override;

 private:
  struct Step {
    std::unique_ptr<Task> task;
    uint32_t span = 0;
  };
  Status resolve() noexcept;
  Status run_steps() noexcept;

  std::vector<std::byte*> bases_;
  std::vector<Step> steps_;
  std::vector<uint64_t> nanoseconds_;  ///< by span, of the last run; empty without profiling
  uint32_t span_ = 0;
  uint32_t spans_ = 0;
  Workers workers_;
  const StopSignal* stop_ = nullptr;
  uint32_t stoppable_ = 0;      ///< spans
  size_t stoppable_steps_ = 0;  ///< 0 without a signal
  bool profile_ = false;
  bool finished_ = false;
  bool moved_ = true;  ///< addresses must be resolved before the next run
};

}  // namespace librt::cpu
