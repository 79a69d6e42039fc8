// Sessions on the reference backend: shapes, plans, states, memory. Other tests check the values.
#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/backend/registry.h"
#include "tests/session/far_device.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt {
namespace {

using compiler::Builder;

SessionOptions reference() {
  return {.backend = "reference"};
}

std::shared_ptr<const ModelGraph> model_of(Graph graph, std::vector<State> states = {}) {
  auto model = std::make_shared<ModelGraph>();
  graph.name = "infer";
  model->states = std::move(states);
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

/// y = relu(x w + b) with w [3,2], for any number of rows.
std::shared_ptr<const ModelGraph> linear() {
  Graph graph;
  Builder build(graph);
  const int32_t batch = graph.symbol("batch");
  graph.symbols[static_cast<size_t>(batch)].bound = 100;
  const ValueId x = build.input("x", DType::F32, {{.symbol = batch}, {.extent = 3}});
  const float w[] = {1, 2, 3, 4, 5, 6};
  const float b[] = {-10, 1};
  const ValueId weight = build.constant({DType::F32, {3, 2}}, Blob::copy_of(w, sizeof w));
  const ValueId bias = build.constant({DType::F32, {2}}, Blob::copy_of(b, sizeof b));
  const ValueId matmul = build.emit(op::MatMulAttributes{}, {x, weight});
  const ValueId y = build.emit(op::ReluAttributes{}, {build.add(matmul, bias)});
  build.output(y);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model_of(std::move(graph));
}

Status set(Session& session, size_t index, const Shape& shape, const std::vector<float>& values) {
  return session.set_input(index, {values.data(), {DType::F32, shape}}, values.size() * sizeof(float));
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

#define ASSERT_OK(expression)                                       \
  do {                                                              \
    const Status asserted_status = (expression);                    \
    ASSERT_TRUE(asserted_status.ok()) << asserted_status.message(); \
  } while (0)

std::unique_ptr<Session> open(std::shared_ptr<const ModelGraph> model, SessionOptions options = reference(),
                              Session* share = nullptr) {
  auto session = Session::create(std::move(model), std::move(options), share);
  if (session.ok()) return std::move(session).value();
  ADD_FAILURE() << session.status().message();
  return nullptr;
}

// A file that claims an extent that a run contradicts is rejected: its passes have relied on the claim.
TEST(Session, AClaimThatARunContradictsIsAnError) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}});
  const int64_t begin = 0, end = 16;
  op::SliceAttributes slice;
  slice.axes = {0};
  slice.steps = {1};
  const ValueId y = build.emit(std::move(slice), {x, build.ints({&begin, 1}), build.ints({&end, 1})});
  build.output(y);
  ASSERT_TRUE(build.status().ok()) << build.status().message();
  Graph wrong = graph;
  wrong[y].dims = {{.extent = 16}};
  auto right = open(model_of(std::move(graph))), refused = open(model_of(std::move(wrong)));
  ASSERT_NE(right, nullptr);
  ASSERT_NE(refused, nullptr);
  for (const int64_t extent : {16, 40, 5}) {
    const std::vector<float> values(static_cast<size_t>(extent), 1.0f);
    ASSERT_OK(set(*right, 0, {extent}, values));
    ASSERT_OK(right->run());
    EXPECT_EQ(floats(*right, 0).size(), static_cast<size_t>(std::min<int64_t>(extent, 16)));
    ASSERT_OK(set(*refused, 0, {extent}, values));
    const Status status = refused->run();
    EXPECT_EQ(status.ok(), extent >= 16) << extent;
    if (!status.ok()) {
      EXPECT_NE(std::string(status.message()).find("for these inputs it is f32[5]"), std::string::npos)
          << status.message();
    }
  }
}

