// Asynchronous runs: the order of results, ownership and lifetime of memory, rejected calls. argv[1]: the
// backend; then --validation or nothing.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/session/session.h"
#include "tests/support/backend_main.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;

using test::backend_name, test::validation;
bool asynchronous = false;  ///< the backend's device
Replays replays = Replays::Nothing;

#define ASSERT_OK(expression)                                       \
  do {                                                              \
    const Status asserted_status = (expression);                    \
    ASSERT_TRUE(asserted_status.ok()) << asserted_status.message(); \
  } while (0)

bool says(const Status& status, std::string_view words) {
  return !status.ok() && status.message().find(words) != std::string::npos;
}

/// Entries "infer" and "again", both: x f32[rows,4]; the state sum f32[4] grows by the sum of x's rows;
/// outputs 2 x, the negated old sum, and 3.
std::shared_ptr<const ModelGraph> accumulator() {
  auto model = std::make_shared<ModelGraph>();
  model->states = {{.name = "sum", .info = {DType::F32, {4}}, .kind = StateKind::Counter, .initial = {}}};
  for (const char* name : {"infer", "again"}) {
    Graph graph;
    graph.name = name;
    Builder build(graph, &model->states);
    const int32_t rows = graph.symbol("rows");
    const ValueId x = build.input("x", DType::F32, {{.symbol = rows}, {.extent = 4}});
    const ValueId sum = build.state("sum", 0, model->states[0].info);
    const ValueId total = build.emit(op::ReduceSumAttributes{.axes = {0}, .keep_dims = false}, {x});
    const ValueId next = build.add(sum, total);
    build.output(build.add(x, x));
    build.output(build.neg(sum));
    build.output(build.scalar(3, DType::F32));
    graph.state_updates.push_back({sum, next});
    EXPECT_TRUE(build.status().ok()) << build.status().message();
    model->entries.push_back({name, std::move(graph)});
  }
  return model;
}

std::unique_ptr<Session> open(SessionOptions options = {}, Session* share = nullptr,
                              std::shared_ptr<const ModelGraph> model = accumulator()) {
  options.backend = backend_name;
  options.validation = validation;
  auto session = Session::create(std::move(model), options, share);
  if (session.ok()) return std::move(session).value();
  ADD_FAILURE() << session.status().message();
  return nullptr;
}

/// `rows` rows of 4 equal values.
Status set(Session& session, int64_t rows, float value, bool bind = false, Floats* memory = nullptr) {
  Floats own;
  Floats& values = memory != nullptr ? *memory : own;
  values.assign(static_cast<size_t>(rows) * 4, value);
  const ConstTensorView view{values.data(), {DType::F32, {rows, 4}}};
  return bind ? session.bind_input(0, view, values.size() * 4)
              : session.set_input(0, view, values.size() * 4);
}

Floats output(Session& session, size_t index) {
  const auto view = session.output(index);
  if (!view.ok()) {
    ADD_FAILURE() << view.status().message();
    return {};
  }
  return {view->as<float>(), view->as<float>() + view->info.elements()};
}

