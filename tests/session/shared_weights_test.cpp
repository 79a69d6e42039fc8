// Sessions of one model on the CPU share the weights that kernels pack, and processes what they read of a
// mapped file. Needs the cpu backend.
#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <numeric>
#include <sstream>
#include <thread>

#include "rt/rt.hpp"
#include "runtime/session/session.h"
#include "tests/support/numbers.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;
using test::numbers;

constexpr int64_t kImage = 16, kChannels = 64;

/// y = conv(conv(x)), f32[batch,16,16,64]: two weights that kernels want in a layout of their own.
std::vector<std::byte> model_file() {
  ModelGraph model;
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &model.states);
  ValueId x = build.input(
      "x", DType::F32,
      {{.symbol = graph.symbol("batch")}, {.extent = kImage}, {.extent = kImage}, {.extent = kChannels}});
  for (uint32_t seed : {1u, 2u}) {
    const Floats weight = numbers(kChannels * 9 * kChannels, seed);
    op::ConvAttributes attributes;
    attributes.strides = attributes.dilations = {1, 1};
    attributes.pads = {1, 1, 1, 1};
    attributes.groups = 1;
    x = build.emit(std::move(attributes),
                   {x, build.constant({DType::F32, {kChannels, 3, 3, kChannels}},
                                      Blob::copy_of(weight.data(), weight.size() * sizeof(float)))});
  }
  build.output(x);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model.entries.push_back({"infer", std::move(graph)});
  auto bytes = compiler::serialize_model(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return {reinterpret_cast<const std::byte*>(bytes->data()),
          reinterpret_cast<const std::byte*>(bytes->data()) + bytes->size()};
}

class SharedWeights : public testing::Test {
 protected:
  void SetUp() override { model_ = load(); }
  rt::Model load() const {
    auto model = rt::Model::from_memory(file_, false);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }
  static rt::Session open(const rt::Model& model, rt::SessionOptions options = {}) {
    options.backend = "cpu";
    auto session = rt::Session::create(model, options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(session).value();
  }
  static Floats run(rt::Session& session, int64_t batch = 1) {
    const Floats x = numbers(static_cast<size_t>(batch * kImage * kImage * kChannels), 7);
    EXPECT_TRUE(session.set_input(0, rt::Tensor::of({batch, kImage, kImage, kChannels}, x)).ok());
    const rt::Status status = session.run();
    EXPECT_TRUE(status.ok()) << status.message();
    const auto y = session.output(0);
    EXPECT_TRUE(y.ok());
    const std::span<const float> values = y->values<float>();
    return {values.begin(), values.end()};
  }
  static uint64_t packed(const rt::Session& session) { return session.memory().packed; }
  /// "1.2 MiB": what another session had packed.
  static std::string found(rt::Session& session) {
    const std::string plan(session.plan_text().value());
    const size_t begin = plan.rfind(", packed "), open = plan.find('(', begin);
    return plan.substr(open + 1, plan.find(" packed by another session", open) - open - 1);
  }

  const std::vector<std::byte> file_ = model_file();
  std::optional<rt::Model> model_;
};

TEST_F(SharedWeights, AreFoundByTheSecondSessionAndOutliveTheFirst) {
  const Floats expected = [&] {
    const rt::Model other = load();
    rt::Session alone = open(other);
    return run(alone);
  }();
  std::optional<rt::Session> first = open(*model_);
  EXPECT_EQ(run(*first), expected);
  ASSERT_GT(packed(*first), 0u) << "no kernel packs its weights, so that this test shows nothing";
  EXPECT_EQ(found(*first), "0 B");
  std::optional<rt::Session> second = open(*model_);
  EXPECT_EQ(run(*second), expected);
  EXPECT_EQ(packed(*second), packed(*first));
  EXPECT_NE(found(*second), "0 B");
  first.reset();
  EXPECT_EQ(run(*second), expected);
  EXPECT_EQ(run(*second, 3).size(), 3 * expected.size());
  rt::Session third = open(*model_);
  model_.reset();
  second.reset();
  EXPECT_EQ(run(third), expected);
  EXPECT_NE(found(third), "0 B");
}

TEST_F(SharedWeights, AreFreedWithTheLastSession) {
  {
    rt::Session first = open(*model_);
    run(first);
  }
  rt::Session second = open(*model_);
  run(second);
  EXPECT_EQ(found(second), "0 B");
}

TEST_F(SharedWeights, AreThoseOfOneModelAndPrecision) {
  rt::Session f32 = open(*model_), bf16 = open(*model_, {.precision = "bf16"});
  const Floats x = numbers(kImage * kImage * kChannels, 7);
  ASSERT_TRUE(bf16.set_input(0, rt::Tensor::of({1, kImage, kImage, kChannels}, x)).ok());
  if (const rt::Status status = bf16.run(); status.code() == rt::Code::Unsupported)
    GTEST_SKIP() << status.message();  // a CPU without bf16 instructions
  const rt::Model same_bytes = load();
  rt::Session other = open(same_bytes), other_bf16 = open(same_bytes, {.precision = "bf16"});
  const Floats from_f32 = run(f32), from_bf16 = run(bf16);
  EXPECT_EQ(run(other), from_f32);
  EXPECT_EQ(run(other_bf16), from_bf16);
  EXPECT_NE(from_f32, from_bf16);
  rt::Session again = open(*model_, {.precision = "bf16"});
  EXPECT_EQ(run(again), from_bf16);
  EXPECT_NE(found(again), "0 B");
}

/// Its user counts blocks.
void* allocate(void* user, size_t bytes, size_t alignment) {
  ++*static_cast<int*>(user);
  return std::aligned_alloc(alignment, bytes);
}
void release(void* user, void* block, size_t, size_t) {
  --*static_cast<int*>(user);
  std::free(block);
}

TEST_F(SharedWeights, AreNotThoseOfTheApplicationsAllocator) {
  rt::Session first = open(*model_);
  const Floats expected = run(first);
  int blocks = 0;
  rt_allocator allocator = RT_ALLOCATOR_INIT;
  allocator.user = &blocks;
  allocator.allocate = allocate;
  allocator.free = release;
  {
    rt::Session own = open(*model_, {.allocator = &allocator});
    EXPECT_EQ(run(own), expected);
    EXPECT_EQ(found(own), "0 B");
    EXPECT_GT(blocks, 0);
  }
  EXPECT_EQ(blocks, 0);
}

TEST_F(SharedWeights, ArePackedOnceByThreads) {
  constexpr size_t kThreads = 6;
  const Floats expected = [&] {
    rt::Session alone = open(*model_);
    return run(alone);
  }();
  for (int round = 0; round < 4; ++round) {
    std::array<Floats, kThreads> results;
    std::array<std::string, kThreads> from_others;
    std::latch start(kThreads), finish(kThreads);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
          start.arrive_and_wait();
          rt::Session session = open(*model_, {.threads = static_cast<int>(1 + i % 2)});
          results[i] = run(session);
          from_others[i] = found(session);
          finish.arrive_and_wait();  // with the last session the weights go
        });
    }
    EXPECT_EQ(std::count(from_others.begin(), from_others.end(), "0 B"), 1);
    for (const Floats& result : results) EXPECT_EQ(result, expected);
  }
}