TEST(Session, RunsAtSeveralShapesAndKeepsTheirPlans) {
  auto session = open(linear());
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set(*session, 0, {1, 3}, {1, 1, 1}));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (std::vector<float>{0, 13}));
  ASSERT_OK(set(*session, 0, {2, 3}, {1, 1, 1, 2, 2, 2}));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (std::vector<float>{0, 13, 8, 25}));
  ASSERT_OK(set(*session, 0, {1, 3}, {2, 2, 2}));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (std::vector<float>{8, 25}));
  EXPECT_EQ(session->memory().plans, 2u);
}

TEST(Session, ZeroRows) {
  auto session = open(linear());
  ASSERT_OK(set(*session, 0, {0, 3}, {}));
  ASSERT_OK(session->run());
  EXPECT_EQ(session->output(0)->info.shape, (Shape{0, 2}));
}

TEST(Session, MismatchesNameTheInput) {
  auto session = open(linear());
  const Status rank = set(*session, 0, {3}, {1, 2, 3});
  EXPECT_EQ(rank.code(), Code::InvalidArgument);
  EXPECT_NE(rank.message().find("input 'x': expected f32[batch,3], found f32[3]"), std::string::npos)
      << rank.message();
  ASSERT_OK(set(*session, 0, {101, 3}, std::vector<float>(303)));
  const Status bound = session->run();
  EXPECT_NE(bound.message().find("batch = 101 is above its bound 100"), std::string::npos) << bound.message();
  EXPECT_FALSE(session->output(0).ok());
}

TEST(Session, NotSet) {
  auto session = open(linear());
  EXPECT_NE(session->run().message().find("'x'"), std::string::npos);
}

TEST(Session, BoundMemoryIsUsedInPlace) {
  auto session = open(linear());
  alignas(64) float x[6] = {1, 1, 1, 0, 0, 0};
  alignas(64) float y[4] = {};
  ASSERT_OK(session->bind_input(0, {x, {DType::F32, {2, 3}}}, sizeof x));
  ASSERT_OK(session->bind_output(0, y, sizeof y));
  ASSERT_OK(session->run());
  EXPECT_EQ(y[1], 13);
  EXPECT_EQ(session->output(0)->data, y);
  x[0] = 2;
  ASSERT_OK(session->run());
  EXPECT_EQ(y[1], 15);
  alignas(64) float other[4] = {};
  ASSERT_OK(session->bind_output(0, other, sizeof other));
  ASSERT_OK(session->run());
  EXPECT_EQ(other[1], 15);
  ASSERT_OK(session->bind_output(0, other, 4));
  EXPECT_EQ(session->run().code(), Code::InvalidArgument);
  ASSERT_OK(session->bind_output(0, nullptr, 0));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0)[1], 15);
}

TEST(Session, UnalignedMemoryIsCopied) {
  auto session = open(linear());
  alignas(64) float x[4] = {0, 1, 1, 1};
  alignas(64) float y[3] = {};
  ASSERT_OK(session->bind_input(0, {x + 1, {DType::F32, {1, 3}}}, 3 * sizeof(float)));
  ASSERT_OK(session->bind_output(0, y + 1, 2 * sizeof(float)));
  ASSERT_OK(session->run());
  EXPECT_EQ(y[2], 13);
}

TEST(Session, ShapeArithmeticRunsWhilePlanning) {
  Graph graph;
  Builder build(graph);
  const int32_t batch = graph.symbol("batch");
  const ValueId x = build.input("x", DType::F32, {{.symbol = batch}, {.extent = 2}, {.extent = 3}});
  op::GatherAttributes gather;
  const int64_t zero = 0, minus = -1;
  const ValueId first = build.constant({DType::I64, {1}}, Blob::copy_of(&zero, sizeof zero));
  const ValueId rest = build.constant({DType::I64, {1}}, Blob::copy_of(&minus, sizeof minus));
  op::ConcatAttributes concat;
  const ValueId rows = build.emit(std::move(gather), {build.shape_of(x), first});
  const ValueId shape = build.emit(std::move(concat), {rows, rest});
  build.output(build.reshape(build.neg(x), shape));
  ASSERT_OK(build.status());
  auto session = open(model_of(std::move(graph)));
  ASSERT_OK(set(*session, 0, {2, 2, 3}, std::vector<float>(12, 1)));
  ASSERT_OK(session->run());
  EXPECT_EQ(session->output(0)->info.shape, (Shape{2, 6}));
  EXPECT_EQ(session->plan()->program().steps.size(), 1u) << session->plan_text();
  EXPECT_EQ(floats(*session, 0), std::vector<float>(12, -1));
}

