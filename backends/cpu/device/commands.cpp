#include "backends/cpu/device/commands.h"

#include <cstring>
#include <new>

#include "backends/cpu/device/parallel.h"
#include "runtime/core/exception.h"

namespace librt::cpu {
namespace {

class CopyTask final : public Task {
 public:
  CopyTask(const BufferRef& destination, const BufferRef& source)
      : destination_(destination), source_(source) {}
  Status resolve(const Addresses& addresses) noexcept override {
    to_ = addresses.of(destination_);
    from_ = addresses.of(source_);
    return {};
  }
  Status run() noexcept override {
    if (to_ != from_ && source_.bytes > 0) std::memcpy(to_, from_, static_cast<size_t>(source_.bytes));
    return {};
  }

 private:
  BufferRef destination_, source_;
  std::byte* to_ = nullptr;
  const std::byte* from_ = nullptr;
};

}  // namespace

Commands::Commands(const RecordOptions& options, const Workers& workers)
    : bases_(options.slots.size(), nullptr),
      nanoseconds_(options.profile ? options.spans : 0, 0),
      spans_(options.spans),
      workers_(workers),
      stop_(options.stop),
      stoppable_(options.stoppable),
      profile_(options.profile) {
  for (size_t i = 0; i < bases_.size(); ++i)
    if (options.slots[i] != nullptr) bases_[i] = static_cast<std::byte*>(options.slots[i]->host());
}

Status Commands::add(std::unique_ptr<Task> task) noexcept {
  if (finished_) return internal_error("a finished command list was recorded into");
  RT_ATTEMPT {
    steps_.push_back({std::move(task), span_});
    if (stop_ != nullptr && span_ < stoppable_) stoppable_steps_ = steps_.size();
  }
  RT_CAUGHT {
    return caught_exception("recording a kernel");
  }
  return {};
}

Status Commands::mark(uint32_t span) noexcept {
  if (span >= spans_) return internal_error("mark ", span, " of a command list with ", spans_, " spans");
  span_ = span;
  return {};
}

Status Commands::copy(const BufferRef& destination, const BufferRef& source) noexcept {
  if (destination.bytes < source.bytes)
    return internal_error("copy of ", source.bytes, " bytes into ", destination.bytes);
  auto* task = new (std::nothrow) CopyTask(destination, source);
  if (task == nullptr) return Status(Code::OutOfMemory, "recording a copy: no memory");
  return add(std::unique_ptr<Task>(task));
}

Status Commands::finish() noexcept {
  finished_ = true;
  return {};
}

Status Commands::bind_host(uint32_t slot, void* address, size_t) noexcept {
  if (slot >= bases_.size())
    return internal_error("bind_host of slot ", slot, " in a command list with ", bases_.size(), " slots");
  if (bases_[slot] != address) {
    bases_[slot] = static_cast<std::byte*>(address);
    moved_ = true;
  }
  return {};
}

Status Commands::resolve() noexcept {
  const Addresses addresses(bases_);
  for (Step& step : steps_) RT_TRY(step.task->resolve(addresses));
  moved_ = false;
  return {};
}

Status Commands::run_steps() noexcept {
  if (!profile_) {
    size_t i = 0;
    for (; i < stoppable_steps_; ++i) {
      RT_TRY(stop_->check());
      RT_TRY(steps_[i].task->run());
    }
    for (; i < steps_.size(); ++i) RT_TRY(steps_[i].task->run());
    return {};
  }
  using Clock = std::chrono::steady_clock;
  for (uint64_t& span : nanoseconds_) span = 0;
  auto start = Clock::now();
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    if (i < stoppable_steps_) RT_TRY(stop_->check());
    RT_TRY(step.task->run());
    const auto end = Clock::now();
    if (step.span < nanoseconds_.size())
      nanoseconds_[step.span] +=
          static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
    start = end;
  }
  return {};
}

Status Commands::submit() noexcept {
  if (!finished_) return internal_error("submit() of a command list that was not finished");
  const ThreadScope threads(workers_);
  if (moved_) RT_TRY(resolve());
  if (workers_.pool == nullptr) return run_steps();
  Status status = run_steps();
  if (workers_.pool->was_misused())
    return invalid_argument(
        "rt_parallel: expected run() to call the task once for each index below the count, and then to "
        "return; "
        "it called some not at all, again, or late");
  return status;
}

Status Commands::timings(std::span<uint64_t> nanoseconds) noexcept {
  if (!profile_) return invalid_argument("timings of a command list that was recorded without profiling");
  for (size_t i = 0; i < nanoseconds.size() && i < nanoseconds_.size(); ++i)
    nanoseconds[i] += nanoseconds_[i];
  return {};
}

}  // namespace librt::cpu
