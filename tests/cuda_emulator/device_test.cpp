// Device selection, error messages without a device, and transfers and graphs of the backend on the emulator.
#include "backends/cuda/device/device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

#include "backends/cuda/kernel.h"
#include "backends/cuda/support/index_space.h"
#include "cuda_emulator/emulator.h"
#include "kernels/unary.h"

namespace librt::cuda {
namespace {

bool says(const Status& status, std::string_view words) {
  return !status.ok() && status.message().find(words) != std::string::npos;
}

TEST(CudaProbe, SaysWhatIsMissing) {
  ProbeFacts facts{.runtime_version = 13000};
  facts.error = cudaErrorInsufficientDriver;
  facts.no_driver = "libcuda.so.1: file too short";
  EXPECT_TRUE(says(explain(facts), "there is no NVIDIA driver (libcuda.so.1: file too short); install"));
  facts.driver_version = 12080;
  EXPECT_TRUE(says(explain(facts), "supports CUDA 12.8, this build needs 13.0"));
  facts.error = cudaErrorStubLibrary;
  EXPECT_TRUE(says(explain(facts), "stub"));
  facts.error = cudaErrorNoDevice;
  EXPECT_TRUE(says(explain(facts), "lists no device"));
  facts.visible_set = true;
  facts.visible = "-1";
  EXPECT_TRUE(says(explain(facts), "CUDA_VISIBLE_DEVICES='-1'"));
  facts = {.error = cudaErrorUnknown, .error_text = "unknown error"};
  EXPECT_TRUE(says(explain(facts), "unknown error"));
  EXPECT_TRUE(explain({.count = 1}).ok());
}

TEST(CudaProbe, CompiledArchitectures) {
  EXPECT_TRUE(runs_on("75-real;80-real;90-real", 75));
  EXPECT_TRUE(runs_on("75-real;80-real;90-real", 86));
  EXPECT_FALSE(runs_on("75-real;86-real", 80));
  EXPECT_FALSE(runs_on("75-real;80-real;90-real", 100));
  EXPECT_TRUE(runs_on("90", 120));  // runs its PTX
  EXPECT_FALSE(runs_on("90-real", 120));
  EXPECT_FALSE(runs_on("90", 89));
  EXPECT_TRUE(runs_on("90a-real", 90));
  EXPECT_FALSE(runs_on("90a", 100));
  EXPECT_FALSE(runs_on("", 90));
}

TEST(CudaProbe, ChoosesByIndexNameOrUuid) {
  std::vector<DeviceFacts> devices(3);
  devices[0] = {.ordinal = 0, .name = "Old", .uuid = "00", .compute_capability = 50};
  devices[1] = {.ordinal = 1, .name = "NVIDIA H200", .uuid = "a1", .compute_capability = 90};
  devices[2] = {.ordinal = 2, .name = "NVIDIA L4", .uuid = "b2", .compute_capability = 89};
  const auto chosen = [&](std::string_view wanted) {
    const auto result = choose_device(devices, wanted);
    return result.ok() ? static_cast<int>(*result) : -1;
  };
  EXPECT_EQ(chosen(""), 1);
  EXPECT_EQ(chosen("2"), 2);
  for (const auto& [rank, device] : {std::pair{1, 2u}, {2, 1u}, {3, 2u}})
    EXPECT_EQ(*choose_device(devices, "", rank), device) << "rank " << rank << " of this machine";
  EXPECT_EQ(chosen("l4"), 2);
  EXPECT_EQ(chosen("A1"), 1);
  EXPECT_TRUE(says(choose_device(devices, "0").status(), "compute capability 5.0"));
  EXPECT_TRUE(says(choose_device(devices, "3").status(), "there is no CUDA device 3"));
  EXPECT_TRUE(says(choose_device(devices, "A100").status(), "NVIDIA L4"));
  EXPECT_TRUE(says(choose_device({}, "").status(), "no CUDA device"));
}

TEST(CudaProbe, RefusesUnsupportedArchitecture) {
  cuda_emulator::options().compute_capability = 50;
  const auto device = CudaDevice::open({});
  cuda_emulator::options() = {};
  EXPECT_TRUE(says(device.status(),
                   "has compute capability 5.0, this build has code for 75; build with "
                   "RT_CUDA_ARCHITECTURES=50"));
}

TEST(CudaProbe, ABrokenDeviceHidesNoOther) {
  cuda_emulator::options().devices = 2;
  setenv("RT_EMULATOR_BROKEN", "0", 1);
  std::vector<DeviceFacts> devices;
  EXPECT_TRUE(list_devices(devices).ok());
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_TRUE(says(usable(devices[0]), "querying the properties of CUDA device 0"));
  EXPECT_TRUE(usable(devices[1]).ok());
  const auto chosen = choose_device(devices, "");
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(*chosen, 1u);
  EXPECT_TRUE(says(choose_device(devices, "0").status(), "restart it"));
  unsetenv("RT_EMULATOR_BROKEN");
  cuda_emulator::options() = {};
}

TEST(CudaIndexSpace, MergesAxesWalkedInOneStride) {
  const auto merged = [](std::vector<int64_t> extents, std::vector<int64_t> strides) {
    IndexSpace<1> space{};
    space.rank = static_cast<int>(extents.size());
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      space.extents[axis] = extents[axis];
      space.strides[0][axis] = strides[axis];
    }
    collapse(space);
    return std::vector<int64_t>(space.extents, space.extents + space.rank);
  };
  using Extents = std::vector<int64_t>;
  EXPECT_EQ(merged({2, 3, 4}, {12, 4, 1}), (Extents{24}));
  EXPECT_EQ(merged({2, 1, 3, 4}, {24, 12, 4, 1}), (Extents{2, 12}));
  EXPECT_EQ(merged({1, 1}, {1, 1}), (Extents{1}));
  constexpr int64_t kLarge = int64_t{1} << 20;
  EXPECT_EQ(merged({kLarge, kLarge}, {kLarge, 1}), (Extents{kLarge * kLarge}));
  EXPECT_EQ(merged({3, kLarge, kLarge}, {0, kLarge, 1}), (Extents{3, kLarge, kLarge}));
}

class Emulated : public testing::Test {
 protected:
  void SetUp() override {
    cuda_emulator::options().lazy_streams = true;
    auto device = CudaDevice::open({});
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(*device);
  }
  void TearDown() override {
    device_.reset();
    cuda_emulator::options() = {};
    EXPECT_EQ(cuda_emulator::device_bytes(), 0u);
  }
  DevicePtr device_;
};

TEST_F(Emulated, TransfersInParts) {
  const size_t size = (size_t{9} << 20) + 123;  // more than both pinned staging buffers
  auto slab = device_->allocate(size + 64);
  ASSERT_TRUE(slab.ok());
  std::vector<std::byte> sent(size), received(size);
  for (size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i * 31 >> 3);
  ASSERT_TRUE(device_->upload(**slab, 64, sent).ok());
  ASSERT_TRUE(device_->download(**slab, 64, received).ok());
  EXPECT_EQ(sent, received);
  EXPECT_TRUE(says(device_->upload(**slab, 65, sent), "upload of"));
}

TEST_F(Emulated, ReplaysWhatItRecorded) {
  constexpr int64_t kCount = 1000;
  auto slab = device_->allocate(2 * 4096);
  ASSERT_TRUE(slab.ok());
  for (const bool profile : {false, true}) {
    Slab* const slots[] = {slab->get()};
    auto commands = device_->begin({.slots = slots, .spans = 2, .profile = profile});
    ASSERT_TRUE(commands.ok());
    const BufferRef in{0, 0, kCount * 4}, out{0, 4096, kCount * 4};
    const auto kernel = make_kernel([](const Call& call) {
      return unary({ElementType::F32, {Function::Neg}, call.in(0), call.out(), kCount}, call.stream);
    });
    ASSERT_TRUE((*commands)->mark(1).ok());
    ASSERT_TRUE(kernel->record(**commands, {.inputs = {&in, 1}, .outputs = {&out, 1}}).ok());
    ASSERT_TRUE(says((*commands)->submit(), "before finish"));
    ASSERT_TRUE((*commands)->finish().ok());
    for (const float run : {1.0f, 2.0f, 3.0f, 4.0f}) {
      std::vector<float> values(kCount, run);
      ASSERT_TRUE(device_->upload(**slab, 0, std::as_bytes(std::span(values))).ok());
      ASSERT_TRUE((*commands)->submit().ok());
      ASSERT_TRUE((*commands)->wait().ok());
      ASSERT_TRUE(device_->download(**slab, 4096, std::as_writable_bytes(std::span(values))).ok());
      EXPECT_EQ(values, std::vector<float>(kCount, -run));
      uint64_t spans[2] = {0, 0};
      EXPECT_EQ((*commands)->timings(spans).ok(), profile);
      EXPECT_EQ(spans[0], 0u);
      EXPECT_EQ(spans[1] > 0, profile);
    }
  }
}

/// The steps are enqueued at each submit instead.
TEST_F(Emulated, ARefusedCaptureIsNoError) {
  constexpr int64_t kCount = 100;
  auto slab = device_->allocate(4096);
  ASSERT_TRUE(slab.ok());
  for (const char* where : {"begin", "step", "end", "instantiate"}) {
    setenv("RT_EMULATOR_CAPTURE", where, 1);
    Slab* const slots[] = {slab->get()};
    auto commands = device_->begin({.slots = slots, .spans = 1});
    ASSERT_TRUE(commands.ok());
    const BufferRef x{0, 0, kCount * 4};
    const auto kernel = make_kernel([](const Call& call) {
      return unary({ElementType::F32, {Function::Neg}, call.in(0), call.out(), kCount}, call.stream);
    });
    ASSERT_TRUE(kernel->record(**commands, {.inputs = {&x, 1}, .outputs = {&x, 1}}).ok());
    ASSERT_TRUE((*commands)->finish().ok());
    std::vector<float> values(kCount, 2.0f);
    ASSERT_TRUE(device_->upload(**slab, 0, std::as_bytes(std::span(values))).ok());
    for (int run = 0; run < 3; ++run) {
      const Status status = (*commands)->submit();
      ASSERT_TRUE(status.ok()) << where << ": " << status.message();
      ASSERT_TRUE((*commands)->wait().ok()) << where;
    }
    ASSERT_TRUE(device_->download(**slab, 0, std::as_writable_bytes(std::span(values))).ok());
    EXPECT_EQ(values, std::vector<float>(kCount, -2.0f)) << where;
    EXPECT_FALSE(static_cast<CudaCommands&>(**commands).not_captured().ok()) << where;
  }
  unsetenv("RT_EMULATOR_CAPTURE");
}

TEST_F(Emulated, OperandsAreAligned) {
  auto slab = device_->allocate(4096);
  ASSERT_TRUE(slab.ok());
  Slab* const slots[] = {slab->get()};
  auto commands = device_->begin({.slots = slots, .spans = 1});
  ASSERT_TRUE(commands.ok());
  const BufferRef aligned{0, 256, 400}, misaligned{0, 16, 400};
  const auto kernel = make_kernel([](const Call&) { return cudaSuccess; });
  EXPECT_TRUE(kernel->record(**commands, {.inputs = {&aligned, 1}, .outputs = {&aligned, 1}}).ok());
  EXPECT_TRUE(says(kernel->record(**commands, {.inputs = {&misaligned, 1}, .outputs = {&aligned, 1}}),
                   "step 1: expected operands at multiples of 256 bytes"));
}

/// Work that CUDA could run concurrently: lazy streams run work only when something waits for it.
TEST_F(Emulated, ExchangedBytesWaitForNoWorkBeforeThem) {
  constexpr size_t kBytes = (size_t{9} << 20) + 12;  // more than both pinned staging buffers
  auto working = device_->allocate(4096), exchange = device_->allocate_exchange(kBytes);
  ASSERT_TRUE(working.ok() && exchange.ok());
  const float* const result = reinterpret_cast<float*>(static_cast<CudaSlab&>(**working).address());
  Slab* const slots[] = {working->get(), exchange->get()};
  auto compute = device_->begin({.slots = slots}), copy = device_->begin({.slots = slots});
  ASSERT_TRUE(compute.ok() && copy.ok());
  const BufferRef one{0, 0, 4}, last{1, kBytes - 4, 4};
  const auto kernel = make_kernel([](const Call& call) {
    return unary({ElementType::F32, {Function::Neg}, call.in(0), call.out(), 1}, call.stream);
  });
  ASSERT_TRUE(kernel->record(**compute, {.inputs = {&one, 1}, .outputs = {&one, 1}}).ok());
  ASSERT_TRUE((*compute)->finish().ok());
  ASSERT_TRUE((*copy)->copy(one, last).ok());
  ASSERT_TRUE((*copy)->finish().ok());
  std::vector<float> sent(kBytes / 4, 3), received(kBytes / 4);
  const auto bytes = std::as_bytes(std::span(sent));
  ASSERT_TRUE(device_->upload(**working, 0, bytes.first(4)).ok());
  for (const bool captured : {false, true}) {
    ASSERT_TRUE((*copy)->submit().ok());
    ASSERT_TRUE((*copy)->wait().ok());
    ASSERT_TRUE(device_->upload(**working, 0, bytes.first(4)).ok());
    ASSERT_TRUE((*compute)->submit().ok());
    EXPECT_TRUE(device_->upload(**exchange, 0, bytes).ok());
    EXPECT_TRUE(device_->download(**exchange, 0, std::as_writable_bytes(std::span(received))).ok());
    EXPECT_EQ(received, sent);
    EXPECT_EQ(*result, 3) << "the work before the transfers has run, " << (captured ? "" : "not ")
                          << "captured";
    sent.back() = 5;
    ASSERT_TRUE(device_->upload(**exchange, 0, bytes).ok());
    ASSERT_TRUE((*copy)->submit().ok());
    ASSERT_TRUE((*copy)->wait().ok());
    EXPECT_EQ(*result, 5) << "the work after the transfers did not wait for them";
    sent.back() = 3;
    ASSERT_TRUE((*compute)->wait().ok());
  }
}

TEST_F(Emulated, AnErrorNamesItsStep) {
  auto slab = device_->allocate(4096);
  ASSERT_TRUE(slab.ok());
  Slab* const slots[] = {slab->get()};
  auto commands = device_->begin({.slots = slots, .spans = 8});
  ASSERT_TRUE(commands.ok());
  const auto kernel = make_kernel([](const Call&) { return cudaErrorInvalidConfiguration; });
  ASSERT_TRUE((*commands)->mark(7).ok());
  ASSERT_TRUE(kernel->record(**commands, {}).ok());
  ASSERT_TRUE((*commands)->finish().ok());
  EXPECT_TRUE(says((*commands)->submit(), "step 0 (span 7)"));
}

TEST_F(Emulated, WithoutReplayEachSubmitLaunches) {
  auto slab = device_->allocate(4096);
  ASSERT_TRUE(slab.ok());
  Slab* const slots[] = {slab->get()};
  static int launches;
  const auto kernel = make_kernel([](const Call&) {
    ++launches;
    return cudaSuccess;
  });
  for (const bool replay : {true, false}) {
    auto commands = device_->begin({.slots = slots, .spans = 1, .replay = replay});
    ASSERT_TRUE(commands.ok());
    ASSERT_TRUE(kernel->record(**commands, {}).ok());
    ASSERT_TRUE((*commands)->finish().ok());
    launches = 0;
    for (int run = 0; run < 5; ++run) {
      ASSERT_TRUE((*commands)->submit().ok());
      ASSERT_TRUE((*commands)->wait().ok());
    }
    // With replay: the first run, and the capture of the graph.
    EXPECT_EQ(launches, replay ? 2 : 5);
  }
}

/// Graph capture rejects these too, but would miss a kernel that allocates only at its first run, before the
/// capture.
TEST_F(Emulated, AStepNeitherAllocatesNorWaits) {
  auto slab = device_->allocate(4096);
  ASSERT_TRUE(slab.ok());
  Slab* const slots[] = {slab->get()};
  static void* memory;
  static cudaEvent_t event;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  static std::array<float, 16> pageable;
  const std::pair<const char*, cudaError_t (*)(const Call&)> offences[] = {
      {"cudaMalloc", [](const Call&) { return memory == nullptr ? cudaMalloc(&memory, 64) : cudaSuccess; }},
      {"cudaHostAlloc",
       [](const Call&) { return memory == nullptr ? cudaHostAlloc(&memory, 64, 0) : cudaSuccess; }},
      {"cudaFree", [](const Call&) { return cudaFree(nullptr); }},
      {"cudaStreamSynchronize", [](const Call& call) { return cudaStreamSynchronize(call.stream); }},
      {"cudaDeviceSynchronize", [](const Call&) { return cudaDeviceSynchronize(); }},
      {"cudaEventSynchronize", [](const Call&) { return cudaEventSynchronize(event); }},
      {"a copy from pageable memory", [](const Call& call) {
         return cudaMemcpyAsync(call.out(), &pageable, sizeof pageable, cudaMemcpyHostToDevice, call.stream);
       }}};
  const BufferRef out{0, 0, sizeof pageable};
  for (const auto& [name, offence] : offences)
    for (const Replay replay : {Replay::Graph, Replay::Queue}) {
      auto commands = device_->begin({.slots = slots, .spans = 1});
      ASSERT_TRUE(commands.ok());
      const auto kernel = make_kernel(offence, {}, nullptr, replay);
      ASSERT_TRUE(kernel->record(**commands, {.outputs = {&out, 1}}).ok());
      ASSERT_TRUE((*commands)->finish().ok());
      EXPECT_TRUE(says((*commands)->submit(), "step 0 (span 0)")) << name;
    }
  cudaEventDestroy(event);
}

/// y = -x, `rounds` times, each with a new command list.
bool negates(Device& device, float first, int rounds) {
  constexpr int64_t kCount = 300;
  const auto slab = device.allocate(2 * 4096);
  if (!slab.ok()) return false;
  Slab* const slots[] = {slab->get()};
  const BufferRef in{0, 0, kCount * 4}, out{0, 4096, kCount * 4};
  const auto kernel = make_kernel([](const Call& call) {
    return unary({ElementType::F32, {Function::Neg}, call.in(0), call.out(), kCount}, call.stream);
  });
  for (int round = 0; round < rounds; ++round) {
    const auto commands = device.begin({.slots = slots, .spans = 1, .profile = round % 2 == 1});
    if (!commands.ok() || !kernel->record(**commands, {.inputs = {&in, 1}, .outputs = {&out, 1}}).ok() ||
        !(*commands)->finish().ok())
      return false;
    for (int run = 0; run < 3; ++run) {
      const float value = first + static_cast<float>(round * 3 + run);
      std::vector<float> values(kCount, value);
      if (!device.upload(**slab, 0, std::as_bytes(std::span(values))).ok() || !(*commands)->submit().ok() ||
          !(*commands)->wait().ok() ||
          !device.download(**slab, 4096, std::as_writable_bytes(std::span(values))).ok() ||
          values != std::vector<float>(kCount, -value))
        return false;
    }
  }
  return true;
}

TEST_F(Emulated, ThreadsWorkAtOnceOnOneDeviceAndOnTwo) {
  cuda_emulator::options().devices = 2;
  std::array<bool, 3> right{};
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < right.size(); ++i)
      threads.emplace_back([i, &right] {
        const auto device = CudaDevice::open({.device = i == 0 ? "0" : "1"});
        right[i] = device.ok() && negates(**device, static_cast<float>(1000 * i), 8);
      });
  }
  EXPECT_EQ(right, (std::array{true, true, true}));
}