TEST(Session, InputsThatDecideOverShapes) {
  Graph graph;  // by hand: the builder requires known shapes
  const ValueId x = graph.add_value({.name = "x", .role = Role::Input, .dims = {{.extent = 6}}});
  const ValueId shape =
      graph.add_value({.name = "shape", .dtype = DType::I64, .role = Role::Input, .dims = {{.extent = 2}}});
  const ValueId reshaped = graph.add_value({.name = "reshaped", .dims = {{}, {}}});
  const ValueId y = graph.add_value({.name = "y", .dims = {{}, {}}});
  graph.inputs = {x, shape};
  graph.outputs = {y};
  graph.nodes.resize(2);
  graph.nodes[0].op = make_op(op::ReshapeAttributes{});
  graph.nodes[0].inputs = {x, shape};
  graph.nodes[0].outputs = {reshaped};
  graph.nodes[1].op = make_op(op::NegAttributes{});
  graph.nodes[1].inputs = {reshaped};
  graph.nodes[1].outputs = {y};
  auto session = open(model_of(std::move(graph)));
  ASSERT_OK(set(*session, 0, {6}, {1, 2, 3, 4, 5, 6}));
  for (const int64_t rows : {2, 3, 2}) {
    const int64_t dims[] = {rows, -1};
    ASSERT_OK(session->set_input(1, {dims, {DType::I64, {2}}}, sizeof dims));
    ASSERT_OK(session->run());
    EXPECT_EQ(session->output(0)->info.shape, (Shape{rows, 6 / rows}));
  }
  EXPECT_EQ(session->memory().plans, 2u);
}

TEST(Session, OutputsThatAreInputsConstantsOrTwice) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 2}});
  const ValueId c = build.scalar(7, DType::F32);
  const ValueId y = build.neg(x);
  for (const ValueId id : {x, c, y, y}) build.output(id);
  ASSERT_OK(build.status());
  auto session = open(model_of(std::move(graph)));
  ASSERT_OK(set(*session, 0, {2}, {1, 2}));
  alignas(64) float y2[2] = {};
  ASSERT_OK(session->bind_output(3, y2, sizeof y2));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(*session, 1), (std::vector<float>{7}));
  EXPECT_EQ(floats(*session, 2), (std::vector<float>{-1, -2}));
  EXPECT_EQ(y2[1], -2);
}

/// state' = state + x, y = state (the old value).
std::shared_ptr<const ModelGraph> counter() {
  std::vector<State> states = {
      {.name = "sum", .info = {DType::F32, {2}}, .kind = StateKind::Counter, .initial = {}}};
  Graph graph;
  Builder build(graph, &states);
  const ValueId x = build.input("x", DType::F32, {{.extent = 2}});
  const ValueId sum = build.state("sum", 0, states[0].info);
  const ValueId next = build.add(sum, x);
  build.output(build.neg(sum));
  graph.state_updates.push_back({sum, next});
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model_of(std::move(graph), std::move(states));
}

