#include "backends/cuda/device/commands.h"

#include <nvtx3/nvToolsExt.h>

#include <new>

#include "backends/cuda/device/errors.h"
#include "runtime/core/environment.h"
#include "runtime/core/exception.h"
#if defined(RT_CUDA_EMULATED)
#include "cuda_emulator/emulator.h"
#endif

namespace librt::cuda {
namespace {

/// DeviceInfo::alignment; what cuBLASLt's heuristics assume of every operand.
constexpr uintptr_t kOperandAlignment = 256;

cudaError_t run_task(Task& task, cudaStream_t stream) noexcept {
#if defined(RT_CUDA_EMULATED)
  // Allocating and waiting fail inside a step, also when no graph is captured.
  const cuda_emulator::StepScope step;
#endif
  return task.run(stream);
}

/// The range of a node in the timeline of Nsight Systems.
class ProfilerRange {
 public:
  ProfilerRange() = default;
  ~ProfilerRange() { begin(nullptr); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  /// Ends the range before; null begins none.
  void begin(const char* name) noexcept {
    if (open_) nvtxRangePop();
    open_ = name != nullptr;
    if (open_) nvtxRangePushA(name);
  }

 private:
  bool open_ = false;
};

/// How tools that read NVTX ranges are attached to a process.
bool is_watched() noexcept {
  return environment("NVTX_INJECTION64_PATH") != nullptr;
}

class CopyTask final : public Task {
 public:
  CopyTask(std::byte* to, const std::byte* from, size_t bytes) : to_(to), from_(from), bytes_(bytes) {}
  cudaError_t run(cudaStream_t stream) noexcept override {
    return cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDeviceToDevice, stream);
  }

 private:
  std::byte* to_;
  const std::byte* from_;
  size_t bytes_;
};

}  // namespace

Result<CommandListPtr> CudaCommands::create(CudaDevice& device, const RecordOptions& options) {
  try {
    std::unique_ptr<CudaCommands> self(new CudaCommands(device));
    for (Slab* slab : options.slots)
      self->slots_.push_back(slab != nullptr ? static_cast<CudaSlab*>(slab)->address() : nullptr);
    self->spans_ = options.spans;
    self->profile_ = options.profile;
    self->replay_ = options.replay;
    self->span_names_.assign(options.span_names.begin(), options.span_names.end());
    RT_CUDA_TRY(cudaEventCreateWithFlags(&self->done_, cudaEventDisableTiming), "creating an event");
    return CommandListPtr(std::move(self));
  } catch (...) {
    return caught_exception("beginning a command list");
  }
}

CudaCommands::~CudaCommands() {
  if (!device_.activate().ok()) return;
  if (submitted_) cudaEventSynchronize(done_);
  for (const StepRange& range : ranges_)
    if (range.graph != nullptr) cudaGraphExecDestroy(range.graph);
  for (cudaEvent_t event : times_) cudaEventDestroy(event);
  if (done_ != nullptr) cudaEventDestroy(done_);
}

std::byte* CudaCommands::place_of(const BufferRef& ref) const noexcept {
  return ref.present() && ref.slot < slots_.size() ? slots_[ref.slot] + ref.offset : nullptr;
}

std::byte* CudaCommands::address_of(const BufferRef& ref) const noexcept {
  std::byte* const address = place_of(ref);
  if (reinterpret_cast<uintptr_t>(address) % kOperandAlignment != 0) misaligned_ = true;
  return address;
}

Status CudaCommands::append(std::unique_ptr<Task> task, Replay replay) {
  if (finished_) return internal_error("a finished command list was recorded into");
  if (misaligned_)
    return internal_error("step ", steps_.size(), ": expected operands at multiples of ", kOperandAlignment,
                          " bytes, for loads of 16 bytes and cuBLASLt");
  steps_.push_back({.task = std::move(task), .span = span_, .replay = replay});
  return {};
}

Status CudaCommands::add(std::unique_ptr<Task> task, Replay replay) noexcept {
  try {
    RT_TRY(append(std::move(task), replay));
  } catch (...) {
    return caught_exception("recording a kernel");
  }
  joinable_ = steps_.size();
  joinable_accesses_.clear();
  return {};
}

Status CudaCommands::add_joining(std::unique_ptr<Task> task, const Bindings& bindings) noexcept {
  if (profile_ || device_.validation() || misaligned_ || finished_) return add(std::move(task));
  try {
    std::vector<HazardTracker::Access> accesses;
    const auto note = [&](const BufferRef& ref, bool write) {
      const auto begin = reinterpret_cast<uint64_t>(place_of(ref));
      if (begin != 0 && ref.bytes > 0)
        accesses.push_back({.begin = begin, .end = begin + ref.bytes, .write = write});
    };
    for (const BufferRef& ref : bindings.inputs) note(ref, false);
    for (const BufferRef& ref : bindings.outputs) note(ref, true);
    if (joinable_accesses_.add(accesses)) joinable_ = steps_.size();
    for (size_t i = joinable_; i < steps_.size(); ++i)
      if (steps_[i].task->join(*task)) return {};
    accesses.clear();
    note(bindings.scratch, true);
    joinable_accesses_.keep(accesses);
    return append(std::move(task), Replay::Graph);
  } catch (...) {
    return caught_exception("recording a kernel");
  }
}

Status CudaCommands::mark(uint32_t span) noexcept {
  if (span >= spans_) return internal_error("mark ", span, " of a command list with ", spans_, " spans");
  span_ = span;
  return {};
}

Status CudaCommands::copy(const BufferRef& destination, const BufferRef& source) noexcept {
  if (destination.bytes < source.bytes)
    return internal_error("copy of ", source.bytes, " bytes into ", destination.bytes);
  std::byte *to = place_of(destination), *from = place_of(source);
  if (source.bytes == 0 || to == from) return {};
  auto* task = new (std::nothrow) CopyTask(to, from, source.bytes);
  if (task == nullptr) return Status(Code::OutOfMemory, "recording a copy: no memory");
  return add(std::unique_ptr<Task>(task));
}

Status CudaCommands::finish() noexcept {
  finished_ = true;
  try {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (i == 0 || steps_[i].replay != steps_[i - 1].replay) ranges_.push_back({i, i, nullptr});
      ranges_.back().last = i + 1;
      steps_[i].begins_span = i == 0 || steps_[i].span != steps_[i - 1].span;
      steps_[i].time = timed_spans_.size();
      if (profile_ && steps_[i].begins_span) timed_spans_.push_back(steps_[i].span);
    }
    times_.reserve(timed_spans_.size() + 1);
  } catch (...) {
    return caught_exception("finishing a command list");
  }
  if (!profile_) return {};
  RT_TRY(device_.activate());
  for (size_t i = 0; i <= timed_spans_.size(); ++i) {
    cudaEvent_t event = nullptr;
    RT_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDefault), "creating an event");
    times_.push_back(event);
  }
  return {};
}

