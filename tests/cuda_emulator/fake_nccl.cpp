// NCCL for the emulated device: ranks are processes of this machine that communicate through shared memory.
// Reductions are in rank order, so that all ranks get the same bits. As in NCCL, a communicator starts when
// all ranks are there; an operation waits for all of them, forever unless it is aborted.
//
// RT_FAKE_NCCL: "fails on N": rank N cannot start. "counts": every rank prints its operation counts to
// stderr.
#include "tests/cuda_emulator/fake_nccl.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "backends/cuda/libraries/nccl_library.h"
#include "cuda_emulator/device.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
namespace {

using namespace librt::cuda;
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
static_assert(nccl::kSuccess == static_cast<int>(ncclSuccess) &&
              nccl::kRemoteError == static_cast<int>(ncclRemoteError) &&
              nccl::kInProgress == static_cast<int>(ncclInProgress) &&
              nccl::kSum == static_cast<int>(ncclSum) && nccl::kInt8 == static_cast<int>(ncclInt8) &&
              nccl::kFloat32 == static_cast<int>(ncclFloat32) &&
              nccl::kFloat64 == static_cast<int>(ncclFloat64));
// The layout of the first fields, and their initial values.
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(ncclConfig_t(NCCL_CONFIG_INITIALIZER).magic == nccl::Config().magic);
// Our function types match the library's, argument by argument.
template <class Ours, class Theirs>
constexpr bool kSame = sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
template <class Ours, class... Our, class Theirs, class... Their>
constexpr bool fits(Ours (*)(Our...), Theirs (*)(Their...)) {
  return (kSame<Our, Their> && ...) && kSame<Ours, Theirs>;
}
#define RT_FUNCTION(name) \
  static_assert(fits(decltype(nccl::Functions::name)(nullptr), decltype (&nccl##name)(nullptr)));
RT_NCCL(RT_FUNCTION)
#undef RT_FUNCTION

}  // namespace
#endif

namespace {

using namespace librt::cuda::nccl;

constexpr int kMaxRanks = 16;
constexpr size_t kChunk = size_t{64} << 10;

/// Memory shared by the ranks; initially zero.
struct Rendezvous {
  std::atomic<uint64_t> here;     ///< ranks that have started
  std::atomic<uint64_t> arrived;  ///< at all barriers, cumulative
  alignas(64) std::byte chunks[kMaxRanks][kChunk];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

namespace librt::cuda::nccl {

struct Communicator {
  Rendezvous* rendezvous = nullptr;
  int rank = 0;
  int ranks = 1;
  uint64_t barriers = 0;
  bool failed = false;
  std::atomic<bool> aborted = false;
  int sums = 0, gathers = 0;
};

}  // namespace librt::cuda::nccl

namespace {

std::string_view setting() {
  const char* text = std::getenv("RT_FAKE_NCCL");
  return text != nullptr ? text : "";
}

Result get_version(int* version) {
  *version = 22809;
  return kSuccess;
}

Result get_unique_id(UniqueId* id) {
  static int made = 0;
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "/rt_fake_nccl_%d_%d", static_cast<int>(getpid()), made++);
  return kSuccess;
}

Result init(Communicator** made, int ranks, UniqueId id, int rank, Config* config) {
  constexpr Result kInvalidArgument{4}, kSystemError{2};
  if (ranks > kMaxRanks || rank < 0 || rank >= ranks || config == nullptr || config->size != sizeof(Config) ||
      config->magic != 0xcafebeef || config->blocking != 0)
    return kInvalidArgument;
  const int file = shm_open(id.bytes, O_RDWR | O_CREAT, 0600);
  if (file < 0) return kSystemError;
  void* memory = MAP_FAILED;
  if (ftruncate(file, sizeof(Rendezvous)) == 0)
    memory = mmap(nullptr, sizeof(Rendezvous), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kSystemError;
  auto* self = new Communicator;
  self->rendezvous = static_cast<Rendezvous*>(memory);
  self->rank = rank;
  self->ranks = ranks;
  *made = self;
  // The last rank to arrive unlinks the name.
  if (self->rendezvous->here.fetch_add(1) + 1 == static_cast<uint64_t>(ranks)) shm_unlink(id.bytes);
  constexpr std::string_view kFails = "fails on ";
  if (setting().starts_with(kFails))
    self->failed = std::strtol(setting().data() + kFails.size(), nullptr, 10) == rank;
  return kInProgress;
}

Result get_async_error(Communicator* self, Result* error) {
  const bool all = self->rendezvous->here.load() == static_cast<uint64_t>(self->ranks);
  *error = self->failed ? kRemoteError : all ? kSuccess : kInProgress;
  return kSuccess;
}

Result destroy(Communicator* self) {
  if (setting() == "counts")
    std::fprintf(stderr, "fake NCCL: rank %d: %d sums, %d gathers\n", self->rank, self->sums, self->gathers);
  munmap(self->rendezvous, sizeof(Rendezvous));
  delete self;
  return kSuccess;
}

Result finalize(Communicator*) {
  return kSuccess;
}

/// Aborts running operations. The communicator stays: its operations may still be queued.
Result abort_all(Communicator* self) {
  self->aborted = true;
  return kSuccess;
}

const char* error_string(Result result) {
  return result == kRemoteError ? "remote process exited or there was a network error" : "unhandled error";
}

/// Waits for all ranks. False when aborted.
bool barrier(Communicator& self) {
  const uint64_t wanted = ++self.barriers * static_cast<uint64_t>(self.ranks);
  self.rendezvous->arrived.fetch_add(1);
  while (self.rendezvous->arrived.load() < wanted) {
    if (self.aborted) return false;
    usleep(20);
  }
  return true;
}

/// An all-gather of `mine` in chunks: calls take(offset, bytes, rank, chunk) for each rank in order.
template <class Take>
void share(Communicator& self, const std::byte* mine, size_t bytes, Take take) {
  for (size_t offset = 0; offset < bytes; offset += kChunk) {
    const size_t size = std::min(kChunk, bytes - offset);
    std::memcpy(self.rendezvous->chunks[self.rank], mine + offset, size);
    if (!barrier(self)) return;
    for (int rank = 0; rank < self.ranks; ++rank) take(offset, size, rank, self.rendezvous->chunks[rank]);
    if (!barrier(self)) return;
  }
}

template <class Number>
void add_up(Communicator& self, std::byte* data, size_t count) {
  share(self, data, count * sizeof(Number),
        [&](size_t offset, size_t bytes, int rank, const std::byte* chunk) {
          auto* sums = reinterpret_cast<Number*>(data + offset);
          const auto* values = reinterpret_cast<const Number*>(chunk);
          for (size_t i = 0; i < bytes / sizeof(Number); ++i)
            sums[i] = rank == 0 ? values[i] : sums[i] + values[i];
        });
}

Result queue(std::function<void()> body, const void* symbol, cudaStream_t stream) {
  constexpr Result kUnhandledCudaError{1};
  return cuda_emulator::launch(std::move(body), symbol, dim3(1), dim3(1), 0, stream) == cudaSuccess
             ? kSuccess
             : kUnhandledCudaError;
}

Result all_reduce(const void* from, void* to, size_t count, DataType type, Operation operation,
                  Communicator* self, cudaStream_t stream) {
  constexpr Result kInvalidUsage{5};
  if (from != to || operation != kSum || (type != kFloat32 && type != kFloat64)) return kInvalidUsage;
  ++self->sums;
  auto* data = static_cast<std::byte*>(to);
  return queue(
      [=] { type == kFloat32 ? add_up<float>(*self, data, count) : add_up<double>(*self, data, count); },
      reinterpret_cast<const void*>(&all_reduce), stream);
}

Result all_gather(const void* from, void* to, size_t count, DataType type, Communicator* self,
                  cudaStream_t stream) {
  constexpr Result kInvalidUsage{5};
  auto* data = static_cast<std::byte*>(to);
  if (type != kInt8 || from != data + static_cast<size_t>(self->rank) * count) return kInvalidUsage;
  ++self->gathers;
  const auto* mine = static_cast<const std::byte*>(from);
  return queue(
      [=] {
        share(*self, mine, count, [&](size_t offset, size_t bytes, int rank, const std::byte* chunk) {
          std::memcpy(data + static_cast<size_t>(rank) * count + offset, chunk, bytes);
        });
      },
      reinterpret_cast<const void*>(&all_gather), stream);
}

constexpr Functions kFunctions{get_version, get_unique_id,   init,         finalize,   destroy,
                               abort_all,   get_async_error, error_string, all_reduce, all_gather};

}  // namespace

namespace cuda_emulator {

void* fake_nccl_function(const char* name) noexcept {
  const std::string_view wanted = name;
#define RT_FUNCTION(each) \
  if (wanted == "nccl" #each) return reinterpret_cast<void*>(kFunctions.each);
  RT_NCCL(RT_FUNCTION)
#undef RT_FUNCTION
  return nullptr;
}

}  // namespace cuda_emulator