TEST(Session, StatesAreUpdatedAndShared) {
  const auto model = counter();
  auto session = open(model);
  ASSERT_OK(set(*session, 0, {2}, {1, 10}));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (std::vector<float>{0, 0}));
  ASSERT_OK(session->run());
  EXPECT_EQ(floats(*session, 0), (std::vector<float>{-1, -10}));
  auto other = open(model, reference(), session.get());
  ASSERT_OK(set(*other, 0, {2}, {0, 0}));
  ASSERT_OK(other->run());
  EXPECT_EQ(floats(*other, 0), (std::vector<float>{-2, -20}));
  const auto index = session->states().find("sum");
  ASSERT_TRUE(index.ok());
  const float values[] = {5, 6};
  ASSERT_OK(session->states().write(*index, std::as_bytes(std::span(values))));
  session.reset();
  ASSERT_OK(other->run());
  EXPECT_EQ(floats(*other, 0), (std::vector<float>{-5, -6}));
  EXPECT_FALSE(other->states().find("none").ok());
}

TEST(Session, WorkingMemoryBeyondAddressesIsRefused) {
  if (sizeof(size_t) > 4) GTEST_SKIP() << "on this machine addresses have 64 bits";
  // Twenty values of 256 MiB at a time: 5 GiB, which 32 bits would take for 1 GiB.
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 1 << 26}});
  std::vector<ValueId> values;
  for (int i = 0; i < 20; ++i) values.push_back(build.neg(x));
  ValueId sum = values[0];
  for (size_t i = 1; i < values.size(); ++i) sum = build.add(sum, values[i]);
  build.output(sum);
  const auto refused = Session::create(model_of(std::move(graph)), reference());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::OutOfMemory);
  EXPECT_NE(refused.status().message().find("this machine addresses at most"), std::string::npos)
      << refused.status().message();
}

TEST(Session, MemoryIsWhatThePlannerSaysAndTheLimitHolds) {
  Graph graph;
  Builder build(graph);
  ValueId x = build.input("x", DType::F32, {{.extent = 1000}});
  for (int i = 0; i < 10; ++i) x = build.neg(x);
  build.output(x);
  const auto model = model_of(std::move(graph));
  auto session = open(model);
  const MemoryStats stats = session->memory();
  EXPECT_EQ(stats.peak_planned, 2u * 4032);
  EXPECT_EQ(stats.naive, 9u * 4032);
  EXPECT_EQ(stats.arena, stats.peak_planned);
  SessionOptions tight = reference();
  tight.memory_limit = 8000;
  const auto refused = Session::create(model, tight);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::OutOfMemory);
  EXPECT_NE(refused.status().message().find("the memory limit is"), std::string::npos);
  tight.memory_limit = 9000;
  EXPECT_TRUE(Session::create(model, tight).ok());
}

TEST(Session, CompositesKeepTheirNodeOnTheReference) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 3}});
  build.output(build.emit(op::SiluAttributes{}, {x}));
  ASSERT_OK(build.status());
  ASSERT_OK(compiler::expand_composites(graph, {}));
  auto session = open(model_of(std::move(graph)));
  ASSERT_OK(set(*session, 0, {3}, {0, 1, -1}));
  ASSERT_OK(session->run());
  EXPECT_NEAR(floats(*session, 0)[1], 0.731059f, 1e-5f);
}

TEST(Session, ProfileAndPlanText) {
  SessionOptions options = reference();
  options.profile = true;
  auto session = open(linear(), options);
  ASSERT_OK(set(*session, 0, {1, 3}, {1, 1, 1}));
  ASSERT_OK(session->run());
  ASSERT_OK(session->run());
  EXPECT_EQ(session->plan()->profiled_runs(), 2u);
  EXPECT_EQ(session->plan()->nanoseconds().size(), 3u);
  // Collected once for all entries that rt_session_profile() hands out, and again after the next run.
  ASSERT_EQ(session->profile().size(), 3u);
  const auto* const collected = session->profile().data();
  const uint64_t before = session->profile()[0].nanoseconds;
  EXPECT_EQ(session->profile().data(), collected);
  EXPECT_EQ(session->profile()[2].runs, 2u);
  ASSERT_OK(session->run());
  EXPECT_EQ(session->profile()[2].runs, 3u);
  EXPECT_GE(session->profile()[0].nanoseconds, before);
  const std::string plan = session->plan_text();
  for (const char* word : {"MatMul", "reference.Relu", "arena", "f32[1,2]", "0 fallbacks", "output 0"})
    EXPECT_NE(plan.find(word), std::string::npos) << word << " in\n" << plan;
  session->reset_profile();
  EXPECT_EQ(session->plan()->profiled_runs(), 0u);
  EXPECT_EQ(session->profile()[2].runs, 0u);
}

