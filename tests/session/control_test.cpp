// Sessions on partitioned graphs: data-dependent extents, If, Loop, captured values, and memory.
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/ops/control.h"
#include "runtime/session/session.h"
#include "tests/session/far_device.h"
#include "tests/support/control_nodes.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt {
namespace {

using compiler::Builder;
using test::Body;
using test::emit_if;
using test::emit_loop;

#define ASSERT_OK(expression)                                       \
  do {                                                              \
    const Status asserted_status = (expression);                    \
    ASSERT_TRUE(asserted_status.ok()) << asserted_status.message(); \
  } while (0)

std::shared_ptr<const ModelGraph> model_of(Graph graph, std::vector<State> states = {}) {
  auto model = std::make_shared<ModelGraph>();
  graph.name = "infer";
  model->states = std::move(states);
  model->entries.push_back({"infer", std::move(graph)});
  const Status optimized = compiler::optimize(*model, {}, nullptr);
  EXPECT_TRUE(optimized.ok()) << optimized.message();
  return model;
}

std::set<OpKind> every_operator() {
  std::set<OpKind> all;
#define RT_OP(Name) all.insert(OpKind::Name);
#include "schema/op_list.inc"
#undef RT_OP
  return all;
}

/// Sessions on the reference backend, and on a device whose memory has no host address.
class Control : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Session> open(Graph graph, SessionOptions options = {.backend = "reference"},
                                std::vector<State> states = {}) {
    const auto model = model_of(std::move(graph), std::move(states));
    auto session = [&]() -> Result<std::unique_ptr<Session>> {
      if (!GetParam()) return Session::create(model, options);
      RT_ASSIGN(auto devices,
                DeviceSet::adopt(std::make_unique<test::FarDevice>(every_operator(), std::set<OpKind>{})));
      return Session::create_on(std::move(devices), model, options);
    }();
    if (session.ok()) return std::move(session).value();
    ADD_FAILURE() << session.status().message();
    return nullptr;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Control, ::testing::Values(false, true),
                         [](const auto& far) { return far.param ? "Far" : "Host"; });

Status set(Session& session, size_t index, const std::vector<float>& values) {
  return session.set_input(index, {values.data(), {DType::F32, {static_cast<int64_t>(values.size())}}},
                           values.size() * sizeof(float));
}
Status set_flag(Session& session, size_t index, bool value) {
  return session.set_input(index, {&value, {DType::Bool, {}}}, sizeof value);
}
Status set_count(Session& session, size_t index, int64_t value) {
  return session.set_input(index, {&value, {DType::I64, {}}}, sizeof value);
}

std::vector<float> floats(Session& session, size_t index) {
  const auto view = session.output(index);
  if (!view.ok()) {
    ADD_FAILURE() << view.status().message();
    return {};
  }
  const auto* data = view->as<float>();
  return {data, data + view->info.elements()};
}

using Floats = std::vector<float>;

/// x -> -x where x is not zero.
Graph picker() {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}});
  const int64_t all = -1;
  const ValueId places = build.reshape(build.emit(op::NonZeroAttributes{}, {x}), build.ints({&all, 1}));
  build.output(build.neg(build.emit(op::GatherAttributes{}, {x, places})));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return graph;
}

TEST_P(Control, ExtentsFollowTheData) {
  auto session = open(picker());
  ASSERT_NE(session, nullptr);
  const auto run = [&](const Floats& x) {
    EXPECT_TRUE(set(*session, 0, x).ok());
    const Status status = session->run();
    EXPECT_TRUE(status.ok()) << status.message();
    return floats(*session, 0);
  };
  EXPECT_EQ(run({0, 1, 2, 0, 3}), (Floats{-1, -2, -3}));
  EXPECT_EQ(run({4, 0, 0, 0, 0}), (Floats{-4}));
  EXPECT_EQ(run({0, 0, 0, 0, 0}), (Floats{}));
  EXPECT_EQ(run({5, 6}), (Floats{-5, -6}));
  EXPECT_EQ(run({}), (Floats{}));
  EXPECT_NE(session->plan_text().find("cut: NonZero"), std::string::npos) << session->plan_text();
}

TEST_P(Control, BoundOutputsOfUnknownExtent) {
  auto session = open(picker());
  alignas(64) float y[3] = {};
  ASSERT_OK(session->bind_output(0, y, sizeof y));
  ASSERT_OK(set(*session, 0, {0, 1, 2}));
  ASSERT_OK(session->run());
  EXPECT_EQ(session->output(0)->data, y);
  EXPECT_EQ(session->output(0)->info.shape, (Shape{2}));
  EXPECT_EQ(y[1], -2);
  ASSERT_OK(set(*session, 0, {1, 2, 3, 4}));
  EXPECT_EQ(session->run().code(), Code::InvalidArgument);
}

