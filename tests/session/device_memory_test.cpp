// Inputs and outputs in memory of a device, made by librt and by the application; refusals; lifetimes.
// argv[1]: the backend; then --validation or nothing.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <span>
#include <thread>

#include "rt/memory.hpp"
#include "runtime/graph/graph.h"
#include "tests/session/outcome.h"
#include "tests/session/shared_device.h"
#include "tests/support/backend_main.h"
#include "tests/support/loaded_model.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using test::says;
using test::status_text;
using Floats = std::vector<float>;

using test::backend_name, test::validation;
bool has_host_memory = false;

/// x f32[rows,4]; outputs: twice = 2 x; flat, the same without its shape; same = x; three = 3; old, the state
/// sum before it grows by the sum of the rows.
rt::Model model() {
  ModelGraph made;
  made.states = {{.name = "sum", .info = {DType::F32, {4}}, .kind = StateKind::Counter, .initial = {}}};
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &made.states);
  const int32_t rows = graph.symbol("rows");
  const ValueId x = build.input("x", DType::F32, {{.symbol = rows}, {.extent = 4}});
  const ValueId sum = build.state("sum", 0, made.states[0].info);
  const ValueId twice = build.add(x, x);
  build.output(twice);
  build.output(build.reshape(twice, build.ints(std::vector<int64_t>{-1})));
  build.output(x);
  build.output(build.scalar(3, DType::F32));
  build.output(sum);
  graph.state_updates.push_back(
      {sum, build.add(sum, build.emit(op::ReduceSumAttributes{.axes = {0}, .keep_dims = false}, {x}))});
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  for (const ValueId output : graph.outputs)
    if (std::string& name = graph[output].name; name.empty()) name = "output" + std::to_string(output);
  made.entries.push_back({"infer", std::move(graph)});
  return test::loaded_model(made);
}