size_t occurrences(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// The reference backend supports every type.
TEST(Session, ComputesInThePrecisionAskedFor) {
  SessionOptions options = reference();
  options.precision = "bf16";
  auto session = open(linear(), options);
  ASSERT_TRUE(set(*session, 0, {1, 3}, {1.001f, 2, 3}).ok());
  ASSERT_TRUE(session->run().ok());
  EXPECT_EQ(floats(*session, 0), (std::vector<float>{12, 29}));  // x is rounded to 1
  const std::string plan = session->plan_text();
  // x is narrowed, and the result widened; weight and bias are converted at plan time; nothing in between.
  EXPECT_EQ(occurrences(plan, "  Cast  "), 2u) << plan;
  EXPECT_EQ(occurrences(plan, "x as bf16"), 1u) << plan;
  EXPECT_NE(plan.find("2 casts added to the graph"), std::string::npos) << plan;
  options.precision = "fp32";
  session = open(linear(), options);
  ASSERT_TRUE(set(*session, 0, {1, 3}, {1.001f, 2, 3}).ok());
  ASSERT_TRUE(session->run().ok());
  EXPECT_EQ(occurrences(session->plan_text(), "Cast"), 0u);
}

bool has_cpu() {
  for (const BackendReport& report : probe_backends())
    if (report.name == "cpu") return !report.devices.empty();
  return false;
}

/// y = relu(conv(x)) + x, all in f16, for which the cpu backend has no convolution.
TEST(Session, ComputesInF32WhereADeviceHasNo16BitKernel) {
  if (!has_cpu()) GTEST_SKIP() << "the backend cpu is not there";
  Graph graph;
  Builder build(graph);
  const ValueId x =
      build.input("x", DType::F16, {{.extent = 1}, {.extent = 4}, {.extent = 4}, {.extent = 1}});
  const uint16_t w[] = {0x4000};  // 2
  const ValueId weight = build.constant({DType::F16, {1, 1, 1, 1}}, Blob::copy_of(w, sizeof w));
  const ValueId y = build.emit(op::ReluAttributes{}, {build.emit(op::ConvAttributes{}, {x, weight})});
  build.output(build.add(y, x));
  ASSERT_TRUE(build.status().ok()) << build.status().message();
  auto session = open(model_of(std::move(graph)), {.backend = "cpu", .strict = true});
  const std::vector<uint16_t> ones(16, 0x3c00);
  ASSERT_TRUE(session->set_input(0, {ones.data(), {DType::F16, {1, 4, 4, 1}}}, 32).ok());
  ASSERT_TRUE(session->run().ok());
  const auto* got = session->output(0)->as<uint16_t>();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(got[i], 0x4200) << i;  // 3
  const std::string plan = session->plan_text();
  // x is widened once, the sum narrowed; the nodes between compute in f32.
  EXPECT_EQ(occurrences(plan, "  Cast  "), 2u) << plan;
  EXPECT_EQ(occurrences(plan, "f16[1,4,4,1]"), 4u) << plan;  // x and the result, and their Casts
}

/// An f32 model in f16 on the cpu backend: it has no f16 matmul, so it is rejected with a suggestion.
TEST(Session, RefusesAPrecisionWithoutKernels) {
  if (!has_cpu()) GTEST_SKIP() << "the backend cpu is not there";
  SessionOptions options{.backend = "cpu"};
  options.precision = "fp16";
  auto session = Session::create(linear(), options);
  Status status = session.status();
  if (session.ok()) {
    ASSERT_TRUE(set(**session, 0, {1, 3}, {1, 2, 3}).ok());
    status = (*session)->run();
  }
  EXPECT_EQ(status.code(), Code::Unsupported);
  for (const char* word : {"f16", "cpu", "fp32"})
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

TEST(Session, RefusesWhatItCannotHonour) {
  SessionOptions options = reference();
  options.precision = "int4";
  EXPECT_NE(Session::create(linear(), options).status().message().find("tf32, fp16 or bf16"),
            std::string::npos);
  options = reference();
  options.entry = "train_step";
  EXPECT_NE(Session::create(linear(), options).status().message().find("it has infer"), std::string::npos);
  options = {.backend = "abacus"};
  const Status unknown = Session::create(linear(), options).status();
  EXPECT_EQ(unknown.code(), Code::InvalidArgument);
  EXPECT_NE(unknown.message().find("unknown backend 'abacus'"), std::string::npos) << unknown.message();
}

struct Far {
  test::FarDevice* device = nullptr;
  std::unique_ptr<Session> session;
};

Far open_far(std::shared_ptr<const ModelGraph> model, const std::set<OpKind>& operators,
             const std::set<OpKind>& in_place = {}, SessionOptions options = {}) {
  Far far;
  auto device = std::make_unique<test::FarDevice>(operators, in_place);
  far.device = device.get();
  auto devices = DeviceSet::adopt(std::move(device));
  EXPECT_TRUE(devices.ok());
  auto session = Session::create_on(std::move(devices).value(), std::move(model), std::move(options));
  if (session.ok())
    far.session = std::move(session).value();
  else
    ADD_FAILURE() << session.status().message();
  return far;
}

TEST(FarSession, CopiesAtTheBordersOnly) {
  Far far = open_far(linear(), {OpKind::MatMul, OpKind::Add, OpKind::Relu}, {OpKind::Relu});
  for (const float x : {1.0f, 2.0f}) {
    ASSERT_OK(set(*far.session, 0, {1, 3}, {x, x, x}));
    ASSERT_OK(far.session->run());
    EXPECT_EQ(floats(*far.session, 0)[1], 12 * x + 1);
  }
  EXPECT_EQ(far.device->recordings, 1);
  EXPECT_EQ(far.session->plan()->program().fallbacks, 0u);
  const MemoryStats stats = far.session->memory();
  EXPECT_EQ(stats.weights, 2u * 256);
  EXPECT_EQ(far.device->allocated, 4096 + stats.weights + stats.arena);  // 4096: the probe for host addresses
  // A larger plan grows the arena, and the small one is recorded again.
  ASSERT_OK(set(*far.session, 0, {100, 3}, std::vector<float>(300, 1)));
  ASSERT_OK(far.session->run());
  ASSERT_OK(set(*far.session, 0, {1, 3}, {1, 1, 1}));
  ASSERT_OK(far.session->run());
  EXPECT_EQ(floats(*far.session, 0)[1], 13);
  EXPECT_EQ(far.device->recordings, 3);
}

/// y[i] = x[i] + n - i: the constant n, n - 1 .. 1 is computed for each shape.
std::shared_ptr<const ModelGraph> counting_down() {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}});
  const ValueId n = build.reshape(build.shape_of(x), build.ints({}));
  const ValueId down =
      build.emit(op::RangeAttributes{}, {n, build.scalar(0, DType::I64), build.scalar(-1, DType::I64)});
  build.output(build.add(x, build.cast(down, DType::F32)));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model_of(std::move(graph));
}