/// No call relies on the current device left by the previous one: here that is always the wrong one.
TEST_F(Emulated, OneThreadUsesTwoDevicesInTurn) {
  cuda_emulator::options().devices = 2;
  constexpr int64_t kCount = 300;
  struct Side {
    DevicePtr device;
    SlabPtr slab;
    CommandListPtr commands;
  };
  std::array<Side, 2> sides;
  const BufferRef in{0, 0, kCount * 4}, out{0, 4096, kCount * 4};
  const auto kernel = make_kernel([](const Call& call) {
    return unary({ElementType::F32, {Function::Neg}, call.in(0), call.out(), kCount}, call.stream);
  });
  const auto each = [&](const auto& action) {
    for (Side& side : sides) {
      const Status status = action(side);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  };
  each([&](Side& side) -> Status {
    RT_ASSIGN(side.device, CudaDevice::open({.device = &side == &sides[0] ? "0" : "1"}));
    return {};
  });
  each([&](Side& side) -> Status {
    RT_ASSIGN(side.slab, side.device->allocate(2 * 4096));
    return {};
  });
  each([&](Side& side) -> Status {
    Slab* const slots[] = {side.slab.get()};
    RT_ASSIGN(side.commands, side.device->begin({.slots = slots, .spans = 1, .profile = true}));
    return {};
  });
  each([&](Side& side) {
    return kernel->record(*side.commands, {.inputs = {&in, 1}, .outputs = {&out, 1}});
  });
  each([&](Side& side) { return side.commands->finish(); });
  const std::vector<float> ones(kCount, 1.0f);
  for (int run = 0; run < 3; ++run) {
    std::vector<float> got(kCount);
    uint64_t spans[1] = {0};
    each([&](Side& side) { return side.device->upload(*side.slab, 0, std::as_bytes(std::span(ones))); });
    each([&](Side& side) { return side.commands->submit(); });
    each([&](Side& side) { return side.commands->wait(); });
    each([&](Side& side) { return side.commands->timings(spans); });
    each([&](Side& side) {
      return side.device->download(*side.slab, 4096, std::as_writable_bytes(std::span(got)));
    });
    EXPECT_EQ(got, std::vector<float>(kCount, -1.0f));
  }
  each([](Side& side) -> Status {
    side.commands.reset();
    return {};
  });
}

TEST_F(Emulated, MemoryThatIsNotThereIsAnError) {
  const auto slab = device_->allocate(size_t{1} << 50);
  ASSERT_FALSE(slab.ok());
  EXPECT_EQ(slab.status().code(), Code::OutOfMemory);
}

}  // namespace
}  // namespace librt::cuda
