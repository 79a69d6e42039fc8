#include "backends/cuda/libraries/nccl.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "backends/common/ranks.h"
#include "backends/cuda/device/errors.h"
#include "backends/cuda/libraries/nccl_library.h"

namespace librt::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::lock_guard<std::mutex>;

constexpr std::chrono::milliseconds kPollInterval{100};  // polling interval for the other ranks' state
constexpr std::chrono::seconds kStartLimit{120};
/// A connection breaks before the peer's process is known to have ended, which is the better message.
constexpr std::chrono::seconds kWhoEnded{1};

const char* problem_of(const rt_communicator& ranks) {
  if (ranks.struct_size < offsetof(rt_communicator, check) + sizeof(ranks.check) || ranks.check == nullptr)
    return nullptr;
  return ranks.check(ranks.user);
}

class Opened final : public Nccl {
 public:
  Opened(nccl::Library library, const rt_communicator& ranks) : library_(std::move(library)), ranks_(ranks) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() override;

  Status start(const nccl::UniqueId& id);
  /// Aborts what start() began, without the others.
  void give_up() {
    const Lock lock(mutex_);
    abort();
  }

  std::string version() const override { return library_.version_text(); }
  Status status() const override {
    const Lock lock(problem_mutex_);
    return problem_;
  }
  cudaError_t all_reduce(void* data, size_t count, DType dtype, cudaStream_t after) noexcept override {
    return begin(data, after, [&] {
      return call().AllReduce(data, data, count, dtype == DType::F32 ? nccl::kFloat32 : nccl::kFloat64,
                              nccl::kSum, communicator_, stream_);
    });
  }
  cudaError_t all_gather(void* data, size_t bytes, cudaStream_t after) noexcept override {
    return begin(data, after, [&] {
      const std::byte* own = static_cast<std::byte*>(data) + own_rank(&ranks_) * bytes;
      return call().AllGather(own, data, bytes, nccl::kInt8, communicator_, stream_);
    });
  }
  cudaError_t wait(const void* data, cudaStream_t stream) noexcept override;

 private:
  struct Running {
    const void* data = nullptr;  ///< null: none in flight
    cudaEvent_t done = nullptr;
  };

  const nccl::Functions& call() const { return library_.call; }
  template <class Queue>
  cudaError_t begin(const void* data, cudaStream_t after, Queue queue) noexcept;
  cudaError_t find_running(const void* data, Running*& found);
  /// Waits until the library has finished its pending host work; with mutex_ held.
  Status settle(Clock::time_point limit);
  Status failure(nccl::Result result) const {
    return Status::make(Code::Device, "NCCL: ", call().GetErrorString(result));
  }
  void fail(Status problem) {
    const Lock lock(problem_mutex_);
    if (problem_.ok()) problem_ = std::move(problem);
  }
  void watch();
  Status poll();
  void abort();

  nccl::Library library_;
  const rt_communicator& ranks_;
  std::mutex mutex_;  ///< guards the communicator and everything below
  nccl::Communicator* communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t ready_ = nullptr;  ///< records the stream state that the next operation waits for
  std::vector<Running> running_;
  mutable std::mutex problem_mutex_;
  Status problem_;
  std::mutex watch_mutex_;
  std::condition_variable closing_;
  bool is_closing_ = false;
  std::thread watch_;
};

Status Opened::start(const nccl::UniqueId& id) {
  RT_CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating the stream for ranks");
  RT_CUDA_TRY(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), "creating an event");
  const Lock lock(mutex_);
  nccl::Config config;
  const nccl::Result result =
      call().CommInitRankConfig(&communicator_, ranks_.ranks, id, ranks_.rank, &config);
  Status status = result == nccl::kSuccess || result == nccl::kInProgress ? settle(Clock::now() + kStartLimit)
                                                                          : failure(result);
  if (!status.ok()) {
    abort();
    return status;
  }
  try {
    watch_ = std::thread([this] { watch(); });
  } catch (const std::system_error& error) {
    abort();
    return Status::make(Code::Device, "starting the thread that watches the ranks: ", error.what());
  }
  return {};
}