TEST(FarSession, PlansOfOtherShapesTakeTurnsWithTheirConstants) {
  SessionOptions options;
  const auto run = [](Session& session, int64_t n) {
    ASSERT_OK(set(session, 0, {n}, std::vector<float>(static_cast<size_t>(n), 0.5f)));
    ASSERT_OK(session.run());
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(floats(session, 0)[static_cast<size_t>(i)], 0.5f + static_cast<float>(n - i))
          << n << " " << i;
  };
  Far far = open_far(counting_down(), {OpKind::Add});
  run(*far.session, 100);
  EXPECT_EQ(far.session->memory().weights, 512u);
  // With a limit, floats that grow with the shapes are left to the device; the integers remain constants.
  options.memory_limit = uint64_t{1} << 30;
  far = open_far(counting_down(), {OpKind::Add, OpKind::Cast}, {}, options);
  run(*far.session, 100);
  MemoryStats stats = far.session->memory();
  EXPECT_EQ(stats.weights, 1024u);
  const uint64_t planned = stats.weights + stats.arena;
  // With a limit of exactly this, other shapes that need no more run too, in any order.
  options.memory_limit = planned;
  for (const std::vector<int64_t>& order :
       {std::vector<int64_t>{100, 70, 100, 70, 3}, {70, 100, 70, 3, 100}}) {
    far = open_far(counting_down(), {OpKind::Add, OpKind::Cast}, {}, options);
    for (const int64_t n : order) run(*far.session, n);
    stats = far.session->memory();
    EXPECT_EQ(stats.plans, 3u);
    EXPECT_EQ(stats.weights + stats.arena, planned);
  }
  run(*far.session, 70);  // the order of the last session: all are recorded where nothing grows any more
  const int recordings = far.device->recordings;
  const size_t allocated = far.device->allocated;
  for (const int64_t n : {3, 100, 70}) run(*far.session, n);
  EXPECT_EQ(far.device->recordings, recordings);
  EXPECT_EQ(far.device->allocated, allocated);
  // A larger plan does not fit; without a limit it grows the memory, which the others use then.
  ASSERT_OK(set(*far.session, 0, {200}, std::vector<float>(200, 1)));
  EXPECT_EQ(far.session->run().code(), Code::OutOfMemory);
  run(*far.session, 70);
  far = open_far(counting_down(), {OpKind::Add});
  for (const int64_t n : {100, 200, 70, 100, 200}) run(*far.session, n);
  EXPECT_EQ(far.session->memory().weights, 1024u);
}

