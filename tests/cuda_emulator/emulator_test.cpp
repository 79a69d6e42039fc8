// The emulator detects planted bugs, and its runtime rejects what CUDA rejects.
#include "cuda_emulator/emulator.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cuda_emulator/planted_bugs.h"

extern "C" {
void cuda_emulator_only_count(int only_count);
const char* cuda_emulator_counted_launches();
}

namespace librt::cuda::test {
namespace {

class Emulator : public testing::Test {
 protected:
  void SetUp() override {
    cuda_emulator::options() = {};
    cuda_emulator::clear_errors();
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x_), 128 * sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&y_), 64 * sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    std::vector<float> values(128);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    ASSERT_EQ(cudaMemcpy(x_, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  void TearDown() override {
    cuda_emulator::reset_runtime();
    cuda_emulator::options() = {};
    cudaStreamDestroy(stream_);
    cudaFree(x_);
    cudaFree(y_);
  }
  std::vector<float> result() {
    std::vector<float> values(64);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), y_, values.size() * sizeof(float), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }
  /// True when the kernel ran without a complaint and its result is right.
  bool unnoticed(Bug bug) {
    if (run_planted(bug, x_, y_, stream_) != cudaSuccess) return false;
    if (cudaStreamSynchronize(stream_) != cudaSuccess) return false;
    if (*cuda_emulator::error_text() != 0) return false;
    const auto values = result();
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != static_cast<float>(63 - i)) return false;
    return true;
  }

  float *x_ = nullptr, *y_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(Emulator, RunsARightKernelInEveryOrder) {
  using cuda_emulator::Order;
  for (const Order order : {Order::Forward, Order::Reverse, Order::Random})
    for (const bool lazy : {false, true}) {
      cuda_emulator::options().order = order;
      cuda_emulator::options().lazy_streams = lazy;
      EXPECT_TRUE(unnoticed(Bug::None)) << cuda_emulator::error_text();
    }
}

TEST_F(Emulator, CountsLaunchesWithoutRunningThem) {
  ASSERT_EQ(fill(y_, 1, stream_), cudaSuccess);
  cuda_emulator_only_count(1);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(fill(y_, 2, stream_), cudaSuccess);
  ASSERT_EQ(run_planted(Bug::None, x_, y_, stream_), cudaSuccess);
  EXPECT_STREQ(cuda_emulator_counted_launches(), "fill_kernel 3\nright 1\n");
  cuda_emulator_only_count(0);
  EXPECT_EQ(result(), std::vector<float>(64, 1.0f));
  EXPECT_STREQ(cuda_emulator_counted_launches(), "");
  EXPECT_TRUE(unnoticed(Bug::None)) << cuda_emulator::error_text();
}

TEST_F(Emulator, FindsPlantedMistakes) {
  for (int bug = 1; bug <= static_cast<int>(Bug::BlockBeyondLimit); ++bug) {
    EXPECT_FALSE(unnoticed(static_cast<Bug>(bug))) << "mistake " << bug;
    cuda_emulator::clear_errors();
    cuda_emulator::reset_runtime();
  }
  EXPECT_TRUE(unnoticed(Bug::None)) << "after faults: " << cuda_emulator::error_text();
}

TEST_F(Emulator, NamesTheSourceLineOfAMistake) {
  EXPECT_FALSE(unnoticed(Bug::ExitBeforeBarrier));
  EXPECT_NE(std::string(cuda_emulator::error_text()).find("planted_bugs.cu:"), std::string::npos)
      << cuda_emulator::error_text();
}

TEST_F(Emulator, RefusesAllocationAndWaitingWhileCapturing) {
  const auto broken = [&](auto forbidden, cudaError_t expected) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(forbidden(), expected);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  };
  void* memory = nullptr;
  float pageable[64] = {};
  broken([&] { return cudaMalloc(&memory, 16); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return cudaFree(y_); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return cudaStreamSynchronize(stream_); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return cudaMemcpyAsync(y_, pageable, sizeof pageable, cudaMemcpyHostToDevice, stream_); },
         cudaErrorStreamCaptureUnsupported);
}

TEST_F(Emulator, CapturedWorkRunsAtEachLaunchOnly) {
  ASSERT_EQ(fill(y_, 1, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(fill(y_, 2, stream_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(result()[0], 1);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(result()[0], 1);
  ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(result()[0], 2);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_F(Emulator, AForkMustBeJoined) {
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  for (const bool join : {true, false}) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    ASSERT_EQ(fill(y_, 3, other), cudaSuccess);
    if (join) {
      ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
      ASSERT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaSuccess);
    }
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), join ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  cudaEventDestroy(event);
  cudaStreamDestroy(other);
}

TEST_F(Emulator, LazyStreamsShowAMissingWait) {
  cuda_emulator::options().lazy_streams = true;
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  float* pinned = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), 256, 0), cudaSuccess);
  for (const bool ordered : {false, true}) {
    pinned[0] = 0;
    ASSERT_EQ(fill(y_, ordered ? 7.0f : 6.0f, stream_), cudaSuccess);
    if (ordered) {
      ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
      ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    }
    ASSERT_EQ(cudaMemcpyAsync(pinned, y_, 256, cudaMemcpyDeviceToHost, other), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    if (ordered)
      EXPECT_EQ(pinned[0], 7);
    else
      EXPECT_NE(pinned[0], 6);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  cudaFreeHost(pinned);
  cudaEventDestroy(event);
  cudaStreamDestroy(other);
}

TEST_F(Emulator, ChecksCopies) {
  float host[64] = {};
  EXPECT_EQ(cudaMemcpy(y_, host, sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(y_, host, 2 * sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, y_, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
}

}  // namespace
}  // namespace librt::cuda::test