/// if (flag) { if (x0 > 0) x + s else x - s } else joined(x, x); s = 2 x is computed outside.
Graph nested_if() {
  Graph graph;
  Builder build(graph);
  const ValueId flag = build.input("flag", DType::Bool, {});
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}});
  const ValueId s = build.add(x, x);
  Body yes(graph, {}, {x, s}, false), no(graph, {}, {x, s}, false);
  {
    Body plus(yes.graph, {}, {yes.in(0), yes.in(1)}, false),
        minus(yes.graph, {}, {yes.in(0), yes.in(1)}, false);
    plus.build.output(plus.build.add(plus.in(0), plus.in(1)));
    minus.build.output(minus.build.sub(minus.in(0), minus.in(1)));
    op::ReduceMaxAttributes all;
    all.keep_dims = false;
    const ValueId positive = yes.build.emit(
        op::GreaterAttributes{}, {yes.build.emit(all, {yes.in(0)}), yes.build.scalar(0, DType::F32)});
    yes.build.output(emit_if(yes.build, positive, plus, minus)[0]);
  }
  no.build.output(no.build.emit(op::ConcatAttributes{}, {no.in(0), no.in(0)}));
  build.output(build.neg(emit_if(build, flag, yes, no)[0]));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return graph;
}

TEST_P(Control, BranchesWithinBranchesUseOuterValues) {
  auto session = open(nested_if());
  ASSERT_NE(session, nullptr);
  const auto run = [&](bool flag, const Floats& x) {
    EXPECT_TRUE(set_flag(*session, 0, flag).ok() && set(*session, 1, x).ok());
    const Status status = session->run();
    EXPECT_TRUE(status.ok()) << status.message();
    return floats(*session, 0);
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(run(true, {1, 2}), (Floats{-3, -6}));
    EXPECT_EQ(run(true, {-1, -2}), (Floats{-1, -2}));
    EXPECT_EQ(run(false, {1, 2}), (Floats{-1, -2, -1, -2}));
    EXPECT_EQ(run(true, {5}), (Floats{-15}));
  }
}

/// carried: sum += x[i]; list = joined(list, sum). scanned: sum. Ends when sum >= 100.
Graph summing(bool forever = false) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}});
  const ValueId trips = forever ? kNoValue : build.input("trips", DType::I64, {});
  const float zero = 0;
  const ValueId sum = build.constant({DType::F32, {1}}, Blob::copy_of(&zero, sizeof zero));
  const ValueId list = build.constant({DType::F32, {0}}, Blob::copy_of(&zero, 0));
  Body body(graph, {sum}, {}, true);
  const ValueId grown = body.build.input("", DType::F32, {{.symbol = body.graph.symbol("list")}});
  const ValueId captured = body.build.input("", DType::F32, {{.symbol = body.graph.symbol("n")}});
  body.captured = {x};
  const int64_t one = 1;
  const ValueId index = body.build.reshape(body.in(0), body.build.ints({&one, 1}));
  const ValueId item = forever ? body.in(2) : body.build.emit(op::GatherAttributes{}, {captured, index});
  const ValueId next = body.build.add(body.in(2), item);
  const ValueId small = body.build.emit(op::LessAttributes{}, {next, body.build.scalar(100, DType::F32)});
  body.build.output(body.build.reshape(small, body.build.ints({})));
  body.build.output(next);
  body.build.output(body.build.emit(op::ConcatAttributes{}, {grown, next}));
  body.build.output(body.build.emit(op::IdentityAttributes{}, {next}));
  for (const ValueId id : emit_loop(build, trips, kNoValue, {sum, list}, body)) build.output(id);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return graph;
}

TEST_P(Control, LoopsCarryGrowAndScan) {
  auto session = open(summing());
  ASSERT_NE(session, nullptr);
  const auto run = [&](int64_t trips, const Floats& x) {
    EXPECT_TRUE(set(*session, 0, x).ok() && set_count(*session, 1, trips).ok());
    const Status status = session->run();
    EXPECT_TRUE(status.ok()) << status.message();
  };
  for (int round = 0; round < 2; ++round) {
    run(3, {1, 2, 3, 4});
    EXPECT_EQ(floats(*session, 0), (Floats{6}));
    EXPECT_EQ(floats(*session, 1), (Floats{1, 3, 6}));
    EXPECT_EQ(session->output(2)->info.shape, (Shape{3, 1}));
    EXPECT_EQ(floats(*session, 2), (Floats{1, 3, 6}));
    run(0, {1, 2});
    EXPECT_EQ(floats(*session, 0), (Floats{0}));
    EXPECT_EQ(session->output(1)->info.shape, (Shape{0}));
    EXPECT_EQ(session->output(2)->info.shape, (Shape{0, 1}));
    run(-5, {1, 2});
    EXPECT_EQ(floats(*session, 0), (Floats{0}));
    run(9, {60, 60, 60});  // ended by its condition
    EXPECT_EQ(floats(*session, 1), (Floats{60, 120}));
    run(20, Floats(20, 1));
    EXPECT_EQ(floats(*session, 2).back(), 20);
  }
}