Status CudaCommands::bind_host(uint32_t slot, void*, size_t) noexcept {
  return unsupported("slot ", slot,
                     ": CUDA kernels do not work on host addresses; copy into the slot's slab");
}

Status CudaCommands::mark_time(size_t i, cudaStream_t stream) {
  // External: the event is recorded each time the graph runs.
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  RT_CUDA_TRY(cudaStreamIsCapturing(stream, &capturing), "profiling");
  const bool external = capturing == cudaStreamCaptureStatusActive;
  return check(cudaEventRecordWithFlags(times_[i], stream,
                                        external ? cudaEventRecordExternal : cudaEventRecordDefault),
               "profiling");
}

Status CudaCommands::run_steps(size_t first, size_t last, bool validate, cudaStream_t stream) {
  ProfilerRange range;
  for (size_t i = first; i < last; ++i) {
    const Step& step = steps_[i];
    if (profile_ && step.begins_span) {
      RT_TRY(mark_time(step.time, stream));
      range.begin(step.span < span_names_.size() ? span_names_[step.span] : nullptr);
    }
    cudaError_t error = run_task(*step.task, stream);
    if (error == cudaSuccess && validate) error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) {
      RT_TRY(step.task->failure());
      RT_TRY(device_.ranks_status());
    }
    RT_CUDA_TRY(error, "step ", i, " (span ", step.span, ") on '", device_.info().name, "'");
  }
  return {};
}

Status CudaCommands::capture(StepRange& range) {
  const cudaStream_t stream = device_.capture_stream();
  RT_CUDA_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a graph");
  Status status = run_steps(range.first, range.last, false, stream);
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
  if (!status.ok()) {
    if (captured != nullptr) cudaGraphDestroy(captured);
    return status;
  }
  const size_t steps = range.last - range.first;
  RT_CUDA_TRY(ended, "capturing a graph of ", steps, " steps");
  const cudaError_t made = cudaGraphInstantiate(&range.graph, captured, 0);
  cudaGraphDestroy(captured);
  if (made != cudaSuccess) range.graph = nullptr;
  return check(made, "instantiating a graph of ", steps, " steps");
}

Status CudaCommands::capture_or_queue(StepRange& range) {
  Status status = capture(range);
  if (status.ok() || status.code() == Code::DeviceLost) return status;
  RT_TRY(device_.ranks_status());
  try {
    nvtxMarkA(text("enqueued at each submit: ", status.message()).c_str());
  } catch (...) {  // a note without memory
  }
  not_captured_ = std::move(status);
  return {};
}

Status CudaCommands::submit() noexcept {
  if (!finished_) return internal_error("submit() before finish()");
  RT_TRY(device_.activate());
  const cudaStream_t stream = device_.compute_stream();
  for (const StepRange& range : ranges_) {
    if (range.graph != nullptr)
      RT_CUDA_TRY(cudaGraphLaunch(range.graph, stream), "launching a graph of ", range.last - range.first,
                  " steps");
    else
      RT_TRY(run_steps(range.first, range.last, device_.validation(), stream));
  }
  if (profile_) RT_TRY(mark_time(timed_spans_.size(), stream));
  // A graph's kernels are outside of the ranges in which it was captured.
  if (replay_ && !captured_ && !device_.validation() && !(profile_ && is_watched())) {
    for (StepRange& range : ranges_)
      if (steps_[range.first].replay == Replay::Graph) RT_TRY(capture_or_queue(range));
    captured_ = true;
  }
  RT_CUDA_TRY(cudaEventRecord(done_, stream), "recording an event");
  submitted_ = true;
  return {};
}

Status CudaCommands::wait() noexcept {
  if (!submitted_) return {};
  submitted_ = false;
  RT_TRY(device_.activate());
  const cudaError_t error = cudaEventSynchronize(done_);
  RT_TRY(device_.ranks_status());
  return check(error, "running ", steps_.size(), " steps on '", device_.info().name,
               "' (a session with validation names the step)");
}

Status CudaCommands::timings(std::span<uint64_t> nanoseconds) noexcept {
  if (!profile_) return invalid_argument("timings of a command list that was not begun with profile");
  RT_TRY(device_.activate());
  for (size_t i = 0; i < timed_spans_.size(); ++i) {
    float milliseconds = 0;
    RT_CUDA_TRY(cudaEventElapsedTime(&milliseconds, times_[i], times_[i + 1]), "reading the time of a span");
    if (timed_spans_[i] < nanoseconds.size())
      nanoseconds[timed_spans_[i]] += static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
  }
  return {};
}

}  // namespace librt::cuda