Floats sum(Session& session) {
  Floats values(4);
  EXPECT_TRUE(session.states().read(0, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

void expect_outputs(Session& session, size_t rows, float value, float before) {
  EXPECT_EQ(output(session, 0), Floats(rows * 4, 2 * value));
  EXPECT_EQ(output(session, 1), Floats(4, -before));
  EXPECT_EQ(output(session, 2), Floats(1, 3));
}

TEST(Submit, ResultsComeInOrder) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  float before = 0;
  ASSERT_OK(set(*session, 2, 1));
  ASSERT_OK(session->submit());
  for (int i = 1; i < 20; ++i) {
    const auto step = static_cast<float>(i);
    ASSERT_OK(set(*session, 2, step + 1));
    ASSERT_OK(session->submit());
    ASSERT_OK(session->wait());
    expect_outputs(*session, 2, step, before);
    before += 2 * step;
  }
  ASSERT_OK(session->wait());
  expect_outputs(*session, 2, 20, before);
  EXPECT_EQ(sum(*session), Floats(4, before + 40));
  ASSERT_OK(session->run());
  expect_outputs(*session, 2, 20, before + 40);
}

TEST(Submit, InputsAreTheCallersAgainAtOnce) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  Floats memory;
  ASSERT_OK(set(*session, 1 << 16, 1, true, &memory));  // 1 MB
  ASSERT_OK(session->submit());
  memory.assign(memory.size(), 5);
  ASSERT_OK(session->submit());
  memory.assign(memory.size(), 7);
  ASSERT_OK(session->wait());
  expect_outputs(*session, 1 << 16, 1, 0);
  ASSERT_OK(session->wait());
  expect_outputs(*session, 1 << 16, 5, 1 << 16);
}

TEST(Submit, OutputsGoWhereTheyWereBoundAtTheTime) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  alignas(64) float first[12] = {}, second[12] = {};
  ASSERT_OK(set(*session, 3, 1));
  ASSERT_OK(session->bind_output(0, first, sizeof first));
  ASSERT_OK(session->submit());
  ASSERT_OK(session->bind_output(0, second, sizeof second));
  ASSERT_OK(set(*session, 3, 2));
  ASSERT_OK(session->submit());
  ASSERT_OK(session->bind_output(0, nullptr, 0));
  ASSERT_OK(session->wait());
  EXPECT_EQ(Floats(first, first + 12), Floats(12, 2));
  EXPECT_EQ(Floats(second, second + 12), Floats(12, 0));
  EXPECT_EQ(session->output(0)->data, first);
  ASSERT_OK(session->wait());
  EXPECT_EQ(Floats(second, second + 12), Floats(12, 4));
  ASSERT_OK(set(*session, 4, 2));
  ASSERT_OK(session->bind_output(0, first, sizeof first));
  EXPECT_TRUE(says(session->submit(), "the bound memory has"));
}

TEST(Submit, ShapesMayChangeBetween) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  float before = 0;
  const int64_t rows[] = {1, 1000, 3, 50000, 3, 1};
  ASSERT_OK(set(*session, rows[0], 1));
  ASSERT_OK(session->submit());
  for (size_t i = 1; i < std::size(rows); ++i) {
    ASSERT_OK(set(*session, rows[i], 1));
    ASSERT_OK(session->submit());
    ASSERT_OK(session->wait());
    expect_outputs(*session, static_cast<size_t>(rows[i - 1]), 1, before);
    before += static_cast<float>(rows[i - 1]);
  }
  ASSERT_OK(session->prepare_for(std::vector<TensorInfo>{{DType::F32, {70000, 4}}}));
  ASSERT_OK(session->wait());
  expect_outputs(*session, 1, 1, before);
}

TEST(Submit, StatesReadMeanwhileIncludeAllRuns) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  SessionOptions options;
  options.entry = "again";
  auto other = open(options, session.get(), session->shared_model());
  ASSERT_NE(other, nullptr);
  ASSERT_OK(set(*session, 1, 1));
  ASSERT_OK(set(*other, 1, 10));
  ASSERT_OK(session->submit());
  ASSERT_OK(session->submit());
  EXPECT_EQ(sum(*session), Floats(4, 2));
  ASSERT_OK(other->run());
  expect_outputs(*other, 1, 10, 2);
  const Floats hundred(4, 100);
  ASSERT_OK(session->states().write(0, std::as_bytes(std::span(hundred))));
  ASSERT_OK(session->wait());
  ASSERT_OK(session->wait());
  expect_outputs(*session, 1, 1, 1);
  ASSERT_OK(session->run());
  expect_outputs(*session, 1, 1, 100);
}

TEST(Submit, RefusesWhatHasNoOrder) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(says(session->submit(), "not set: 'x'"));
  EXPECT_TRUE(says(session->wait(), "no submitted run"));
  ASSERT_OK(set(*session, 1, 1));
  ASSERT_OK(session->submit());
  EXPECT_TRUE(says(session->output(0).status(), "not available before a run"));
  EXPECT_TRUE(says(session->run(), "1 submitted run is in flight"));
  ASSERT_OK(session->submit());
  EXPECT_TRUE(says(session->submit(), "2 runs are in flight"));
  EXPECT_TRUE(says(session->run(), "2 submitted runs are in flight"));
  ASSERT_OK(session->wait());
  ASSERT_OK(session->wait());
  EXPECT_TRUE(says(session->wait(), "no submitted run"));
  expect_outputs(*session, 1, 1, 1);
}

TEST(Submit, SessionsMayGoMeanwhile) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set(*session, 1000, 1));
  ASSERT_OK(session->submit());
  ASSERT_OK(session->submit());
  session.reset();
}

