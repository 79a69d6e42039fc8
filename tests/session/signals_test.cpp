// Signal handlers of the application run on the stacks of its threads, whatever a primitive of oneDNN does
// with the stack pointer: elsewhere their frames would overwrite the heap. Compiled twice, the second time as
// a program with an OpenMP runtime of its own, on which oneDNN then runs.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/session/session.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using Clock = std::chrono::steady_clock;

uintptr_t main_stack_begin = 0, main_stack_end = 0;
pthread_t main_thread;
// Lock-free, and without initialization: for a signal handler. A thread's own lie just above its stack.
thread_local volatile char own_storage;
std::atomic<int> handled{0}, handled_elsewhere{0};

void on_signal(int) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  constexpr uintptr_t kStack = 8 << 20;
  const bool is_main = pthread_equal(pthread_self(), main_thread) != 0;
  const bool on_stack = is_main ? here >= main_stack_begin && here < main_stack_end
                                : reinterpret_cast<uintptr_t>(&own_storage) - here < kStack;
  handled.fetch_add(1, std::memory_order_relaxed);
  if (!on_stack) handled_elsewhere.fetch_add(1, std::memory_order_relaxed);
}

/// Has on_signal() called every 0.1 ms, on whichever thread the OS chooses.
class Alarms {
 public:
  Alarms() {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    set(100);
  }
  ~Alarms() {
    set(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  static void set(suseconds_t microseconds) {
    const itimerval every{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  struct sigaction before_ = {};
};

constexpr int64_t kRows = 96, kInner = 1000, kColumns = 80;

/// relu(a b), a: f32[96,1000], b: f32[1000,80].
std::shared_ptr<const ModelGraph> matmul() {
  auto model = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  Builder build(graph);
  const ValueId a = build.input("a", DType::F32, {{.extent = kRows}, {.extent = kInner}});
  const ValueId b = build.input("b", DType::F32, {{.extent = kInner}, {.extent = kColumns}});
  build.output(build.emit(op::ReluAttributes{}, {build.emit(op::MatMulAttributes{}, {a, b})}));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

void run_under_signals(SessionOptions options) {
  options.backend = "cpu";
  auto session = Session::create(matmul(), options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const std::vector<float> a(kRows * kInner, 0.5f), b(kInner * kColumns, 0.25f);
  ASSERT_TRUE(
      (*session)->set_input(0, {a.data(), {DType::F32, {kRows, kInner}}}, a.size() * sizeof(float)).ok());
  ASSERT_TRUE(
      (*session)->set_input(1, {b.data(), {DType::F32, {kInner, kColumns}}}, b.size() * sizeof(float)).ok());
  handled = handled_elsewhere = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(400);
  const Alarms alarms;
  while (Clock::now() < end || handled < 20) {
    const Status status = (*session)->run();
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(handled_elsewhere, 0) << "of " << handled << " signals";
  }
  const auto y = (*session)->output(0);
  ASSERT_TRUE(y.ok());
  for (int64_t i = 0; i < kRows * kColumns; ++i) ASSERT_EQ(y->as<float>()[i], 125.0f);
}

TEST(Signals, AreHandledOnTheStackOfTheThreadThatRuns) {
  run_under_signals({.threads = 1});
}

TEST(Signals, AreHandledOnTheStackOfAThreadOfSeveral) {
  run_under_signals({.threads = 2});
}

/// The calling thread and one more.
class Pool {
 public:
  Pool() : thread_([this] { serve(); }) {}
  ~Pool() {
    call(nullptr, nullptr);
    thread_.join();
  }
  rt_parallel hook() { return {sizeof(rt_parallel), this, 2, run}; }
  int regions() const { return regions_; }

 private:
  using Task = void (*)(void*, int32_t);
  static void run(void* self, int32_t count, Task task, void* user) {
    auto& pool = *static_cast<Pool*>(self);
    if (count > 1) pool.call(task, user);
    task(user, 0);
    if (count > 1) pool.busy_.wait(true);
  }
  void call(Task task, void* user) {
    ++regions_;
    task_ = task;
    user_ = user;
    busy_ = true;
    busy_.notify_all();
  }
  void serve() {
    for (;;) {
      busy_.wait(false);
      if (task_ == nullptr) return;
      task_(user_, 1);
      busy_ = false;
      busy_.notify_all();
    }
  }
  Task task_ = nullptr;
  void* user_ = nullptr;
  int regions_ = 0;
  std::atomic<bool> busy_{false};
  std::thread thread_;
};

TEST(Signals, AreHandledOnTheStacksOfTheApplicationsThreads) {
  Pool pool;
  run_under_signals({.parallel = pool.hook()});
#ifndef _OPENMP
  EXPECT_GT(pool.regions(), 0);
#endif
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  using namespace librt;
  testing::InitGoogleTest(&argc, argv);
#ifdef _OPENMP
  std::atomic<int> parts{0};
#pragma omp parallel
  ++parts;
  if (parts == 0) return 1;
#endif
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 1;
  pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  main_thread = pthread_self();
  main_stack_begin = reinterpret_cast<uintptr_t>(begin);
  main_stack_end = main_stack_begin + size;
  return RUN_ALL_TESTS();
}
