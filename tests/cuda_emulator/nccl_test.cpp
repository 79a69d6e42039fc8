// Collectives between two processes on the emulated device, and the behaviour when one of them dies.
#include "backends/cuda/libraries/nccl.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "cuda_emulator/emulator.h"

namespace librt::cuda {
namespace {

/// Two processes connected by a socket pair.
struct Pair {
  int socket = -1;
  pid_t other = 0;  ///< set in the parent
  rt_communicator table{
      .struct_size = sizeof table,
      .user = this,
      .ranks = 2,
      .all_gather = [](void* self, void* data, size_t bytes) -> const char* {
        const auto& own = *static_cast<Pair*>(self);
        auto* parts = static_cast<std::byte*>(data);
        const auto mine = static_cast<size_t>(own.table.rank) * bytes;
        const bool done =
            write(own.socket, parts + mine, bytes) == static_cast<ssize_t>(bytes) &&
            recv(own.socket, parts + (bytes - mine), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
        return done ? nullptr : "the other rank does not answer";
      },
      .wait = [](void*, void*) -> const char* { return nullptr; },
      .check = [](void* self) -> const char* {
        const pid_t child = static_cast<Pair*>(self)->other;
        siginfo_t ended{};
        const bool is_gone =
            child != 0 && waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            ended.si_pid == child;
        return is_gone ? "rank 1 has ended" : nullptr;
      }};
};

constexpr size_t kCount = 50'000;  // several chunks

/// All-reduces 1 + rank to 3; then all-gathers the ranks' parts.
bool sums_and_gathers(Nccl& nccl, int rank, float* data, cudaStream_t stream) {
  const std::vector<float> mine(kCount, static_cast<float>(1 + rank));
  std::vector<float> got(kCount);
  const auto copy = [&](float* to, const float* from, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, kCount * sizeof(float), kind, stream) == cudaSuccess;
  };
  if (!copy(data, mine.data(), cudaMemcpyHostToDevice) ||
      nccl.all_reduce(data, kCount, DType::F32, stream) != cudaSuccess ||
      nccl.wait(data, stream) != cudaSuccess || !copy(got.data(), data, cudaMemcpyDeviceToHost))
    return false;
  if (got != std::vector<float>(kCount, 3.0f)) return false;
  constexpr size_t kHalf = kCount / 2;
  if (!copy(data, mine.data(), cudaMemcpyHostToDevice) ||
      nccl.all_gather(data, kHalf * sizeof(float), stream) != cudaSuccess ||
      nccl.wait(data, stream) != cudaSuccess || !copy(got.data(), data, cudaMemcpyDeviceToHost))
    return false;
  std::vector<float> parts(kCount, 1.0f);
  std::fill(parts.begin() + kHalf, parts.end(), 2.0f);
  return got == parts;
}

struct Device {
  cudaStream_t stream = nullptr;
  void* memory = nullptr;
  Device() {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&memory, kCount * sizeof(float));
  }
  ~Device() {
    cudaStreamDestroy(stream);
    cudaFree(memory);
  }
};

TEST(Nccl, AddsUpAndEndsWithTheRankThatDies) {
  setenv("RT_EMULATOR_LIBRARIES", "nccl", 1);
  cuda_emulator::options().lazy_streams = true;  // begin must not wait for the other rank
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  const int rank = child == 0 ? 1 : 0;
  Pair pair;
  pair.socket = sockets[static_cast<size_t>(rank)];
  pair.other = child;
  pair.table.rank = rank;
  close(sockets[static_cast<size_t>(1 - rank)]);
  Device device;
  auto* data = static_cast<float*>(device.memory);
  Status refusal;
  auto nccl = Nccl::open(pair.table, refusal);
  if (child == 0)  // dies between two operations
    _exit(nccl.ok() && *nccl != nullptr && sums_and_gathers(**nccl, rank, data, device.stream) ? 0 : 1);
  ASSERT_TRUE(nccl.ok()) << nccl.status().message();
  ASSERT_NE(*nccl, nullptr) << refusal.message();
  EXPECT_EQ((*nccl)->version(), "2.28.9");
  EXPECT_TRUE(sums_and_gathers(**nccl, rank, data, device.stream));
  EXPECT_EQ((*nccl)->all_reduce(data, kCount, DType::F32, device.stream), cudaSuccess);
  EXPECT_EQ((*nccl)->wait(data, device.stream), cudaSuccess);
  cudaStreamSynchronize(device.stream);
  EXPECT_EQ((*nccl)->status().message(), "rank 1 has ended");
  EXPECT_NE((*nccl)->all_reduce(data, kCount, DType::F32, device.stream), cudaSuccess);
  nccl->reset();
  int ended = 0;
  waitpid(child, &ended, 0);
  EXPECT_EQ(ended, 0) << "the other rank's sums";
  unsetenv("RT_EMULATOR_LIBRARIES");
}

TEST(Nccl, IsThereForAllRanksOrForNone) {
  unsetenv("RT_EMULATOR_LIBRARIES");
  Pair alone;
  alone.table.all_gather = [](void*, void*, size_t) -> const char* { return nullptr; };
  Status refusal;
  const auto nccl = Nccl::open(alone.table, refusal);
  ASSERT_TRUE(nccl.ok());
  EXPECT_EQ(*nccl, nullptr);
  EXPECT_EQ(refusal.message().find("rank 0: libnccl.so.2 was not found"), 0u) << refusal.message();
}

}  // namespace
}  // namespace librt::cuda