/// Exchange memory shows that an asynchronous device is used asynchronously, and it is counted.
TEST(Submit, TakesMemoryOfItsOwnWhereRunsAreUnderWay) {
  constexpr size_t kBytes = 100 * 4 * sizeof(float);
  SessionOptions options;
  auto session = open(options);
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set(*session, 100, 1));
  ASSERT_OK(session->run());
  const MemoryStats alone = session->memory();
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(session->submit());
    ASSERT_OK(session->submit());
    ASSERT_OK(session->wait());
    ASSERT_OK(session->wait());
  }
  const MemoryStats beside = session->memory();
  EXPECT_GE(beside.staging, alone.staging + (asynchronous ? 4 * kBytes : kBytes));
  ASSERT_OK(session->submit());
  EXPECT_EQ(session->memory().staging, beside.staging);
  if (!asynchronous) return;

  options.memory_limit = alone.states + alone.weights + alone.packed + alone.arena + 3 * kBytes;
  auto tight = open(options);
  ASSERT_NE(tight, nullptr);
  ASSERT_OK(set(*tight, 100, 1));
  ASSERT_OK(tight->submit());
  const Status refused = tight->submit();
  EXPECT_EQ(refused.code(), Code::OutOfMemory);
  EXPECT_TRUE(says(refused, "a second run in flight")) << refused.message();
  ASSERT_OK(tight->wait());
  expect_outputs(*tight, 100, 1, 0);
}

TEST(Submit, PartitionedGraphsRunImmediately) {
  auto model = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("rows")}, {.extent = 4}});
  build.output(build.emit(op::NonZeroAttributes{}, {build.neg(x)}));
  ASSERT_OK(build.status());
  model->entries.push_back({"infer", std::move(graph)});
  auto session = open({}, nullptr, model);
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set(*session, 2, 1));
  ASSERT_OK(session->submit());
  ASSERT_OK(set(*session, 3, 0));
  ASSERT_OK(session->submit());
  ASSERT_OK(session->wait());
  EXPECT_EQ(session->output(0)->info.shape, (Shape{2, 8}));
  EXPECT_EQ(session->output(0)->as<int64_t>()[15], 3);
  ASSERT_OK(session->wait());
  EXPECT_EQ(session->output(0)->info.shape, (Shape{2, 0}));
}

TEST(Submit, TimesEveryNodeWhereThatIsAskedFor) {
  SessionOptions options;
  options.profile = true;
  auto session = open(options);
  ASSERT_NE(session, nullptr);
  ASSERT_OK(set(*session, 2, 1));
  ASSERT_OK(session->submit());
  ASSERT_OK(session->submit());
  EXPECT_EQ(session->plan()->profiled_runs(), 2u);
  ASSERT_OK(session->wait());
  expect_outputs(*session, 2, 1, 0);
  ASSERT_OK(session->wait());
  expect_outputs(*session, 2, 1, 2);
}

TEST(Submit, WithoutReplayOutputsAreTheSame) {
  const SessionOptions options{.backend = backend_name, .validation = validation, .no_replay = true};
  auto created = Session::create(accumulator(), options);
  if (replays == Replays::Nothing) {
    ASSERT_FALSE(created.ok());
    EXPECT_EQ(created.status().code(), Code::Unsupported);
    EXPECT_TRUE(says(created.status(), "no_replay: expected a device that replays recorded work"))
        << created.status().message();
    return;
  }
  ASSERT_OK(created.status());
  Session& session = **created;
  float sum = 0;
  for (int run = 0; run < 4; ++run) {  // in turn at two shapes, whose plans are kept
    const int64_t rows = 2 + run % 2;
    ASSERT_OK(set(session, rows, 1));
    ASSERT_OK(session.run());
    expect_outputs(session, static_cast<size_t>(rows), 1, sum);
    sum += static_cast<float>(rows);
  }
  ASSERT_OK(set(session, 2, 1));
  ASSERT_OK(session.submit());
  ASSERT_OK(set(session, 2, 5));
  ASSERT_OK(session.submit());
  ASSERT_OK(session.wait());
  expect_outputs(session, 2, 1, sum);
  ASSERT_OK(session.wait());
  expect_outputs(session, 2, 5, sum + 2);
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv, [](librt::Device& device) {
    librt::asynchronous = device.info().asynchronous;
    librt::replays = device.info().replays;
  });
}
