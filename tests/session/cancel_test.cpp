// Runs that are cancelled, and runs that reach a limit on their time or on the iterations of their loops.
// argv[1]: the backend; or --write FILE: writes a model whose run takes hours.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "rt/rt.h"
#include "runtime/session/session.h"
#include "tests/support/backend_main.h"
#include "tests/support/control_nodes.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using compiler::Builder;
using test::Body;
using test::emit_loop;
using Clock = std::chrono::steady_clock;

using test::backend_name;
bool asynchronous = false;    ///< the backend's device
constexpr double kSoon = 20;  ///< seconds; on a busy machine, far less than what is cancelled would take

#define ASSERT_OK(expression)                                       \
  do {                                                              \
    const Status asserted_status = (expression);                    \
    ASSERT_TRUE(asserted_status.ok()) << asserted_status.message(); \
  } while (0)

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::shared_ptr<const ModelGraph> model_of(Graph graph, std::vector<State> states = {}) {
  auto model = std::make_shared<ModelGraph>();
  graph.name = "infer";
  model->states = std::move(states);
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

std::unique_ptr<Session> open(const std::shared_ptr<const ModelGraph>& model, SessionOptions options = {}) {
  options.backend = backend_name;
  auto session = Session::create(model, options);
  if (session.ok()) return std::move(session).value();
  ADD_FAILURE() << session.status().message();
  return nullptr;
}

/// x + 1, `trips` to the power of three times.
std::shared_ptr<const ModelGraph> nested_loops(int64_t trips) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 4}});
  const ValueId count = build.constant({DType::I64, {}}, Blob::copy_of(&trips, sizeof trips));
  Body outer(graph, {x}, {count}, true);
  Body middle(outer.graph, {outer.in(2)}, {outer.in(3)}, true);
  Body inner(middle.graph, {middle.in(2)}, {}, true);
  const auto go_on = [](Body& body) {
    body.build.output(body.build.emit(op::IdentityAttributes{}, {body.in(1)}));
  };
  go_on(inner);
  inner.build.output(inner.build.add(inner.in(2), inner.build.scalar(1, DType::F32)));
  go_on(middle);
  middle.build.output(emit_loop(middle.build, middle.in(3), kNoValue, {middle.in(2)}, inner)[0]);
  go_on(outer);
  outer.build.output(emit_loop(outer.build, outer.in(3), kNoValue, {outer.in(2)}, middle)[0]);
  build.output(emit_loop(build, count, kNoValue, {x}, outer)[0]);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model_of(std::move(graph));
}

Status set_x(Session& session, float value = 0) {
  const std::vector<float> x(4, value);
  return session.set_input(0, {x.data(), {DType::F32, {4}}}, x.size() * sizeof(float));
}

/// Each loop alone is within the limit.
TEST(Limits, CountTheIterationsOfAllLoops) {
  auto session = open(nested_loops(900), {.loop_limit = 1000});
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set_x(*session));
  for (int round = 0; round < 2; ++round) {
    const Clock::time_point start = Clock::now();
    const Status status = session->run();
    EXPECT_EQ(status.code(), Code::LimitExceeded) << status.message();
    EXPECT_NE(status.message().find("1000 iterations together"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("Loop"), std::string::npos) << status.message();
    EXPECT_LT(seconds_since(start), kSoon);
  }
  // 3 + 9 + 27 iterations; the budget is that of one run.
  auto fits = open(nested_loops(3), {.loop_limit = 39});
  ASSERT_NE(fits, nullptr);
  ASSERT_OK(set_x(*fits));
  for (int round = 0; round < 3; ++round) ASSERT_OK(fits->run());
  EXPECT_EQ(fits->output(0)->as<float>()[0], 27);
}

TEST(Limits, EndRunsThatTakeTooLong) {
  auto session = open(nested_loops(1 << 20), {.loop_limit = uint64_t{1} << 62, .time_limit_ms = 200});
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set_x(*session));
  const Clock::time_point start = Clock::now();
  const Status status = session->run();
  EXPECT_EQ(status.code(), Code::LimitExceeded) << status.message();
  EXPECT_NE(status.message().find("time limit of 200 ms"), std::string::npos) << status.message();
  EXPECT_GE(seconds_since(start), 0.19);
  EXPECT_LT(seconds_since(start), kSoon);
  EXPECT_FALSE(session->output(0).ok());

  auto quick = open(nested_loops(2), {.time_limit_ms = ~uint64_t{0}});
  ASSERT_NE(quick, nullptr);
  ASSERT_OK(set_x(*quick));
  ASSERT_OK(quick->run());
}