Opened::~Opened() {
  {
    const Lock lock(watch_mutex_);
    is_closing_ = true;
  }
  closing_.notify_one();
  if (watch_.joinable()) watch_.join();
  const Lock lock(mutex_);
  // The others would not follow a failed rank.
  if (problem_of(ranks_) != nullptr) abort();
  if (communicator_ != nullptr) {
    call().CommFinalize(communicator_);
    if (settle(Clock::now() + kStartLimit).ok())
      call().CommDestroy(communicator_);
    else
      abort();
  }
  for (const Running& each : running_) cudaEventDestroy(each.done);
  if (ready_ != nullptr) cudaEventDestroy(ready_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

Status Opened::settle(Clock::time_point limit) {
  for (Clock::time_point next_poll = Clock::now() + kPollInterval;;) {
    nccl::Result state = nccl::kSuccess;
    if (const nccl::Result asked = call().CommGetAsyncError(communicator_, &state); asked != nccl::kSuccess)
      return failure(asked);
    if (state == nccl::kSuccess) return {};
    if (state != nccl::kInProgress) return failure(state);
    const Clock::time_point now = Clock::now();
    if (now > limit) return Status(Code::Device, "NCCL: timed out waiting for the other ranks");
    if (now > next_poll) {
      RT_TRY(said(problem_of(ranks_)));
      next_poll = now + kPollInterval;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

cudaError_t Opened::find_running(const void* data, Running*& found) {
  for (const void* wanted : {data, static_cast<const void*>(nullptr)})
    for (Running& each : running_)
      if (each.data == wanted) {
        found = &each;
        return cudaSuccess;
      }
  Running fresh;
  const cudaError_t error = cudaEventCreateWithFlags(&fresh.done, cudaEventDisableTiming);
  if (error != cudaSuccess) return error;
  running_.push_back(fresh);
  found = &running_.back();
  return cudaSuccess;
}

template <class Queue>
cudaError_t Opened::begin(const void* data, cudaStream_t after, Queue queue) noexcept try {
  const Lock lock(mutex_);
  if (communicator_ == nullptr) return cudaErrorUnknown;
  Running* running = nullptr;
  if (const cudaError_t error = find_running(data, running); error != cudaSuccess) return error;
  if (const cudaError_t error = cudaEventRecord(ready_, after); error != cudaSuccess) return error;
  if (const cudaError_t error = cudaStreamWaitEvent(stream_, ready_, 0); error != cudaSuccess) return error;
  const nccl::Result result = queue();
  Status status = result == nccl::kInProgress ? settle(Clock::now() + kStartLimit)
                  : result == nccl::kSuccess  ? Status()
                                              : failure(result);
  if (!status.ok()) {
    fail(std::move(status));
    return cudaErrorUnknown;
  }
  running->data = data;
  return cudaEventRecord(running->done, stream_);
} catch (const std::bad_alloc&) {
  return cudaErrorMemoryAllocation;
}

cudaError_t Opened::wait(const void* data, cudaStream_t stream) noexcept {
  const Lock lock(mutex_);
  for (Running& each : running_) {
    if (each.data != data) continue;
    each.data = nullptr;
    return cudaStreamWaitEvent(stream, each.done, 0);
  }
  return cudaErrorInvalidValue;
}

/// The watcher thread's body.
void Opened::watch() {
  std::unique_lock lock(watch_mutex_);
  while (!closing_.wait_for(lock, kPollInterval, [&] { return is_closing_; })) {
    Status problem = poll();
    if (problem.ok()) continue;
    fail(std::move(problem));
    const Lock own(mutex_);
    abort();
    return;
  }
}

Status Opened::poll() {
  RT_TRY(said(problem_of(ranks_)));
  nccl::Result state = nccl::kSuccess, asked = nccl::kSuccess;
  {
    const Lock lock(mutex_);
    if (communicator_ == nullptr) return {};
    asked = call().CommGetAsyncError(communicator_, &state);
  }
  if (asked == nccl::kSuccess && (state == nccl::kSuccess || state == nccl::kInProgress)) return {};
  for (const auto limit = Clock::now() + kWhoEnded; Clock::now() < limit;
       std::this_thread::sleep_for(kPollInterval / 10))
    RT_TRY(said(problem_of(ranks_)));
  return failure(asked != nccl::kSuccess ? asked : state);
}

void Opened::abort() {
  if (communicator_ != nullptr) call().CommAbort(communicator_);
  communicator_ = nullptr;
}

/// Sent by each rank to all others.
struct Notice {
  char problem[384] = {};
  nccl::UniqueId id{};
};

/// Exchanges notices. refusal: the problem of the first rank that has one.
Status exchange(const rt_communicator& ranks, const Status& own, std::vector<Notice>& all, Status& refusal) {
  Notice& mine = all[own_rank(&ranks)];
  if (!own.ok()) own.message().copy(mine.problem, sizeof mine.problem - 1);
  RT_TRY(said(ranks.all_gather(ranks.user, all.data(), sizeof(Notice))));
  RT_TRY(said(ranks.wait(ranks.user, all.data())));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (refusal.ok() && all[rank].problem[0] != '\0')
      refusal = unsupported("rank ", rank, ": ", all[rank].problem);
  return {};
}

}  // namespace

Result<std::unique_ptr<Nccl>> Nccl::open(const rt_communicator& ranks, Status& refusal) {
  std::unique_ptr<Opened> opened;
  std::vector<Notice> all(static_cast<size_t>(rank_count(&ranks)));
  Status own;
  if (auto library = nccl::load(); !library.ok()) {
    own = std::move(library).status();
  } else {
    const nccl::Functions& call = library->call;
    if (ranks.rank == 0)
      if (const nccl::Result made = call.GetUniqueId(&all[0].id); made != nccl::kSuccess)
        own = unsupported("NCCL: ", call.GetErrorString(made));
    opened = std::make_unique<Opened>(std::move(library).value(), ranks);
  }
  RT_TRY(exchange(ranks, own, all, refusal));
  if (!refusal.ok()) return std::unique_ptr<Nccl>();
  own = opened->start(all[0].id);
  const Status met = exchange(ranks, own, all, refusal);
  if (!met.ok() || !refusal.ok()) opened->give_up();
  RT_TRY(met);
  if (!refusal.ok()) return std::unique_ptr<Nccl>();
  return std::unique_ptr<Nccl>(std::move(opened));
}

}  // namespace librt::cuda