TEST(FarSession, FallsBackNodeByNodeAndSaysSo) {
  Far far = open_far(linear(), {OpKind::MatMul, OpKind::Relu});
  ASSERT_OK(set(*far.session, 0, {1, 3}, {1, 1, 1}));
  ASSERT_OK(far.session->run());
  EXPECT_EQ(floats(*far.session, 0), (std::vector<float>{0, 13}));
  const std::string plan = far.session->plan_text();
  for (const char* word : {"1 fallbacks", "2 transfers", "fallback: far: backend far has no kernel for Add"})
    EXPECT_NE(plan.find(word), std::string::npos) << word << " in\n" << plan;

  SessionOptions strict;
  strict.strict = true;
  far = open_far(linear(), {OpKind::MatMul}, {}, strict);
  ASSERT_OK(set(*far.session, 0, {1, 3}, {1, 1, 1}));
  const Status status = far.session->run();
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_NE(status.message().find("(Add)"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("(Relu)"), std::string::npos) << status.message();
}

TEST(FarSession, EverythingFallsBack) {
  Far far = open_far(linear(), {});
  ASSERT_OK(set(*far.session, 0, {1, 3}, {1, 1, 1}));
  alignas(64) float y[2] = {};
  ASSERT_OK(far.session->bind_output(0, y, sizeof y));
  ASSERT_OK(far.session->run());
  EXPECT_EQ(y[1], 13);
  EXPECT_NE(far.session->plan_text().find("0 transfers"), std::string::npos) << far.session->plan_text();
}

TEST(FarSession, InlinesBodiesBeforeFallingBack) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.extent = 3}});
  build.output(build.emit(op::SiluAttributes{}, {x}));
  ASSERT_OK(build.status());
  ASSERT_OK(compiler::expand_composites(graph, {}));
  Far far = open_far(model_of(std::move(graph)), {OpKind::Sigmoid, OpKind::Mul});
  ASSERT_OK(set(*far.session, 0, {3}, {0, 1, -1}));
  ASSERT_OK(far.session->run());
  EXPECT_NEAR(floats(*far.session, 0)[1], 0.731059f, 1e-5f);
  EXPECT_EQ(far.session->plan()->program().fallbacks, 0u);
  EXPECT_EQ(far.session->plan()->program().steps.size(), 2u);
}