TEST(Cancel, StopsALoopFromAnotherThread) {
  auto session = open(nested_loops(1 << 20), {.loop_limit = uint64_t{1} << 62});
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set_x(*session));
  for (int round = 0; round < 3; ++round) {
    const Clock::time_point start = Clock::now();
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      session->cancel();
    });
    const Status status = session->run();
    EXPECT_EQ(status.code(), Code::Cancelled) << status.message();
    EXPECT_LT(seconds_since(start), kSoon);
  }
}

/// x, negated often, by nodes that no pass joins.
std::shared_ptr<const ModelGraph> chain(int nodes) {
  Graph graph;
  Builder build(graph);
  ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}});
  for (int i = 0; i < nodes; ++i) x = build.neg(x);
  build.output(x);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model_of(std::move(graph));
}

Status set_row(Session& session, int64_t count, float value = 1) {
  const std::vector<float> x(static_cast<size_t>(count), value);
  return session.set_input(0, {x.data(), {DType::F32, {count}}}, x.size() * sizeof(float));
}

/// Before, and after a run: one request ends one run.
TEST(Cancel, StopsTheNextRunIfNoneIsInProgress) {
  auto session = open(chain(3));
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set_row(*session, 4, 5));
  session->cancel();
  session->cancel();
  EXPECT_EQ(session->run().code(), Code::Cancelled);
  EXPECT_FALSE(session->output(0).ok());
  ASSERT_OK(session->run());
  EXPECT_EQ(session->output(0)->as<float>()[3], -5);
  session->cancel();
  EXPECT_EQ(session->output(0)->as<float>()[3], -5);  // the run before is not touched
  EXPECT_EQ(session->prepare().code(), Code::Cancelled);
  ASSERT_OK(session->prepare());
  session->cancel();
  session->uncancel();
  ASSERT_OK(session->run());
  EXPECT_EQ(session->output(0)->as<float>()[3], -5);
}

/// While a plan is built, and between the kernels of a recorded list: on the CPU a run is stopped within.
TEST(Cancel, StopsBetweenKernels) {
  if (asynchronous || backend_name == "vulkan" || backend_name == "cuda_emu")
    GTEST_SKIP() << "work on a GPU is not interrupted";
  const int64_t elements = backend_name == "reference" ? 1 << 15 : 1 << 20;  // plain loops are slow
  auto session = open(chain(2000));
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set_row(*session, elements));
  ASSERT_OK(session->run());
  Clock::time_point start = Clock::now();
  ASSERT_OK(session->run());
  const double whole = seconds_since(start);
  start = Clock::now();
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(whole / 10));
    session->cancel();
  });
  EXPECT_EQ(session->run().code(), Code::Cancelled);
  EXPECT_LT(seconds_since(start), whole * 3 / 4 + 0.1);
  other.join();
  ASSERT_OK(session->run());
  EXPECT_EQ(session->output(0)->as<float>()[7], 1);
}

/// outputs x summed; the states "early" and "late" count the runs: one is written at the start of the list,
/// the other at its end.
std::shared_ptr<const ModelGraph> step_model(int nodes) {
  std::vector<State> states;
  for (const char* name : {"early", "late"})
    states.push_back({.name = name, .info = {DType::F32, {1}}, .kind = StateKind::Counter, .initial = {}});
  Graph graph;
  Builder build(graph, &states);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}});
  const ValueId early = build.state("early", 0, states[0].info),
                late = build.state("late", 1, states[1].info);
  const ValueId one = build.scalar(1, DType::F32);
  ValueId head = x;
  for (int i = 0; i < nodes; ++i) head = build.neg(head);
  op::ReduceSumAttributes all{.axes = {0}, .keep_dims = true};
  const ValueId zero = build.sub(build.emit(all, {head}), build.emit(all, {head}));
  const ValueId next_early = build.add(early, build.add(zero, one));
  ValueId tail = build.add(head, zero);
  for (int i = 0; i < nodes; ++i) tail = build.neg(tail);
  const ValueId still_zero = build.sub(build.emit(all, {tail}), build.emit(all, {tail}));
  graph.state_updates.push_back({early, next_early});
  graph.state_updates.push_back({late, build.add(late, build.add(still_zero, one))});
  build.output(build.emit(all, {tail}));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model_of(std::move(graph), std::move(states));
}

