// Sessions on concurrent threads, on one device and on two: they share nothing but the model; and one session
// on two threads, which is refused. argv[1]: the backend, argv[2]: how many of its devices to use.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <thread>

#include "rt/rt.h"
#include "runtime/session/session.h"
#include "tests/session/backend.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;

std::string backend_name;
int devices = 1;

constexpr int64_t kColumns = 8;

/// x f32[rows,8]; the state sum f32[8] grows by the sum of x's rows; outputs relu(x) and the old sum.
std::shared_ptr<const ModelGraph> accumulator() {
  auto model = std::make_shared<ModelGraph>();
  model->states = {
      {.name = "sum", .info = {DType::F32, {kColumns}}, .kind = StateKind::Counter, .initial = {}}};
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &model->states);
  const int32_t rows = graph.symbol("rows");
  const ValueId x = build.input("x", DType::F32, {{.symbol = rows}, {.extent = kColumns}});
  const ValueId sum = build.state("sum", 0, model->states[0].info);
  build.output(build.emit(op::ReluAttributes{}, {x}));
  build.output(build.neg(sum));
  graph.state_updates.push_back(
      {sum, build.add(sum, build.emit(op::ReduceSumAttributes{.axes = {0}, .keep_dims = false}, {x}))});
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

Floats output(Session& session, size_t index) {
  const auto view = session.output(index);
  if (!view.ok()) return {};
  return {view->as<float>(), view->as<float>() + view->info.elements()};
}

/// Runs with changing shapes, so that one thread plans and records while another runs. Returns Ok or the
/// error.
Status work(const std::shared_ptr<const ModelGraph>& model, int worker, std::latch& start) {
  SessionOptions options{.backend = backend_name, .device = std::to_string(worker % devices)};
  if (devices == 1) options.device.clear();
  start.arrive_and_wait();
  RT_ASSIGN(const auto session, Session::create(model, options));
  float sum = 0;
  for (int run = 0; run < 24; ++run) {
    const int64_t rows = 1 + (run / 3 + worker) % 4;
    const float value = static_cast<float>(100 * worker + run);
    const Floats x(static_cast<size_t>(rows * kColumns), value);
    RT_TRY(session->set_input(0, {x.data(), {DType::F32, {rows, kColumns}}}, x.size() * sizeof(float)));
    RT_TRY(session->run());
    if (output(*session, 0) != x || output(*session, 1) != Floats(kColumns, -sum))
      return internal_error("worker ", worker, ", run ", run, ": wrong numbers");
    sum += value * static_cast<float>(rows);
  }
  return {};
}

TEST(Threads, RunSessionsOfOneModelAtOnce) {
  constexpr int kWorkers = 4;
  const auto model = accumulator();
  std::vector<Status> results(kWorkers);
  std::latch start(kWorkers);
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < kWorkers; ++worker)
      threads.emplace_back(
          [&, worker] { results[static_cast<size_t>(worker)] = work(model, worker, start); });
  }
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result.message();
}

/// One thread that alternates between two sessions at every call.
TEST(Threads, NeedNotBeOneForEachDevice) {
  if (devices < 2) GTEST_SKIP() << "one device";
  const auto model = accumulator();
  std::vector<std::unique_ptr<Session>> sessions;
  for (const char* device : {"0", "1"}) {
    auto session = Session::create(model, {.backend = backend_name, .device = device});
    ASSERT_TRUE(session.ok()) << session.status().message();
    sessions.push_back(std::move(session).value());
  }
  const auto each = [&](const auto& action) {
    for (const auto& session : sessions) {
      const Status status = action(*session);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  };
  const Floats x(kColumns, 1.0f);
  for (int run = 0; run < 4; ++run) {
    each([&](Session& session) {
      return session.set_input(0, {x.data(), {DType::F32, {1, kColumns}}}, x.size() * sizeof(float));
    });
    each([](Session& session) { return session.run(); });
    for (const auto& session : sessions) {
      EXPECT_EQ(output(*session, 0), x);
      EXPECT_EQ(output(*session, 1), Floats(kColumns, static_cast<float>(-run)));
    }
  }
}

/// The message of a status, which it frees; "" for success.
std::string take(rt_status* status) {
  std::string message = rt_status_message(status);
  rt_status_free(status);
  return message;
}

/// Two threads run one session of rt.h until one was refused: every call succeeds or is refused, and the
/// session still works.
TEST(Threads, MustNotShareASession) {
  const auto bytes = compiler::serialize_model(*accumulator());
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  rt_model* model = nullptr;
  ASSERT_EQ(take(rt_model_load_from_memory(bytes->data(), bytes->size(), 1, &model)), "");
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  options.backend = backend_name.c_str();
  rt_session* session = nullptr;
  ASSERT_EQ(take(rt_session_create(model, &options, &session)), "");
  rt_model_free(model);
  constexpr int64_t kRows = 512;
  Floats x(kRows * kColumns, 1.0f);
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.rank = 2;
  tensor.dims[0] = kRows;
  tensor.dims[1] = kColumns;
  tensor.data = x.data();
  tensor.bytes = x.size() * sizeof(float);
  ASSERT_EQ(take(rt_session_set_input(session, 0, &tensor)), "");

  constexpr int kMostRuns = 100000;
  std::atomic<int> succeeded = 0, refused = 0;
  std::array<std::string, 2> unexpected;
  std::latch start(2);
  {
    std::vector<std::jthread> threads;
    for (std::string& other : unexpected)
      threads.emplace_back([&] {
        start.arrive_and_wait();
        for (int run = 0; run < kMostRuns && refused == 0; ++run) {
          const std::string message = take(rt_session_run(session));
          if (message.empty())
            ++succeeded;
          else if (message.find("in use by another thread") != std::string::npos)
            ++refused;
          else
            other = message;
        }
      });
  }
  for (const std::string& message : unexpected) EXPECT_EQ(message, "");
  EXPECT_GT(refused, 0) << succeeded << " runs";
  EXPECT_EQ(take(rt_session_run(session)), "");
  rt_tensor sum = RT_TENSOR_INIT;
  ASSERT_EQ(take(rt_session_output(session, 1, &sum)), "");
  // Each successful run added the sum of the rows once.
  EXPECT_EQ(static_cast<const float*>(sum.data)[0], -static_cast<float>(succeeded * kRows));
  rt_session_free(session);
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 2) librt::devices = static_cast<int>(std::strtol(argv[2], nullptr, 10));
  const auto device = librt::test::open_backend(argc, argv, librt::backend_name);
  if (device == nullptr) return librt::test::kSkipped;
  return RUN_ALL_TESTS();
}