TEST(FarSession, ChainsRunInPlace) {
  Graph graph;
  Builder build(graph);
  ValueId x = build.input("x", DType::F32, {{.extent = 64}});
  for (int i = 0; i < 10; ++i) x = build.neg(x);
  build.output(x);
  Far far = open_far(model_of(std::move(graph)), {OpKind::Neg}, {OpKind::Neg});
  std::vector<float> values(64, 3);
  ASSERT_OK(set(*far.session, 0, {64}, values));
  ASSERT_OK(far.session->run());
  ASSERT_OK(far.session->run());
  EXPECT_EQ(floats(*far.session, 0), values);
  EXPECT_EQ(far.session->memory().peak_planned, 256u) << far.session->plan_text();
}

TEST(FarSession, StatesAreUpdatedInPlaceOrByACopy) {
  // next = state + x is in place only if the old state is not read later.
  for (const bool read_later : {false, true}) {
    std::vector<State> states = {
        {.name = "sum", .info = {DType::F32, {2}}, .kind = StateKind::Counter, .initial = {}}};
    Graph graph;
    Builder build(graph, &states);
    const ValueId x = build.input("x", DType::F32, {{.extent = 2}});
    const ValueId sum = build.state("sum", 0, states[0].info);
    if (!read_later) build.output(build.neg(sum));
    const ValueId next = build.add(sum, x);
    if (read_later) build.output(build.neg(sum));
    graph.state_updates.push_back({sum, next});
    ASSERT_OK(build.status());
    Far far =
        open_far(model_of(std::move(graph), std::move(states)), {OpKind::Add, OpKind::Neg}, {OpKind::Add});
    ASSERT_OK(set(*far.session, 0, {2}, {1, 10}));
    for (const float before : {0.0f, 1.0f, 2.0f}) {
      ASSERT_OK(far.session->run());
      EXPECT_EQ(floats(*far.session, 0), (std::vector<float>{-before, -10 * before}));
    }
    EXPECT_EQ(far.session->plan()->program().updates[0].in_place, !read_later) << far.session->plan_text();
    EXPECT_EQ(far.session->plan()->program().steps.size(), read_later ? 3u : 2u);
  }
}

TEST(FarSession, StatesCanSwap) {
  const float one[] = {1}, two[] = {2};
  std::vector<State> states = {{.name = "a", .info = {DType::F32, {1}}, .initial = Blob::copy_of(one, 4)},
                               {.name = "b", .info = {DType::F32, {1}}, .initial = Blob::copy_of(two, 4)}};
  Graph graph;
  Builder build(graph, &states);
  const ValueId a = build.state("a", 0, states[0].info);
  const ValueId b = build.state("b", 1, states[1].info);
  build.output(build.sub(a, b));
  graph.state_updates = {{a, b}, {b, a}};
  ASSERT_OK(build.status());
  Far far = open_far(model_of(std::move(graph), std::move(states)), {OpKind::Sub}, {OpKind::Sub});
  for (const float difference : {-1.0f, 1.0f, -1.0f}) {
    ASSERT_OK(far.session->run());
    EXPECT_EQ(floats(*far.session, 0), (std::vector<float>{difference})) << far.session->plan_text();
  }
}

}  // namespace
}  // namespace librt