float state(Session& session, const char* name) {
  float value = -1;
  const auto index = session.states().find(name);
  EXPECT_TRUE(index.ok() && session.states().read(*index, std::as_writable_bytes(std::span(&value, 1))).ok());
  return value;
}

/// Requests at many moments of a step: it has taken place whole, or not at all. Also for submitted steps.
TEST(Cancel, LeavesStatesWhole) {
  constexpr int64_t kElements = 1 << 12;
  auto session = open(step_model(100));
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set_row(*session, kElements));
  ASSERT_OK(session->run());
  float done = 1;
  std::atomic<bool> over = false;
  std::jthread other([&] {
    for (unsigned i = 0; !over; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 1000));
      session->cancel();
    }
  });
  int cancelled = 0;
  for (int i = 0; i < 200 || (cancelled < 10 && i < 1000000); ++i) {
    const bool submits = i % 2 == 1;
    const Status status = submits ? session->submit() : session->run();
    ASSERT_TRUE(status.ok() || status.code() == Code::Cancelled) << status.message();
    cancelled += !status.ok();
    done += status.ok() ? 1.0F : 0.0F;
    if (submits && status.ok()) ASSERT_OK(session->wait());
    ASSERT_EQ(state(*session, "early"), done);
    ASSERT_EQ(state(*session, "late"), done);
  }
  over = true;
  other.join();
  EXPECT_GT(cancelled, 0);
  session->uncancel();
  ASSERT_OK(session->run());
  EXPECT_EQ(state(*session, "late"), done + 1);
}

/// A submitted run that a device executes completes; the request stops the next.
TEST(Cancel, LetsSubmittedRunsComplete) {
  auto session = open(step_model(2));
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set_row(*session, 64));
  ASSERT_OK(session->run());
  ASSERT_OK(session->submit());
  session->cancel();
  EXPECT_EQ(session->submit().code(), Code::Cancelled);
  ASSERT_OK(session->submit());
  session->cancel();
  ASSERT_OK(session->wait());
  ASSERT_OK(session->wait());
  EXPECT_EQ(session->run().code(), Code::Cancelled);
  ASSERT_OK(session->run());
  EXPECT_EQ(state(*session, "early"), 4);
  EXPECT_EQ(state(*session, "late"), 4);
}

/// Through rt.h, while another thread's call holds the session.
TEST(Cancel, WorksWhileTheSessionIsInUse) {
  const auto bytes = compiler::serialize_model(*nested_loops(1 << 20));
  ASSERT_TRUE(bytes.ok());
  rt_model* model = nullptr;
  ASSERT_EQ(rt_model_load_from_memory(bytes->data(), bytes->size(), 1, &model), nullptr);
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  options.backend = backend_name.c_str();
  options.loop_limit = uint64_t{1} << 62;
  rt_session* session = nullptr;
  ASSERT_EQ(rt_session_create(model, &options, &session), nullptr);
  rt_model_free(model);
  float x[4] = {};
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.rank = 1;
  tensor.dims[0] = 4;
  tensor.data = x;
  tensor.bytes = sizeof x;
  ASSERT_EQ(rt_session_set_input(session, 0, &tensor), nullptr);
  {
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      rt_session_cancel(session);
    });
    rt_status* status = rt_session_run(session);
    EXPECT_EQ(rt_status_code(status), RT_CANCELLED) << rt_status_message(status);
    rt_status_free(status);
  }
  rt_session_cancel(nullptr);
  rt_session_uncancel(nullptr);
  rt_session_free(session);
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  if (argc > 3 && std::string_view(argv[1]) == "--write") {
    const int64_t trips = std::strtoll(argv[3], nullptr, 10);
    const librt::Status status = librt::compiler::write_model(*librt::nested_loops(trips), argv[2]);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
    return status.ok() ? 0 : 1;
  }
  return librt::test::run_backend_tests(
      argc, argv, [](librt::Device& device) { librt::asynchronous = device.info().asynchronous; });
}