rt::Session open(rt::SessionOptions options = {}) {
  options.backend = backend_name;
  options.validation = validation;
  auto session = rt::Session::create(model(), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(*session);
}

rt::Memory make(const rt::Session& session, size_t floats, float value = 0) {
  auto memory = rt::Memory::create(session, floats * sizeof(float));
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  const Floats values(memory->bytes() / sizeof(float), value);
  EXPECT_TRUE(memory->write<float>(values).ok());
  return std::move(*memory);
}

Floats read(const rt::Memory& memory, size_t count, uint64_t offset = 0) {
  Floats values(count);
  const rt::Status status = memory.read<float>(values, offset);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

rt::Tensor rows_of(const rt::Memory& memory, int64_t rows, uint64_t offset = 0) {
  return memory.tensor(rt::DType::F32, {rows, 4}, offset);
}

TEST(DeviceMemory, IsReadAndWrittenInPlace) {
  auto session = open();
  const auto x = make(session, 12, 1), y = make(session, 12);
  ASSERT_OK(session.bind_input(0, rows_of(x, 3)));
  ASSERT_OK(session.bind_output(0, rows_of(y, 3)));
  for (int run = 0; run < 3; ++run) ASSERT_OK(session.run());
  EXPECT_EQ(read(y, 12), Floats(12, 2));
  EXPECT_EQ(read(x, 12), Floats(12, 1));
  const auto output = session.output(0);
  ASSERT_OK(output);
  EXPECT_EQ(output->handle().memory, y.handle());
  EXPECT_EQ(output->dims().front(), 3);
  EXPECT_EQ(output->data() != nullptr, has_host_memory);
  // The others are as ever.
  EXPECT_EQ(session.output(4)->values<float>()[0], 6);
  EXPECT_EQ(session.output(1)->values<float>()[11], 2);
  EXPECT_EQ(session.output(2)->values<float>()[11], 1);
  // Back to memory of the session.
  ASSERT_OK(session.unbind_output(0));
  ASSERT_OK(session.set_input(0, rt::Tensor::of<float>({1, 4}, {5, 6, 7, 8})));
  ASSERT_OK(session.run());
  EXPECT_EQ(session.output(0)->values<float>()[3], 16);
  EXPECT_EQ(session.output(0)->handle().memory, nullptr);
  EXPECT_EQ(read(y, 12), Floats(12, 2));
}

TEST(DeviceMemory, TakesEveryOutput) {
  auto session = open();
  const auto x = make(session, 8, 3);
  const auto all = make(session, 5 * 64, -1);
  ASSERT_OK(session.bind_input(0, rows_of(x, 2)));
  for (size_t k = 0; k < 5; ++k)
    ASSERT_OK(session.bind_output(k, all.tensor(rt::DType::F32, {k == 3 ? 1 : k == 4 ? 4 : 8}, k * 256)));
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK(session.run());
    EXPECT_EQ(read(all, 8, 0), Floats(8, 6));
    EXPECT_EQ(read(all, 8, 256), Floats(8, 6));
    EXPECT_EQ(read(all, 8, 512), Floats(8, 3));
    EXPECT_EQ(read(all, 1, 768), Floats(1, 3));
    EXPECT_EQ(read(all, 4, 1024), Floats(4, static_cast<float>(6 * run)));
    EXPECT_EQ(read(all, 1, 768 + 4), Floats(1, -1));
  }
  // Without the second of two that are the same.
  ASSERT_OK(session.unbind_output(0));
  ASSERT_OK(session.run());
  EXPECT_EQ(session.output(0)->values<float>()[7], 6);
}

TEST(DeviceMemory, BuffersTakeTurnsAlsoInFlight) {
  auto session = open();
  std::vector<rt::Memory> inputs, outputs;
  for (int i = 0; i < 6; ++i) {
    inputs.push_back(make(session, 4, static_cast<float>(i)));
    outputs.push_back(make(session, 4));
  }
  for (int run = 0; run < 18; ++run) {
    const auto at = static_cast<size_t>(run % (run < 9 ? 3 : 6));
    ASSERT_OK(session.bind_input(0, rows_of(inputs[at], 1)));
    ASSERT_OK(session.bind_output(0, rows_of(outputs[at], 1)));
    ASSERT_OK(session.submit());
    if (run % 2 == 0) continue;
    ASSERT_OK(session.wait());
    ASSERT_OK(session.wait());
    EXPECT_EQ(session.output(0)->handle().memory, outputs[at].handle());
    EXPECT_EQ(read(outputs[at], 4), Floats(4, 2 * static_cast<float>(at)));
    EXPECT_EQ(session.output(2)->values<float>()[0], static_cast<float>(at));
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(read(outputs[i], 4), Floats(4, 2 * static_cast<float>(i)));
}

TEST(DeviceMemory, SubmittedRunsMixItWithHostMemory) {
  auto session = open();
  const auto x = make(session, 4, 7), y = make(session, 4), constant = make(session, 1);
  ASSERT_OK(session.bind_output(3, constant.tensor(rt::DType::F32, {})));
  for (int run = 0; run < 8; ++run) {
    if (run % 4 < 2)
      ASSERT_OK(session.bind_input(0, rows_of(x, 1)));
    else
      ASSERT_OK(session.set_input(0, rt::Tensor::of<float>({1, 4}, {1, 1, 1, 1})));
    if (run % 2 == 0)
      ASSERT_OK(session.bind_output(0, rows_of(y, 1)));
    else
      ASSERT_OK(session.unbind_output(0));
    ASSERT_OK(session.submit());
    ASSERT_OK(session.wait());
    const float expected = run % 4 < 2 ? 14 : 2;
    if (run % 2 == 0)
      EXPECT_EQ(read(y, 4), Floats(4, expected));
    else
      EXPECT_EQ(session.output(0)->values<float>()[3], expected);
    EXPECT_EQ(session.output(1)->values<float>()[3], expected);
    EXPECT_EQ(read(constant, 1), Floats(1, 3));
  }
}

TEST(DeviceMemory, PassesFromSessionToSession) {
  auto first = open();
  auto second = open({.share_device_with = &first});
  const auto x = make(first, 4, 1), between = make(first, 4), y = make(second, 4);
  ASSERT_OK(first.bind_input(0, rows_of(x, 1)));
  ASSERT_OK(first.bind_output(0, rows_of(between, 1)));
  ASSERT_OK(second.bind_input(0, rows_of(between, 1)));
  ASSERT_OK(second.bind_output(0, rows_of(y, 1)));
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK(first.submit());
    ASSERT_OK(second.submit());
    ASSERT_OK(second.wait());
    ASSERT_OK(first.wait());
    EXPECT_EQ(read(y, 4), Floats(4, 4));
  }
  EXPECT_EQ(second.device_reason(), "the device of the session whose device is shared");
  // Without that option: where addresses are the process's.
  auto stranger = open();
  const rt::Status bound = stranger.bind_input(0, rows_of(between, 1));
  if (backend_name == "vulkan") {
    EXPECT_TRUE(says(bound, "share_device_with"));
    return;
  }
  ASSERT_OK(bound);
  ASSERT_OK(stranger.run());
  EXPECT_EQ(stranger.output(0)->values<float>()[0], 4);
}

TEST(DeviceMemory, RefusesWhatDoesNotFit) {
  auto session = open();
  const auto x = make(session, 12), y = make(session, 12);
  EXPECT_TRUE(says(session.bind_input(0, x.tensor(rt::DType::I32, {3, 4})), "expected f32"));
  EXPECT_TRUE(says(session.bind_input(0, x.tensor(rt::DType::F32, {3, 5})), "expected f32"));
  EXPECT_TRUE(says(session.bind_input(0, rows_of(x, 3, 4)), "bytes beyond it"));
  EXPECT_TRUE(says(session.bind_input(0, rows_of(x, 5)), "expected memory of 80 bytes"));
  EXPECT_TRUE(says(session.bind_input(0, rows_of(x, 1, ~uint64_t{0} - 255)), "expected memory of 16 bytes"));
  EXPECT_TRUE(says(session.set_input(0, rows_of(x, 3)), "rt_session_bind_input"));
  EXPECT_TRUE(says(session.bind_output(0, y.tensor(rt::DType::F16, {12})), "expected f32"));
  EXPECT_TRUE(says(session.bind_output(9, rows_of(y, 3)), "the entry has 5"));
  EXPECT_TRUE(says(session.write_state("sum", y.tensor(rt::DType::F32, {4})), "host memory"));
  ASSERT_OK(session.bind_input(0, rows_of(x, 3)));
  EXPECT_TRUE(says(session.bind_output(0, rows_of(x, 3)), "overlaps that of input 'x'"));
  ASSERT_OK(session.bind_output(0, rows_of(y, 3)));
  EXPECT_TRUE(says(session.bind_output(1, rows_of(y, 1)), "overlaps that of output"));
  EXPECT_TRUE(says(session.bind_input(0, rows_of(y, 3)), "overlaps that of output"));
  ASSERT_OK(session.run());
  // The size that a run needs is known when it starts.
  ASSERT_OK(session.bind_output(0, rows_of(y, 1)));
  EXPECT_TRUE(says(session.run(), "takes 48 bytes, the bound memory has 16"));
  EXPECT_TRUE(says(session.submit(), "takes 48 bytes, the bound memory has 16"));
  ASSERT_OK(session.bind_output(0, rows_of(y, 3)));
  ASSERT_OK(session.run());
  Floats forty(40);
  EXPECT_TRUE(says(x.read<float>(forty), "expected a range within"));
}

TEST(DeviceMemory, RefusesOtherKinds) {
  auto session = open();
  rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
  EXPECT_TRUE(says(rt::Memory::create(session, options), "at least one byte"));
  options.bytes = 64;
  options.kind = static_cast<rt_memory_kind>(7);
  EXPECT_TRUE(says(rt::Memory::create(session, options), "no kind"));
  options.kind = RT_MEMORY_HOST;
  EXPECT_TRUE(says(rt::Memory::create(session, options), "null"));
  alignas(64) float values[16] = {};
  options.pointer = values + 1;
  if (backend_name == "cuda_emu" || backend_name == "cuda")
    EXPECT_TRUE(says(rt::Memory::create(session, options), "do not use host memory"));
  else
    EXPECT_TRUE(says(rt::Memory::create(session, options), "expected"));
  options.kind = RT_MEMORY_CUDA;
  const auto cuda = rt::Memory::create(session, options);
  EXPECT_TRUE(says(cuda, backend_name == "cpu"      ? "the session runs on cpu"
                         : backend_name == "vulkan" ? "found a CUDA pointer"
                                                    : "memory that CUDA does not know"));
  options.kind = RT_MEMORY_VULKAN_BUFFER;
  EXPECT_TRUE(says(rt::Memory::create(session, options), backend_name == "cpu" ? "the session runs on cpu"
                                                         : backend_name == "vulkan"
                                                             ? "VkBuffer: it is null"
                                                             : "found memory of Vulkan"));
  options = RT_MEMORY_OPTIONS_INIT;
  options.bytes = 64;
  options.exportable = 1;
  if (backend_name != "vulkan") {
    EXPECT_FALSE(rt::Memory::create(session, options).ok());
  }
  options.struct_size = 3;
  EXPECT_TRUE(says(rt::Memory::create(session, options), "struct_size"));
  if (backend_name == "vulkan" || has_host_memory) {
    rt::SessionOptions with_stream;
    with_stream.backend = backend_name;
    with_stream.cuda_stream = values;
    EXPECT_TRUE(says(rt::Session::create(model(), with_stream), "cuda_stream"));
  }
  rt_sync point = RT_SYNC_INIT;
  EXPECT_FALSE(session.wait_for(point).ok());
  point.kind = RT_VULKAN_TIMELINE;
  EXPECT_FALSE(session.signal(point).ok());
  EXPECT_TRUE(session.run().message().find("not set") != std::string::npos);
}

TEST(DeviceMemory, MayBeFreedAtAnyTime) {
  std::optional<rt::Memory> left;
  {
    auto session = open();
    std::optional<rt::Memory> x = make(session, 4, 1), y = make(session, 4), z = make(session, 4);
    ASSERT_OK(session.bind_input(0, rows_of(*x, 1)));
    ASSERT_OK(session.bind_output(0, rows_of(*y, 1)));
    ASSERT_OK(session.run());
    y.reset();
    EXPECT_EQ(session.output(0)->handle().memory, nullptr);
    EXPECT_TRUE(says(session.run(), "has been freed"));
    EXPECT_TRUE(says(session.submit(), "has been freed"));
    ASSERT_OK(session.bind_output(0, rows_of(*z, 1)));
    ASSERT_OK(session.submit());  // in flight: completes
    x.reset();
    EXPECT_TRUE(says(session.submit(), "input 'x': its memory has been freed"));
    ASSERT_OK(session.wait());
    EXPECT_EQ(read(*z, 4), Floats(4, 2));
    // Unwaited, with its memory freed, and the session too.
    left = make(session, 4, 5);
    ASSERT_OK(session.bind_input(0, rows_of(*left, 1)));
    ASSERT_OK(session.submit());
    z.reset();
  }
  EXPECT_EQ(read(*left, 4), Floats(4, 5));
}

TEST(DeviceMemory, IsGivenBackOnce) {
  std::atomic<int> released = 0;
  auto session = open();
  rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
  options.bytes = 64;
  options.read_only = 1;
  options.release = [](void* user) { ++*static_cast<std::atomic<int>*>(user); };
  options.user = &released;
  auto memory = rt::Memory::create(session, options);
  ASSERT_OK(memory);
  EXPECT_TRUE(says(session.bind_output(0, rows_of(*memory, 1)), "read-only"));
  EXPECT_TRUE(says(memory->write<float>(std::array<float, 1>()), "read-only"));
  ASSERT_OK(session.bind_input(0, rows_of(*memory, 1)));
  ASSERT_OK(session.run());
  { const rt::Memory gone = std::move(*memory); }
  EXPECT_EQ(released, 0);  // still bound
  ASSERT_OK(session.set_input(0, rt::Tensor(rt::DType::F32, {1, 4})));
  EXPECT_EQ(released, 1);
  options.bytes = 0;
  EXPECT_FALSE(rt::Memory::create(session, options).ok());
  EXPECT_EQ(released, 1);  // a refusal leaves it to the caller
}

/// By another thread while the session runs: a run completes, or is refused.
TEST(DeviceMemory, MayBeFreedByAnotherThread) {
  auto session = open();
  for (int round = 0; round < 8; ++round) {
    std::optional<rt::Memory> x = make(session, 4, 1);
    ASSERT_OK(session.bind_input(0, rows_of(*x, 1)));
    ASSERT_OK(session.run());
    std::atomic<bool> begun = false;
    std::thread other([&] {
      while (!begun) std::this_thread::yield();
      x.reset();
    });
    rt::Status status;
    while ((status = session.run()).ok()) begun = true;
    begun = true;
    other.join();
    EXPECT_TRUE(says(status, "has been freed"));
  }
}

TEST(DeviceMemory, OfTheApplicationOnCuda) {
  const test::CudaRuntime cuda;
  if (!backend_name.starts_with("cuda")) GTEST_SKIP() << "no CUDA";
  if (!cuda) GTEST_SKIP() << "no libcudart to allocate memory with";
  auto session = open();
  void *x = nullptr, *y = nullptr, *pinned = nullptr;
  ASSERT_EQ(cuda.call("cudaSetDevice", session.native().cuda_device), 0);
  ASSERT_EQ(cuda.call("cudaMalloc", &x, size_t{64}), 0);
  ASSERT_EQ(cuda.call("cudaMalloc", &y, size_t{64}), 0);
  const Floats values(16, 21);
  ASSERT_EQ(cuda.call("cudaMemcpy", x, static_cast<const void*>(values.data()), size_t{64}, 1), 0);
  const auto input = rt::Memory::of_cuda(session, x, 64), output = rt::Memory::of_cuda(session, y, 64);
  ASSERT_OK(input);
  ASSERT_OK(output);
  EXPECT_EQ(input->pointer(), x);
  ASSERT_OK(session.bind_input(0, rows_of(*input, 4)));
  ASSERT_OK(session.bind_output(0, rows_of(*output, 4)));
  ASSERT_OK(session.run());
  Floats result(16);
  ASSERT_EQ(
      cuda.call("cudaMemcpy", static_cast<void*>(result.data()), static_cast<const void*>(y), size_t{64}, 2),
      0);
  EXPECT_EQ(result, Floats(16, 42));
  // The same address in two handles, and one that is not aligned.
  const auto again = rt::Memory::of_cuda(session, x, 64);
  ASSERT_OK(again);
  EXPECT_TRUE(says(session.bind_output(1, rows_of(*again, 4)), "overlaps"));
  const auto odd = rt::Memory::of_cuda(session, static_cast<float*>(x) + 1, 60);
  ASSERT_OK(odd);
  EXPECT_TRUE(says(session.bind_input(0, rows_of(*odd, 1)), "found one 4 bytes beyond it"));
  ASSERT_EQ(cuda.call("cudaHostAlloc", &pinned, size_t{64}, 0u), 0);
  EXPECT_TRUE(says(rt::Memory::of_cuda(session, pinned, 64), "pinned memory of the host"));
  cuda.call("cudaFreeHost", pinned);
  if (const char* devices = std::getenv("RT_EMULATOR_DEVICES"); devices != nullptr && *devices == '2') {
    auto other = open({.device = "1"});
    EXPECT_TRUE(says(rt::Memory::of_cuda(other, x, 64), "found memory of device 0"));
    EXPECT_TRUE(says(other.bind_input(0, rows_of(*input, 4)), "found memory of device 0"));
    void* stream = nullptr;
    ASSERT_EQ(cuda.call("cudaSetDevice", 0), 0);
    ASSERT_EQ(cuda.call("cudaStreamCreateWithFlags", &stream, 0u), 0);
    rt::SessionOptions options{.backend = backend_name, .device = "1", .cuda_stream = stream};
    EXPECT_TRUE(says(rt::Session::create(model(), options), "the given CUDA stream, which must be one of"));
    cuda.call("cudaStreamDestroy", stream);
  }
  ASSERT_OK(session.unbind_output(0));
  cuda.call("cudaFree", y);
}

/// Copies on the application's stream before and after the run, without a wait on the host between them.
TEST(DeviceMemory, RunsOnTheStreamOfTheApplication) {
  const test::CudaRuntime cuda;
  if (!backend_name.starts_with("cuda")) GTEST_SKIP() << "no CUDA";
  if (!cuda) GTEST_SKIP() << "no libcudart to make a stream with";
  void *stream = nullptr, *side = nullptr, *before = nullptr, *after = nullptr;
  cuda.call("cudaSetDevice", 0);
  ASSERT_EQ(cuda.call("cudaStreamCreateWithFlags", &stream, 1u), 0);
  ASSERT_EQ(cuda.call("cudaStreamCreateWithFlags", &side, 1u), 0);
  ASSERT_EQ(cuda.call("cudaEventCreateWithFlags", &before, 2u), 0);
  ASSERT_EQ(cuda.call("cudaEventCreateWithFlags", &after, 2u), 0);
  void *from = nullptr, *to = nullptr;
  ASSERT_EQ(cuda.call("cudaHostAlloc", &from, size_t{64}, 0u), 0);
  ASSERT_EQ(cuda.call("cudaHostAlloc", &to, size_t{64}, 0u), 0);
  const std::span<float> source(static_cast<float*>(from), 4), target(static_cast<float*>(to), 4);
  for (const bool given : {true, false}) {
    auto session = open({.cuda_stream = given ? stream : nullptr});
    EXPECT_EQ(session.native().cuda_stream == stream, given);
    const auto x = make(session, 4), y = make(session, 4);
    ASSERT_OK(session.bind_input(0, rows_of(x, 1)));
    ASSERT_OK(session.bind_output(0, rows_of(y, 1)));
    // Given: all on one stream. Else on another, ordered by events.
    void* const work = given ? stream : side;
    rt_sync point = RT_SYNC_INIT;
    for (int run = 0; run < 3; ++run) {
      std::fill(source.begin(), source.end(), static_cast<float>(run + 1));
      ASSERT_EQ(
          cuda.call("cudaMemcpyAsync", x.pointer(), static_cast<const void*>(from), size_t{16}, 1, work), 0);
      if (!given) {
        ASSERT_EQ(cuda.call("cudaEventRecord", before, work), 0);
        point.handle = reinterpret_cast<uintptr_t>(before);
        ASSERT_OK(session.wait_for(point));
      }
      ASSERT_OK(session.submit());
      if (!given) {
        point.handle = reinterpret_cast<uintptr_t>(after);
        ASSERT_OK(session.signal(point));
        ASSERT_EQ(cuda.call("cudaStreamWaitEvent", work, after, 0u), 0);
      }
      ASSERT_EQ(cuda.call("cudaMemcpyAsync", to, static_cast<const void*>(y.pointer()), size_t{16}, 2, work),
                0);
      ASSERT_EQ(cuda.call("cudaStreamSynchronize", work), 0);
      EXPECT_EQ(target[3], static_cast<float>(2 * run + 2));
      ASSERT_OK(session.wait());
    }
    ASSERT_OK(session.run());
    EXPECT_EQ(read(y, 4), Floats(4, 6));
  }
  for (void* event : {before, after}) cuda.call("cudaEventDestroy", event);
  for (void* one : {stream, side}) cuda.call("cudaStreamDestroy", one);
  for (void* one : {from, to}) cuda.call("cudaFreeHost", one);
}

TEST(DeviceMemory, IsExportedAndImportedByVulkan) {
  if (backend_name != "vulkan") GTEST_SKIP() << "no Vulkan";
  auto exporter = open(), importer = open();
  rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
  options.bytes = 256;
  options.exportable = 1;
  auto shared = rt::Memory::create(exporter, options);
  if (!shared.ok() && status_text(shared).find("VK_KHR_external_memory_fd") != std::string::npos)
    GTEST_SKIP() << status_text(shared);
  ASSERT_OK(shared);
  const auto plain = make(exporter, 4);
  options = RT_MEMORY_OPTIONS_INIT;
  options.kind = RT_MEMORY_VULKAN_FD;
  options.bytes = 128;
  EXPECT_TRUE(says(rt::Status::take(rt_memory_export_fd(plain.handle(), &options.fd,
                                                        &options.allocation_bytes, &options.memory_type)),
                   "exportable"));
  ASSERT_OK(rt::Status::take(
      rt_memory_export_fd(shared->handle(), &options.fd, &options.allocation_bytes, &options.memory_type)));
  rt_memory_options wrong = options;
  wrong.bytes = 130;
  EXPECT_TRUE(says(rt::Memory::create(importer, wrong), "multiple of 16"));
  wrong = options;
  wrong.bytes = options.allocation_bytes + 16;
  EXPECT_TRUE(says(rt::Memory::create(importer, wrong), "of an allocation"));
  wrong = options;
  wrong.offset = options.allocation_bytes + (1 << 20);
  EXPECT_TRUE(says(rt::Memory::create(importer, wrong), "of an allocation"));
  wrong = options;
  wrong.memory_type = 31;
  EXPECT_TRUE(says(rt::Memory::create(importer, wrong), "memory type 31"));
  wrong = options;
  wrong.fd = 1 << 20;
  EXPECT_TRUE(says(rt::Memory::create(importer, wrong), "is not open"));
  const auto imported = rt::Memory::create(importer, options);
  ASSERT_OK(imported);
  const Floats threes(4, 3);
  ASSERT_OK(shared->write<float>(threes));
  const auto y = make(importer, 4);
  ASSERT_OK(importer.bind_input(0, rows_of(*imported, 1)));
  ASSERT_OK(importer.bind_output(0, rows_of(y, 1)));
  ASSERT_OK(importer.run());
  EXPECT_EQ(read(y, 4), Floats(4, 6));
  // And back.
  ASSERT_OK(importer.bind_output(1, imported->tensor(rt::DType::F32, {4}, 64)));
  ASSERT_OK(importer.run());
  EXPECT_EQ(read(*shared, 4, 64), Floats(4, 6));
  close(options.fd);
}

TEST(DeviceMemory, IsHostMemoryWhereVulkanImportsIt) {
  if (backend_name != "vulkan") GTEST_SKIP() << "no Vulkan";
  auto session = open();
  constexpr size_t kPage = 65536;
  void* pages = std::aligned_alloc(kPage, kPage);
  const std::span<float> values(static_cast<float*>(pages), kPage / sizeof(float));
  std::fill(values.begin(), values.end(), 4.0f);
  rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
  options.kind = RT_MEMORY_HOST;
  options.pointer = pages;
  options.bytes = kPage;
  {
    const auto memory = rt::Memory::create(session, options);
    if (!memory.ok() && status_text(memory).find("VK_EXT_external_memory_host") != std::string::npos)
      GTEST_SKIP() << status_text(memory);
    ASSERT_OK(memory);
    ASSERT_OK(session.bind_input(0, rows_of(*memory, 1)));
    ASSERT_OK(session.bind_output(0, rows_of(*memory, 1, 256)));
    ASSERT_OK(session.run());
    EXPECT_EQ(values[64], 8);
    EXPECT_EQ(values[0], 4);
    options.bytes = 48;
    EXPECT_TRUE(says(rt::Memory::create(session, options), "allocate whole pages"));
    ASSERT_OK(session.unbind_output(0));
    ASSERT_OK(session.set_input(0, rt::Tensor(rt::DType::F32, {1, 4})));
  }
  std::free(pages);
}

#if RT_TEST_VULKAN
TEST(DeviceMemory, WaitsForSemaphoresOfTheApplicationOnVulkan) {
  if (backend_name != "vulkan") GTEST_SKIP() << "no Vulkan";
  auto session = open();
  const test::VulkanFunctions vulkan(session.native());
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  ASSERT_EQ(RT_VK(vulkan, vkCreateSemaphore)(vulkan.device(), &create, nullptr, &semaphore), VK_SUCCESS);
  const auto x = make(session, 4, 1), y = make(session, 4);
  ASSERT_OK(session.bind_input(0, rows_of(x, 1)));
  ASSERT_OK(session.bind_output(0, rows_of(y, 1)));
  ASSERT_OK(session.run());
  rt_sync point = RT_SYNC_INIT;
  point.kind = RT_VULKAN_TIMELINE;
  point.handle = reinterpret_cast<uintptr_t>(semaphore);
  point.value = 1;
  ASSERT_OK(session.wait_for(point));
  ASSERT_OK(session.submit());
  point.value = 2;
  ASSERT_OK(session.signal(point));
  uint64_t reached = 0;
  ASSERT_EQ(RT_VK(vulkan, vkGetSemaphoreCounterValue)(vulkan.device(), semaphore, &reached), VK_SUCCESS);
  EXPECT_EQ(reached, 0);  // it waits for us
  // What the run reads is written after the run was submitted.
  float* mapped = static_cast<float*>(x.pointer());
  if (mapped != nullptr) std::fill(mapped, mapped + 4, 10.0f);
  const uint64_t one = 1, two = 2;
  VkSemaphoreSignalInfo signal{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, semaphore, one};
  ASSERT_EQ(RT_VK(vulkan, vkSignalSemaphore)(vulkan.device(), &signal), VK_SUCCESS);
  const VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &two};
  ASSERT_EQ(RT_VK(vulkan, vkWaitSemaphores)(vulkan.device(), &wait, UINT64_MAX), VK_SUCCESS);
  ASSERT_OK(session.wait());
  EXPECT_EQ(read(y, 4), Floats(4, mapped != nullptr ? 20 : 2));
  RT_VK(vulkan, vkDestroySemaphore)(vulkan.device(), semaphore, nullptr);
}

