// What an application may have set for its process or thread, on which results do not depend: the floating
// point environment, a small stack, and whether memory may be made executable.
#include <fenv.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/session/session.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;

constexpr int64_t kRows = 24, kInner = 130, kColumns = 80;

std::shared_ptr<const ModelGraph> model_of(Graph graph) {
  auto model = std::make_shared<ModelGraph>();
  graph.name = "infer";
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

/// log(softmax(x w)) and x x of x f32[24,130]: sums, functions, infinities and subnormal numbers.
std::shared_ptr<const ModelGraph> dense() {
  Graph graph;
  Builder build(graph);
  Floats weight(kInner * kColumns);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 31) / 97 - 0.15f;
  const ValueId x = build.input("x", DType::F32, {{.extent = kRows}, {.extent = kInner}});
  const ValueId w = build.constant({DType::F32, {kInner, kColumns}},
                                   Blob::copy_of(weight.data(), weight.size() * sizeof(float)));
  const ValueId y =
      build.emit(op::SoftmaxAttributes{.axis = -1}, {build.emit(op::MatMulAttributes{}, {x, w})});
  build.output(build.emit(op::LogAttributes{}, {y}));
  build.output(build.emit(op::MulAttributes{}, {x, x}));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model_of(std::move(graph));
}

/// Numbers from large to ones whose squares are subnormal.
Floats input() {
  Floats x(kRows * kInner);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (i % 3 == 0 ? 300.0f : i % 3 == 1 ? 0.37f : 1e-21f) * static_cast<float>(i % 5 + 1);
  return x;
}

/// The outputs, one after the other; empty on an error, which is printed.
Floats run(const std::shared_ptr<const ModelGraph>& model, const Floats& x, const SessionOptions& options) {
  const auto compute = [&](Floats& all) -> Status {
    RT_ASSIGN(const auto session, Session::create(model, options));
    RT_TRY(session->set_input(0, {x.data(), {DType::F32, {kRows, kInner}}}, x.size() * sizeof(float)));
    for (int i = 0; i < 2; ++i) RT_TRY(session->run());
    for (size_t i = 0; i < 2; ++i) {
      RT_ASSIGN(const auto view, session->output(i));
      all.insert(all.end(), view.as<float>(), view.as<float>() + view.info.elements());
    }
    return {};
  };
  Floats all;
  const Status status = compute(all);
  if (status.ok()) return all;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return {};
}

bool same(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Upward rounding; on x86-64 also subnormal numbers that count as 0, and invalid operations, divisions by 0
/// and overflows that end the process.
void disturb() {
  fesetround(FE_UPWARD);
#if defined(__SSE2__)
  __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() | 0x8040u) & ~0x680u);
#endif
}

void run_disturbed(SessionOptions options) {
  options.backend = "cpu";
  const auto model = dense();
  const Floats x = input(), wanted = run(model, x, options);
  ASSERT_FALSE(wanted.empty());
  EXPECT_EQ(std::count(wanted.begin(), wanted.end(), 0.0f), 0) << "the smallest squares are subnormal";
  Floats found;
  bool kept = false;
  // A thread of its own, so that it makes the session's threads, which begin with its environment.
  std::thread thread([&] {
    disturb();
    fenv_t before, after;
    fegetenv(&before);
    found = run(model, x, options);
    fegetenv(&after);
    kept = std::memcmp(&before, &after, sizeof before) == 0;
  });
  thread.join();
  EXPECT_TRUE(same(found, wanted));
  EXPECT_TRUE(kept) << "the application's environment was changed";
}

TEST(FloatEnvironment, OfTheCallingThreadDoesNotMatter) {
  run_disturbed({.threads = 1});
}

TEST(FloatEnvironment, IsNotInheritedByTheThreadsOfASession) {
  run_disturbed({.threads = 2});
  run_disturbed({.threads = 3});
}

TEST(FloatEnvironment, OfTheApplicationsThreadsDoesNotMatter) {
  const rt_parallel pool{sizeof(rt_parallel), nullptr, 2,
                         [](void*, int32_t count, void (*task)(void*, int32_t), void* user) {
                           std::vector<std::thread> threads;
                           for (int32_t i = 0; i < count; ++i) threads.emplace_back(task, user, i);
                           for (std::thread& thread : threads) thread.join();
                         }};
  run_disturbed({.parallel = pool});
}

TEST(Stack, OfASmallThreadIsEnough) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t kBytes = 1 << 20;
#else
  constexpr size_t kBytes = 128 << 10;
#endif
  struct Work {
    std::shared_ptr<const ModelGraph> model = dense();
    Floats x = input(), wanted = run(model, x, {.backend = "cpu", .threads = 2}), found;
  } work;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kBytes), 0);
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    auto& of = *static_cast<Work*>(argument);
    of.found = run(of.model, of.x, {.backend = "cpu", .threads = 2});
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_FALSE(work.wanted.empty());
  EXPECT_TRUE(same(work.found, work.wanted));
}

/// From now on mprotect() refuses to make memory executable, as systemd's MemoryDenyWriteExecute has it.
bool deny_code_generation() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kCannot = 77;

/// Exit code 0: the results are those of the reference backend.
int run_without_code_generation() {
  const auto model = dense();
  const Floats x = input(), wanted = run(model, x, {.backend = "reference"});
  if (!deny_code_generation()) return kCannot;
  const Floats found = run(model, x, {.backend = "cpu", .threads = 1});
  if (found.size() != wanted.size() || wanted.empty()) return 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < -80) continue;  // of a probability that is subnormal in f32
    if (!(std::abs(found[i] - wanted[i]) <= 1e-5f * std::max(1.0f, std::abs(wanted[i])))) return 2;
  }
  return 0;
}

TEST(CodeGeneration, ThatIsNotAllowedIsNotNeeded) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  static int code = 0;
  const auto ended = [](int status) {
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return code == 0 || code == kCannot;
  };
  EXPECT_EXIT(std::exit(run_without_code_generation()), ended, "");
  if (code == kCannot) GTEST_SKIP() << "this process may not filter its system calls (seccomp)";
}

}  // namespace
}  // namespace librt
