// Sessions on concurrent threads, on one device and on two: they share nothing but the model, whose handle
// may be freed; runs that another thread cancels; and one session on two threads, which is refused. argv[1]:
// the backend, argv[2]: how many of its devices to use. tools/dev/sanitize runs it under ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <thread>

#include "rt/rt.h"
#include "runtime/session/session.h"
#include "tests/support/backend_main.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;

using test::backend_name;
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

/// [rows, kColumns]; x must outlive it.
rt_tensor rows_of(Floats& x) {
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.rank = 2;
  tensor.dims[0] = static_cast<int64_t>(x.size()) / kColumns;
  tensor.dims[1] = kColumns;
  tensor.data = x.data();
  tensor.bytes = x.size() * sizeof(float);
  return tensor;
}

/// Opens a session of a model that others open at the same time, and runs it, synchronously and not, while it
/// is cancelled now and then. Returns the first unexpected message.
std::string work_while_cancelled(const rt_model* model, rt_session*& session, std::latch& opened) {
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  options.backend = backend_name.c_str();
  std::string failed = take(rt_session_create(model, &options, &session));
  opened.arrive_and_wait();
  if (!failed.empty()) return failed;
  for (int run = 0; run < 60; ++run) {
    Floats x(static_cast<size_t>(1 + run % 3) * kColumns, 1.0f);
    const rt_tensor tensor = rows_of(x);
    if (std::string message = take(rt_session_set_input(session, 0, &tensor)); !message.empty())
      return message;
    const bool apart = run % 2 == 1;
    rt_status* status = apart ? rt_session_submit(session) : rt_session_run(session);
    if (apart && status == nullptr) status = rt_session_wait(session);
    const rt_code code = rt_status_code(status);
    if (std::string message = take(status); code != RT_OK && code != RT_CANCELLED) return message;
  }
  return {};
}

TEST(Threads, MayCancelRunsOfAModelWhoseHandleIsFreed) {
  const auto bytes = compiler::serialize_model(*accumulator());
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  rt_model* model = nullptr;
  ASSERT_EQ(take(rt_model_load_from_memory(bytes->data(), bytes->size(), 1, &model)), "");
  constexpr size_t kWorkers = 3;
  std::array<rt_session*, kWorkers> sessions{};
  std::array<std::string, kWorkers> unexpected;
  std::atomic<size_t> finished = 0;
  {
    std::latch opened(kWorkers + 1);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kWorkers; ++i)
      threads.emplace_back([&, i] {
        unexpected[i] = work_while_cancelled(model, sessions[i], opened);
        ++finished;
      });
    opened.arrive_and_wait();
    rt_model_free(model);
    for (size_t i = 0; finished < kWorkers; ++i) {
      rt_session* session = sessions[i % kWorkers];
      if (session != nullptr) rt_session_cancel(session);
      std::this_thread::yield();
      if (session != nullptr) rt_session_uncancel(session);
    }
  }
  for (size_t i = 0; i < kWorkers; ++i) {
    EXPECT_EQ(unexpected[i], "");
    if (sessions[i] == nullptr) continue;
    Floats x(2 * kColumns, 7.0f);
    const rt_tensor tensor = rows_of(x);
    EXPECT_EQ(take(rt_session_set_input(sessions[i], 0, &tensor)), "");
    EXPECT_EQ(take(rt_session_run(sessions[i])), "");
    rt_tensor y = RT_TENSOR_INIT;
    EXPECT_EQ(take(rt_session_output(sessions[i], 0, &y)), "");
    EXPECT_EQ(static_cast<const float*>(y.data)[2 * kColumns - 1], 7.0f);
    rt_session_free(sessions[i]);
  }
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
  const rt_tensor tensor = rows_of(x);
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
  return librt::test::run_backend_tests(argc, argv, [&](librt::Device&) {
    if (argc > 2) librt::devices = static_cast<int>(std::strtol(argv[2], nullptr, 10));
  });
}