/// Opens and runs a session of its model when it hears that weights are packed.
struct Nested {
  const rt::Model* model;
  int sessions = 0;
};
int open_another(void* user, rt_stage stage, double) {
  auto& nested = *static_cast<Nested*>(user);
  if (stage != RT_STAGE_WEIGHTS || nested.sessions > 0) return 0;
  ++nested.sessions;
  auto session = rt::Session::create(*nested.model, {.backend = "cpu"});
  if (!session.ok()) return 1;
  const rt::Tensor x(rt::DType::F32, {1, kImage, kImage, kChannels});
  return session->set_input(0, x).ok() && session->run().ok() ? 0 : 1;
}

TEST_F(SharedWeights, MayBePackedByASessionThatTheProgressOfAnotherOpens) {
  Nested nested{&*model_};
  rt::Session session = open(*model_, {.progress = open_another, .progress_user = &nested});
  const Floats first = run(session);
  EXPECT_EQ(nested.sessions, 1);
  rt::Session other = open(*model_);
  EXPECT_EQ(run(other), first);
}

/// Convolutions of a [1,5,5,512] by a weight [512,3,3,512], and of b [1,3,3,4608] by a weight [512,1,1,4608]
/// of the same bytes, or of a copy of them.
std::vector<Floats> both_convolutions(bool copied) {
  auto model = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &model->states);
  const auto input = [&](const char* name, const Shape& shape) {
    std::vector<Dim> dims;
    for (const int64_t extent : shape) dims.push_back({.extent = extent});
    return build.input(name, DType::F32, dims);
  };
  const auto conv = [&](ValueId x, ValueId weight) {
    op::ConvAttributes attributes;
    attributes.strides = attributes.dilations = {1, 1};
    attributes.pads = {0, 0, 0, 0};
    attributes.groups = 1;
    return build.emit(std::move(attributes), {x, weight});
  };
  const Shape a{1, 5, 5, 512}, b{1, 3, 3, 4608}, as_3x3{512, 3, 3, 512}, as_1x1{512, 1, 1, 4608};
  const Floats values = numbers(static_cast<size_t>(as_3x3.elements()), 5);
  const Blob bytes = Blob::copy_of(values.data(), values.size() * sizeof(float));
  const Blob others = copied ? Blob::copy_of(values.data(), values.size() * sizeof(float)) : bytes;
  build.output(conv(input("a", a), build.constant({DType::F32, as_3x3}, bytes)));
  build.output(conv(input("b", b), build.constant({DType::F32, as_1x1}, others)));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model->entries.push_back({"infer", std::move(graph)});
  auto session = Session::create(model, {.backend = "cpu"});
  EXPECT_TRUE(session.ok()) << session.status().message();
  std::vector<Floats> outputs;
  if (!session.ok()) return outputs;
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = i == 0 ? a : b;
    const Floats x = numbers(static_cast<size_t>(shape.elements()), 7);
    EXPECT_TRUE((*session)->set_input(i, {x.data(), {DType::F32, shape}}, x.size() * sizeof(float)).ok());
  }
  const Status status = (*session)->run();
  EXPECT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < 2 && status.ok(); ++i) {
    const auto y = (*session)->output(i);
    outputs.emplace_back(y->as<float>(), y->as<float>() + y->info.elements());
  }
  return outputs;
}