/// A buffer that the application made on librt's device.
TEST(DeviceMemory, OfTheApplicationOnVulkan) {
  if (backend_name != "vulkan") GTEST_SKIP() << "no Vulkan";
  auto session = open();
  const test::VulkanFunctions vulkan(session.native());
  const auto x = make(session, 4, 1), y = make(session, 4);
  ASSERT_OK(session.bind_output(0, rows_of(y, 1)));
  VkBufferCreateInfo buffer_info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  buffer_info.size = 256;
  buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  ASSERT_EQ(RT_VK(vulkan, vkCreateBuffer)(vulkan.device(), &buffer_info, nullptr, &buffer), VK_SUCCESS);
  VkMemoryRequirements needs;
  RT_VK(vulkan, vkGetBufferMemoryRequirements)(vulkan.device(), buffer, &needs);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, 0};
  while ((needs.memoryTypeBits & (1u << allocate.memoryTypeIndex)) == 0) ++allocate.memoryTypeIndex;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  ASSERT_EQ(RT_VK(vulkan, vkAllocateMemory)(vulkan.device(), &allocate, nullptr, &memory), VK_SUCCESS);
  ASSERT_EQ(RT_VK(vulkan, vkBindBufferMemory)(vulkan.device(), buffer, memory, 0), VK_SUCCESS);
  rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
  options.kind = RT_MEMORY_VULKAN_BUFFER;
  options.vk_buffer = reinterpret_cast<uintptr_t>(buffer);
  options.bytes = 1 << 20;
  EXPECT_TRUE(says(rt::Memory::create(session, options), "found one that takes"));
  options.bytes = 256;
  {
    auto adopted = rt::Memory::create(session, options);
    ASSERT_OK(adopted);
    const Floats fives(4, 5);
    ASSERT_OK(adopted->write<float>(fives));
    ASSERT_OK(session.bind_input(0, rows_of(*adopted, 1)));
    ASSERT_OK(session.run());
    EXPECT_EQ(read(y, 4), Floats(4, 10));
    ASSERT_OK(session.set_input(0, rt::Tensor(rt::DType::F32, {1, 4})));
    ASSERT_OK(session.run());
  }
  RT_VK(vulkan, vkDestroyBuffer)(vulkan.device(), buffer, nullptr);
  RT_VK(vulkan, vkFreeMemory)(vulkan.device(), memory, nullptr);
}
#endif

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(
      argc, argv, [](librt::Device& device) { librt::has_host_memory = device.info().host_memory; });
}
