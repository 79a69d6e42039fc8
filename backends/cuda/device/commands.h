// A recorded list of launches: run step by step at the first submit, replayed as a CUDA graph from then on,
// or run step by step at each (RecordOptions::replay).
//
// Knows: slots, steps, capture, events. Must not know: what a step computes.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <vector>

#include "backends/common/hazard_tracker.h"
#include "backends/cuda/device/device.h"

namespace librt::cuda {

/// Recorded work: enqueues launches on a stream. Also runs while a stream captures, so it must not allocate
/// device memory nor wait for the device; its operands' addresses never change.
class Task {
 public:
  virtual ~Task() = default;
  virtual cudaError_t run(cudaStream_t stream) noexcept = 0;
  /// After run() has failed: why, where that is not an error of CUDA.
  virtual Status failure() const { return {}; }
  /// Takes over the work of a task that is recorded later and independent of this one, so that one launch
  /// does both; false: it cannot, and `later` is unchanged.
  virtual bool join(Task& later) {
    (void)later;
    return false;
  }
};

/// How a task runs after its first run.
enum class Replay {
  Graph,  ///< as part of a CUDA graph
  Queue,  ///< enqueued each time: must not be captured
};

class CudaCommands final : public CommandList {
 public:
  static Result<CommandListPtr> create(CudaDevice& device, const RecordOptions& options);
  ~CudaCommands() override;

  Status mark(uint32_t span) noexcept override;
  Status copy(const BufferRef& destination, const BufferRef& source) noexcept override;
  Status finish() noexcept override;
  Status bind_host(uint32_t slot, void* address, size_t bytes) noexcept override;
  Status submit() noexcept override;
  Status wait() noexcept override;
  Status timings(std::span<uint64_t> nanoseconds) noexcept override;

  Status add(std::unique_ptr<Task> task, Replay replay = Replay::Graph) noexcept;
  /// add(), or join() of a task of the same kind, with nothing in between but others of this call that are
  /// independent of each other. A task that has joined another leaves its scratch alone. Not with profile or
  /// validation, where every node is a step of its own.
  Status add_joining(std::unique_ptr<Task> task, const Bindings& bindings) noexcept;
  /// Of an operand of the task to be added, which must be at a multiple of kOperandAlignment: else add()
  /// fails. Null for an absent one.
  std::byte* address_of(const BufferRef& ref) const noexcept;
  CudaDevice& device() noexcept { return device_; }
  /// Why some steps are enqueued at each submit although they may be captured; ok if there are none.
  const Status& not_captured() const noexcept { return not_captured_; }

 private:
  struct Step {
    std::unique_ptr<Task> task;
    uint32_t span;
    Replay replay;
    bool begins_span = false;
    size_t time = 0;  ///< index of its event in times_, if begins_span
  };
  /// Steps first to last - 1: one graph, or enqueued one by one.
  struct StepRange {
    size_t first, last;
    cudaGraphExec_t graph;
  };
  explicit CudaCommands(CudaDevice& device) : device_(device) {}
  /// Enqueues steps; with validation waits for each, so that an error names its step.
  Status run_steps(size_t first, size_t last, bool validate, cudaStream_t stream);
  Status mark_time(size_t i, cudaStream_t stream);
  Status capture(StepRange& range);
  /// capture(), or a range that stays enqueued one by one: its first run was right. Fails if the device is
  /// lost.
  Status capture_or_queue(StepRange& range);
  std::byte* place_of(const BufferRef& ref) const noexcept;
  Status append(std::unique_ptr<Task> task, Replay replay);

  CudaDevice& device_;
  std::vector<std::byte*> slots_;
  std::vector<Step> steps_;
  uint32_t spans_ = 0, span_ = 0;
  bool profile_ = false, replay_ = true, finished_ = false, submitted_ = false;
  std::vector<const char*> span_names_;
  /// Steps from here on, and what they access: independent of each other, and joinable.
  size_t joinable_ = 0;
  HazardTracker joinable_accesses_{kMostJoinableAccesses};
  std::vector<StepRange> ranges_;
  bool captured_ = false;
  mutable bool misaligned_ = false;
  Status not_captured_;
  cudaEvent_t done_ = nullptr;
  std::vector<cudaEvent_t> times_;  ///< profile: before each run of steps of one span, and after the last
  std::vector<uint32_t> timed_spans_;
};

}  // namespace librt::cuda