TEST_P(Control, LoopsWithoutEndAreStopped) {
  auto session = open(summing(true), {.backend = "reference", .loop_limit = 50});
  ASSERT_OK(set(*session, 0, {1}));
  const Status status = session->run();
  EXPECT_EQ(status.code(), Code::LimitExceeded);
  EXPECT_NE(status.message().find("the loops of this run have taken 50 iterations"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("Loop"), std::string::npos) << status.message();
}

/// y[i][j] = x + i + j by a loop in a loop.
TEST_P(Control, LoopsWithinLoops) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 1}});
  const ValueId rows = build.input("rows", DType::I64, {});
  Body outer(graph, {}, {x, rows}, true);
  Body inner(outer.graph, {}, {outer.in(2), outer.in(0)}, true);
  const ValueId place = inner.build.cast(inner.build.add(inner.in(0), inner.in(3)), DType::F32);
  inner.build.output(inner.build.emit(op::IdentityAttributes{}, {inner.in(1)}));
  inner.build.output(inner.build.add(inner.in(2), place));
  const std::vector<ValueId> columns = emit_loop(outer.build, outer.in(3), kNoValue, {}, inner);
  outer.build.output(outer.build.emit(op::IdentityAttributes{}, {outer.in(1)}));
  outer.build.output(columns[0]);
  build.output(emit_loop(build, rows, kNoValue, {}, outer)[0]);
  ASSERT_OK(build.status());
  auto session = open(std::move(graph));
  ASSERT_OK(set(*session, 0, {10}));
  for (const int64_t n : {2, 3, 0, 2}) {
    ASSERT_OK(set_count(*session, 1, n));
    ASSERT_OK(session->run());
    const Shape shape = n > 0 ? Shape{n, n, 1} : Shape{0, 0, 1};
    EXPECT_EQ(session->output(0)->info.shape, shape);
    const Floats y = floats(*session, 0);
    for (int64_t i = 0; i < n * n; ++i) {
      const int64_t expected = 10 + i / n + i % n;
      EXPECT_EQ(y[static_cast<size_t>(i)], static_cast<float>(expected));
    }
  }
}

TEST_P(Control, StatesAreReadBeforeTheyAreUpdated) {
  std::vector<State> states = {
      {.name = "sum", .info = {DType::F32, {2}}, .kind = StateKind::Counter, .initial = {}}};
  Graph graph;
  Builder build(graph, &states);
  const ValueId x = build.input("x", DType::F32, {{.extent = 2}});
  const ValueId sum = build.state("sum", 0, states[0].info);
  const int64_t all = -1;
  const ValueId places = build.reshape(build.emit(op::NonZeroAttributes{}, {sum}), build.ints({&all, 1}));
  build.output(build.emit(op::GatherAttributes{}, {x, places}));
  build.output(build.neg(sum));
  graph.state_updates.push_back({sum, build.add(sum, x)});
  ASSERT_OK(build.status());
  auto session = open(std::move(graph), {.backend = "reference"}, states);
  ASSERT_OK(set(*session, 0, {0, 7}));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (Floats{}));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (Floats{7}));
  EXPECT_EQ(floats(*session, 1), (Floats{-0.0f, -7}));
}

TEST_P(Control, MemoryStaysAsItIsAfterTheFirstRound) {
  for (const uint64_t cache : {uint64_t{0}, uint64_t{20000}}) {
    auto session = open(summing(), {.backend = "reference", .plan_cache_bytes = cache});
    MemoryStats first;
    for (int round = 0; round < 3; ++round) {
      for (int64_t n = 1; n <= 50; ++n) {
        ASSERT_OK(set(*session, 0, Floats(static_cast<size_t>(n), 0.5f)));
        ASSERT_OK(set_count(*session, 1, n));
        ASSERT_OK(session->run());
        EXPECT_EQ(floats(*session, 0)[0], 0.5f * static_cast<float>(n));
      }
      const MemoryStats now = session->memory();
      if (round == 0) first = now;
      EXPECT_EQ(now.arena, first.arena);
      EXPECT_EQ(now.staging, first.staging);
      EXPECT_EQ(now.weights, first.weights);
      EXPECT_EQ(now.packed, first.packed);
      EXPECT_LE(now.plans, first.plans);
    }
  }
}

TEST_P(Control, ProfileNamesHostNodesAndKernels) {
  auto session = open(picker(), {.backend = "reference", .profile = true});
  ASSERT_OK(set(*session, 0, {0, 1}));
  ASSERT_OK(session->run());
  ASSERT_OK(session->run());
  size_t host = 0, kernels = 0;
  for (const Executor::Timing& timing : session->profile()) {
    (timing.plan == nullptr ? host : kernels) += 1;
    EXPECT_EQ(timing.runs, 2u);
  }
  EXPECT_EQ(host, 1u);
  EXPECT_GE(kernels, 2u);
  session->reset_profile();
  for (const Executor::Timing& timing : session->profile()) EXPECT_EQ(timing.runs, 0u);
}

}  // namespace
}  // namespace librt
