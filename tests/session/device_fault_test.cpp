// A device that fails: each call of its driver, in turn, reports that the device is lost, or that it has no
// memory; or a wait does not end. The session says so and goes on saying so, sessions on other devices go on,
// and new ones can be made. argv[1]: the backend, whose driver heeds RT_TEST_FAULT (a Vulkan layer of the
// tests, or the emulated CUDA device); argv[2]: "again" if a new session on the same device works in the same
// process. Each fault is met in a process of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/session/session.h"
#include "tests/support/backend_main.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;

using test::backend_name;
bool works_again = false;

constexpr int64_t kColumns = 8;
constexpr int kMostFaults = 24;  ///< of each kind, evenly spread
constexpr const char *kFault = "RT_TEST_FAULT", *kMet = "RT_TEST_FAULT_MET";

/// x f32[1,8]; the state sum f32[8] grows by x w; outputs x w and the old sum, negated. w: 2 on the diagonal.
std::shared_ptr<const ModelGraph> accumulator() {
  auto model = std::make_shared<ModelGraph>();
  model->states = {
      {.name = "sum", .info = {DType::F32, {1, kColumns}}, .kind = StateKind::Counter, .initial = {}}};
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &model->states);
  const ValueId x = build.input("x", DType::F32, {{.extent = 1}, {.extent = kColumns}});
  const ValueId sum = build.state("sum", 0, model->states[0].info);
  Floats weights(kColumns * kColumns);
  for (size_t i = 0; i < kColumns; ++i) weights[i * (kColumns + 1)] = 2;
  const ValueId w =
      build.constant({DType::F32, {kColumns, kColumns}}, Blob::copy_of(weights.data(), weights.size() * 4));
  const ValueId y = build.emit(op::MatMulAttributes{}, {x, w});
  build.output(y);
  build.output(build.neg(sum));
  graph.state_updates.push_back({sum, build.add(sum, y)});
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

/// Two runs of a session, and its state afterwards. Code::Internal: it gave wrong numbers.
Status use(Session& session) {
  const Floats x(kColumns, 3);
  for (int run = 0; run < 2; ++run) {
    RT_TRY(session.set_input(0, {x.data(), {DType::F32, {1, kColumns}}}, x.size() * sizeof(float)));
    RT_TRY(session.run());
    for (size_t i = 0; i < 2; ++i) {
      RT_ASSIGN(const TensorView view, session.output(i));
      const float wanted = i == 0 ? 6.0f : -6.0f * static_cast<float>(run);
      if (Floats(view.as<float>(), view.as<float>() + kColumns) != Floats(kColumns, wanted))
        return internal_error("wrong numbers in output ", i, " of run ", run);
    }
  }
  return {};
}

Status try_session(const std::shared_ptr<const ModelGraph>& model, const std::string& backend) {
  RT_ASSIGN(const auto session, Session::create(model, {.backend = backend}));
  return use(*session);
}

enum Met : int { kSurvived = 0, kFailed = 1, kNotReached = 2 };

/// In a process of its own.
int meet(const std::string& fault) {
  const bool is_lost = !fault.ends_with(":memory");
  const auto failed = [&](const char* what, const Status& status) {
    std::fprintf(stderr, "fault %s: %s: %s\n", fault.c_str(), what,
                 status.ok() ? "no error" : status.message().c_str());
    return kFailed;
  };
  const auto model = accumulator();
  auto bystander = Session::create(model, {.backend = "reference"});
  if (!bystander.ok()) return failed("a session on another device", bystander.status());
  setenv(kFault, fault.c_str(), 1);
  {
    auto session = Session::create(model, {.backend = backend_name});
    Status status = session.ok() ? use(**session) : session.status();
    if (std::getenv(kMet) == nullptr) return status.ok() ? kNotReached : failed("before it", status);
    const Code expected = is_lost ? Code::DeviceLost : Code::OutOfMemory;
    // A fault may be survived: another kernel is chosen where a pipeline cannot be made.
    if (!status.ok() && status.code() != expected) return failed("an unexpected error", status);
    if (session.ok() && status.code() == Code::DeviceLost) {
      status = use(**session);
      if (status.code() != Code::DeviceLost) return failed("the next run of the lost session", status);
      Floats state(kColumns);
      status = (*session)->states().read(0, std::as_writable_bytes(std::span(state)));
      if (status.code() != Code::DeviceLost) return failed("reading the states of the lost session", status);
    }
  }
  unsetenv(kFault);
  if (const Status status = use(**bystander); !status.ok()) return failed("another device", status);
  const Status again = try_session(model, backend_name);
  if (works_again || !is_lost) return again.ok() ? kSurvived : failed("a new session", again);
  return again.code() == Code::DeviceLost ? kSurvived : failed("a new session in this process", again);
}

int in_child(const std::string& fault) {
  const pid_t child = fork();
  if (child == 0) _exit(meet(fault));
  int ended = 0;
  if (child < 0 || waitpid(child, &ended, 0) != child) return kFailed;
  if (WIFEXITED(ended)) return WEXITSTATUS(ended);
  std::fprintf(stderr, "fault %s: signal %d\n", fault.c_str(), WTERMSIG(ended));
  return kFailed;
}

/// The number of calls, by bisection: fault N is met if there are N calls.
int count_calls(const std::string& kind) {
  int met = 0, not_met = 1;
  while (in_child(std::to_string(not_met) + kind) != kNotReached && not_met < 1 << 20) {
    met = not_met;
    not_met *= 2;
  }
  while (not_met - met > 1) {
    const int middle = (met + not_met) / 2;
    (in_child(std::to_string(middle) + kind) == kNotReached ? not_met : met) = middle;
  }
  return met;
}

class DeviceFault : public testing::TestWithParam<const char*> {};

TEST_P(DeviceFault, IsSurvivedAtAnyCall) {
  const std::string kind = std::string(":") + GetParam();
  if (kind == ":hang" && backend_name != "vulkan")
    GTEST_SKIP() << "only waits of the Vulkan backend have a limit of their own";
  const int calls = count_calls(kind);
  ASSERT_GT(calls, kind == ":hang" ? 1 : 10) << "no fault was met: the driver does not heed RT_TEST_FAULT";
  const int step = std::max(1, calls / kMostFaults);
  int tried = 0;
  for (int at = 1; at <= calls; at += step, ++tried)
    EXPECT_EQ(in_child(std::to_string(at) + kind), kSurvived) << "call " << at << kind;
  std::printf("%d calls, %d faults %s\n", calls, tried, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceFault, testing::Values("lost", "once", "memory", "hang"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  librt::test::backend_name = argc > 1 ? argv[1] : "";
  librt::works_again = argc > 2 && std::string(argv[2]) == "again";
  return RUN_ALL_TESTS();
}