TEST(PackedWeights, AreNotThoseOfTheSameBytesInAnotherShape) {
  EXPECT_EQ(both_convolutions(false), both_convolutions(true));
}

#if defined(__linux__)

constexpr int64_t kRows = 4096, kColumns = 512;  // a table of 8 MiB

/// y = table[x], i64[n] to f32[n,512].
std::vector<std::byte> table_file() {
  ModelGraph model;
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &model.states);
  const ValueId x = build.input("x", DType::I64, {{.symbol = graph.symbol("n")}});
  const Floats table = numbers(kRows * kColumns, 3);
  const ValueId constant = build.constant({DType::F32, {kRows, kColumns}},
                                          Blob::copy_of(table.data(), table.size() * sizeof(float)));
  build.output(build.emit(op::GatherAttributes{}, {constant, x}));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model.entries.push_back({"infer", std::move(graph)});
  auto bytes = compiler::serialize_model(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  const auto* data = reinterpret_cast<const std::byte*>(bytes->data());
  return {data, data + bytes->size()};
}

/// In a process of its own: reads every row. Returns the exit code.
int read_table(const std::string& path) {
  auto model = rt::Model::load(path);
  if (!model.ok()) return 2;
  auto session = rt::Session::create(*model, {.backend = "cpu", .threads = 1});
  if (!session.ok()) return 3;
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  if (!session->set_input(0, rt::Tensor::of({kRows}, rows)).ok() || !session->run().ok()) return 4;
  raise(SIGSTOP);  // with the model mapped
  return 0;
}

/// KiB of the mapping of `path` in process `pid`: in pages that other processes have too, and in its own.
std::pair<int64_t, int64_t> mapped_kib(pid_t pid, const std::string& path) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/smaps");
  int64_t shared = 0, own = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kib = 0;
    words >> key;
    if (!key.ends_with(':')) {
      inside = line.ends_with(path);
    } else if (inside && words >> kib) {
      if (key.starts_with("Shared_")) shared += kib;
      if (key.starts_with("Private_")) own += kib;
    }
  }
  return {shared, own};
}

TEST(MappedModel, IsSharedByProcesses) {
  const std::string path = testing::TempDir() + "mapped_model." + std::to_string(getpid()) + ".rt";
  const std::vector<std::byte> bytes = table_file();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::array<pid_t, 2> processes{};
  for (pid_t& process : processes)
    if (process = fork(); process == 0) _exit(read_table(path));
  for (const pid_t process : processes) {
    int status = 0;
    ASSERT_EQ(waitpid(process, &status, WUNTRACED), process);
    ASSERT_TRUE(WIFSTOPPED(status)) << "exit code " << WEXITSTATUS(status);
  }
  for (const pid_t process : processes) {
    const auto [shared, own] = mapped_kib(process, path);
    EXPECT_GE(shared, kRows * kColumns * 4 / 1024);
    EXPECT_LE(own, 64);
  }
  for (const pid_t process : processes) {
    int status = 0;
    kill(process, SIGCONT);
    EXPECT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  std::remove(path.c_str());
}

#endif

}  // namespace
}  // namespace librt
