// What an application puts in the place of librt's own, through rt.h: messages, progress, memory, threads.
// argv: backend, a model of convolutions and matmuls with one input and one output.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "rt/rt.hpp"
#include "tests/support/backend_main.h"

namespace librt {
namespace {

using test::backend_name;
std::string model_path;

/// The message of a status, which is freed; "" for success.
std::string take(rt_status* status) {
  const std::string message = rt_status_message(status);
  rt_status_free(status);
  return message;
}

class Hooks : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(take(rt_model_load(model_path.c_str(), &model_)), "");
    options_.backend = backend_name.c_str();
    options_.threads = 2;
  }
  void TearDown() override { rt_model_free(model_); }

  /// The session, or null with the status in code_ and message_.
  rt_session* create() {
    rt_session* session = nullptr;
    rt_status* status = rt_session_create(model_, &options_, &session);
    code_ = rt_status_code(status);
    message_ = take(status);
    return session;
  }
  static constexpr int64_t kBatch = 3;
  static rt_status* set_input(rt_session* session, std::vector<float>& data) {
    rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
    if (rt_status* status = rt_session_input_spec(session, 0, &spec)) return status;
    rt_tensor tensor = RT_TENSOR_INIT;
    tensor.dtype = spec.dtype;
    tensor.rank = spec.rank;
    size_t elements = 1;
    for (int i = 0; i < spec.rank; ++i) {
      tensor.dims[i] = spec.dims[i] < 0 ? kBatch : spec.dims[i];
      elements *= static_cast<size_t>(tensor.dims[i]);
    }
    data.resize(elements);
    for (size_t i = 0; i < elements; ++i) data[i] = static_cast<float>(i % 17) / 17;
    tensor.data = data.data();
    tensor.bytes = elements * sizeof(float);
    return rt_session_set_input(session, 0, &tensor);
  }
  /// The output of a run; empty, with the status in code_ and message_, if it failed.
  std::vector<float> run(rt_session* session) {
    std::vector<float> data;
    rt_tensor out = RT_TENSOR_INIT;
    rt_status* status = set_input(session, data);
    if (status == nullptr) status = rt_session_run(session);
    if (status == nullptr) status = rt_session_output(session, 0, &out);
    code_ = rt_status_code(status);
    message_ = take(status);
    if (code_ != RT_OK) return {};
    const auto* values = static_cast<const float*>(out.data);
    return {values, values + out.bytes / sizeof(float)};
  }
  std::vector<float> expected() {
    rt_session_options plain = RT_SESSION_OPTIONS_INIT;
    plain.backend = backend_name.c_str();
    plain.threads = 2;
    rt_session* session = nullptr;
    EXPECT_EQ(take(rt_session_create(model_, &plain, &session)), "");
    const std::vector<float> values = run(session);
    EXPECT_EQ(message_, "");
    rt_session_free(session);
    return values;
  }
  void expect_refused(const char* word) {
    rt_session* session = create();
    EXPECT_EQ(session, nullptr);
    EXPECT_EQ(code_, RT_INVALID_ARGUMENT) << message_;
    EXPECT_NE(message_.find(word), std::string::npos) << message_;
    rt_session_free(session);
  }

  rt_model* model_ = nullptr;
  rt_session_options options_ = RT_SESSION_OPTIONS_INIT;
  rt_code code_ = RT_OK;
  std::string message_;
};

struct Messages {
  std::vector<std::pair<rt_log_level, std::string>> all;
  static void add(void* user, rt_log_level level, const char* text) {
    static_cast<Messages*>(user)->all.emplace_back(level, text);
  }
  bool has(rt_log_level level, const std::string& word) const {
    return std::any_of(all.begin(), all.end(), [&](const auto& message) {
      return message.first == level && message.second.find(word) != std::string::npos;
    });
  }
};

TEST_F(Hooks, LogSaysWhichDeviceAndWhichPlans) {
  Messages messages;
  options_.log = Messages::add;
  options_.log_user = &messages;
  options_.log_level = RT_LOG_DEBUG;
  rt_session* session = create();
  ASSERT_NE(session, nullptr) << message_;
  run(session);
  ASSERT_EQ(message_, "");
  EXPECT_TRUE(messages.has(RT_LOG_INFO, backend_name));
  EXPECT_TRUE(messages.has(RT_LOG_DEBUG, "steps"));
  for (const auto& [level, text] : messages.all) EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  const size_t before = messages.all.size();
  run(session);
  EXPECT_EQ(messages.all.size(), before) << messages.all.back().second;
  rt_session_free(session);

  messages.all.clear();
  options_.log_level = RT_LOG_WARNING;
  session = create();
  ASSERT_NE(session, nullptr) << message_;
  run(session);
  rt_session_free(session);
  for (const auto& [level, text] : messages.all) EXPECT_EQ(level, RT_LOG_WARNING) << text;
  options_.log_level = static_cast<rt_log_level>(3);
  expect_refused("log_level");
}

/// A folder for the cache that cannot be made: said once, and the session works.
TEST_F(Hooks, LogWarnsOfACacheThatCannotBeUsed) {
  const auto file = std::filesystem::temp_directory_path() / ("librt-hooks-" + std::to_string(getpid()));
  std::ofstream(file) << "not a folder";
  const std::string folder = file.string() + "/cache";
  Messages messages;
  options_.log = Messages::add;
  options_.log_user = &messages;
  options_.tuning = 1;
  options_.cache_folder = folder.c_str();
  const std::vector<float> wanted = expected();
  rt_session* session = create();
  ASSERT_NE(session, nullptr) << message_;
  const std::vector<float> found = run(session);
  EXPECT_EQ(found.size(), wanted.size()) << message_;
  const char* plan = nullptr;
  ASSERT_EQ(take(rt_session_plan_text(session, &plan)), "");
  const bool noted = std::strstr(plan, "cache: ") != nullptr;
  const auto warnings = std::count_if(messages.all.begin(), messages.all.end(), [](const auto& message) {
    return message.first == RT_LOG_WARNING && message.second.rfind("cache: ", 0) == 0;
  });
  EXPECT_EQ(warnings, noted ? 1 : 0) << plan;
  if (backend_name == "vulkan") {  // elsewhere no node of this model has a choice
    EXPECT_TRUE(noted) << plan;
  }
  rt_session_free(session);
  std::filesystem::remove(file);
}

struct Stages {
  std::vector<std::pair<rt_stage, double>> all;
  size_t stop_at = ~size_t{0};  ///< call
  static int note(void* user, rt_stage stage, double fraction) {
    auto& stages = *static_cast<Stages*>(user);
    stages.all.emplace_back(stage, fraction);
    return stages.all.size() - 1 == stages.stop_at ? 1 : 0;
  }
};

TEST_F(Hooks, ProgressComesInOrderAndStopsAnywhere) {
  const std::vector<float> wanted = expected();
  Stages stages;
  options_.progress = Stages::note;
  options_.progress_user = &stages;
  rt_session* session = create();
  ASSERT_NE(session, nullptr) << message_;
  const size_t creating = stages.all.size();
  EXPECT_EQ(run(session), wanted);
  const size_t calls = stages.all.size();
  ASSERT_GT(calls, 5u);
  for (size_t i = 1; i < calls; ++i) {
    const auto [before, done] = stages.all[i - 1];
    const auto [stage, fraction] = stages.all[i];
    EXPECT_GE(stage, before) << "call " << i;
    if (stage == before) {
      EXPECT_GE(fraction, done) << "call " << i;
    }
    EXPECT_LE(fraction, 1) << "call " << i;
  }
  EXPECT_EQ(stages.all.front().first, RT_STAGE_OPEN);
  EXPECT_EQ(stages.all.back(), std::make_pair(RT_STAGE_READY, 1.0));
  EXPECT_EQ(run(session), wanted);
  EXPECT_EQ(stages.all.size(), calls);  // nothing is built
  rt_session_free(session);

  // Stopped at each call: nothing is created, or the session can go on.
  for (size_t stop = 0; stop < calls; ++stop) {
    stages = {};
    stages.stop_at = stop;
    session = create();
    if (stop < creating) {
      EXPECT_EQ(session, nullptr) << stop;
      EXPECT_EQ(code_, RT_CANCELLED) << message_;
      EXPECT_EQ(stages.all.size(), stop + 1);  // and no call comes after it
      continue;
    }
    ASSERT_NE(session, nullptr) << message_;
    EXPECT_TRUE(run(session).empty()) << stop;
    EXPECT_EQ(code_, RT_CANCELLED) << message_;
    EXPECT_EQ(run(session), wanted) << message_;
    rt_session_free(session);
  }
}

/// Counts what it hands out, and refuses from the `limit`-th call on.
struct Memory {
  std::mutex mutex;
  std::map<void*, std::pair<size_t, size_t>> blocks;
  size_t calls = 0, limit = ~size_t{0}, wrong = 0, shift = 0;
  rt_allocator hook{sizeof(rt_allocator), this, allocate, release};

  static void* allocate(void* user, size_t bytes, size_t alignment) {
    auto& self = *static_cast<Memory*>(user);
    const std::lock_guard lock(self.mutex);
    if (++self.calls > self.limit) return nullptr;
    if (bytes == 0 || alignment < 64 || (alignment & (alignment - 1)) != 0) ++self.wrong;
    void* block = nullptr;
    if (posix_memalign(&block, alignment, bytes + 64) != 0) return nullptr;
    block = static_cast<char*>(block) + self.shift;
    self.blocks[block] = {bytes, alignment};
    return block;
  }
  static void release(void* user, void* block, size_t bytes, size_t alignment) {
    auto& self = *static_cast<Memory*>(user);
    const std::lock_guard lock(self.mutex);
    const auto found = self.blocks.find(block);
    if (found == self.blocks.end() || found->second != std::make_pair(bytes, alignment)) {
      ++self.wrong;
      return;
    }
    self.blocks.erase(found);
    std::free(static_cast<char*>(block) - self.shift);
  }
};

TEST_F(Hooks, MemoryComesFromTheAllocatorAndGoesBack) {
  const std::vector<float> wanted = expected();
  Memory memory;
  options_.allocator = &memory.hook;
  rt_session* session = create();
  ASSERT_NE(session, nullptr) << message_;
  EXPECT_EQ(run(session), wanted) << message_;
  EXPECT_FALSE(memory.blocks.empty());
  rt_tensor out = RT_TENSOR_INIT;
  ASSERT_EQ(take(rt_session_output(session, 0, &out)), "");
  const auto inside = [&](const auto& block) {
    const auto* begin = static_cast<const char*>(block.first);
    return out.data >= begin && out.data < begin + block.second.first;
  };
  // Where the host sees the memory of a Vulkan device, results are there.
  if (backend_name != "vulkan") {
    EXPECT_TRUE(std::any_of(memory.blocks.begin(), memory.blocks.end(), inside));
  }
  if (backend_name == "cpu") {
    rt_memory_stats stats = RT_MEMORY_STATS_INIT;
    ASSERT_EQ(take(rt_session_memory(session, &stats)), "");
    size_t held = 0;
    for (const auto& [block, size] : memory.blocks) held += size.first;
    EXPECT_GE(held, stats.arena + stats.packed + stats.states + stats.staging);
  }
  const size_t calls = memory.calls;
  EXPECT_EQ(run(session), wanted);
  EXPECT_EQ(memory.calls, calls);  // a run allocates nothing
  rt_session_free(session);
  EXPECT_TRUE(memory.blocks.empty());
  EXPECT_EQ(memory.wrong, 0u);

  // Each call fails once.
  for (size_t limit = 0; limit < calls; ++limit) {
    memory.calls = 0;
    memory.limit = limit;
    session = create();
    if (session != nullptr) {
      EXPECT_TRUE(run(session).empty()) << limit;
    }
    EXPECT_EQ(code_, RT_OUT_OF_MEMORY) << message_;
    memory.limit = ~size_t{0};
    if (session != nullptr) {
      EXPECT_EQ(run(session), wanted) << message_;
    }
    rt_session_free(session);
    EXPECT_TRUE(memory.blocks.empty()) << limit;
  }
  EXPECT_EQ(memory.wrong, 0u);
}

TEST_F(Hooks, MemoryComesFromAnArenaThatIsLargeEnough) {
  const std::vector<float> wanted = expected();
  // The least that is enough, by trying: too little is an error, and the next session has the arena for
  // itself.
  std::vector<char> arena(16 << 20);
  options_.arena = arena.data();
  size_t enough = 0;
  for (options_.arena_bytes = 256; enough == 0 && options_.arena_bytes <= arena.size();
       options_.arena_bytes += options_.arena_bytes / 4) {
    std::fill(arena.begin(), arena.end(), '\x7f');
    rt_session* session = create();
    if (session != nullptr && run(session) == wanted) {
      enough = options_.arena_bytes;
      EXPECT_EQ(run(session), wanted) << message_;
      if (backend_name != "vulkan") {
        rt_tensor out = RT_TENSOR_INIT;
        ASSERT_EQ(take(rt_session_output(session, 0, &out)), "");
        EXPECT_TRUE(out.data >= arena.data() && out.data < arena.data() + enough);
      }
    } else {
      EXPECT_EQ(code_, RT_OUT_OF_MEMORY) << message_;
    }
    rt_session_free(session);
    EXPECT_TRUE(std::all_of(arena.begin() + static_cast<std::ptrdiff_t>(options_.arena_bytes), arena.end(),
                            [](char byte) { return byte == '\x7f'; }));
  }
  EXPECT_GT(enough, 256u);
  if (backend_name == "cpu") {
    // What stats() lists, and little more.
    options_.arena_bytes = enough;
    rt_session* session = create();
    ASSERT_NE(session, nullptr) << message_;
    run(session);
    rt_memory_stats stats = RT_MEMORY_STATS_INIT;
    ASSERT_EQ(take(rt_session_memory(session, &stats)), "");
    EXPECT_LE(enough, 2 * (stats.arena + stats.packed + stats.states + stats.staging) + 65536);
    rt_session_free(session);
  }
}

TEST_F(Hooks, AnArenaThatIsTinyOrBesideAnAllocatorIsRefused) {
  std::vector<char> arena(1 << 20);
  options_.arena = arena.data();
  options_.arena_bytes = 255;
  expect_refused("arena: expected at least 256 bytes");
  options_.arena_bytes = 0;
  expect_refused("arena: expected at least 256 bytes");
  Memory memory;
  options_.arena_bytes = arena.size();
  options_.allocator = &memory.hook;
  expect_refused("arena");
  options_.allocator = nullptr;
  rt_session* first = create();
  ASSERT_NE(first, nullptr) << message_;
  options_.share_states_with = first;  // that one's memory is used
  options_.backend = nullptr;
  expect_refused("are the other session's");
  rt_session_free(first);
}

TEST_F(Hooks, AnAllocatorThatIsIncompleteOrWrongIsRefused) {
  Memory memory;
  memory.hook.free = nullptr;
  options_.allocator = &memory.hook;
  expect_refused("both be set");
  memory.hook.free = Memory::release;
  memory.hook.struct_size = 0;
  expect_refused("struct_size");
  memory.hook.struct_size = sizeof(rt_allocator);
  memory.shift = 8;
  rt_session* session = create();
  if (session != nullptr) {
    EXPECT_TRUE(run(session).empty());
  }
  EXPECT_EQ(code_, RT_INVALID_ARGUMENT);
  EXPECT_NE(message_.find("rt_allocator"), std::string::npos) << message_;
  rt_session_free(session);
  EXPECT_TRUE(memory.blocks.empty());
}

/// A thread for each task.
struct Pool {
  std::atomic<size_t> regions{0};
  std::atomic<int> skip{0}, again{0};  ///< the next regions of which a task is left out, or called twice
  rt_parallel hook{sizeof(rt_parallel), this, 3, run};

  static void run(void* user, int32_t count, void (*task)(void*, int32_t), void* task_user) {
    auto& self = *static_cast<Pool*>(user);
    ++self.regions;
    const int32_t first = self.skip > 0 ? 1 : 0;
    if (first > 0) --self.skip;
    std::vector<std::thread> threads;
    for (int32_t i = first; i < count; ++i) threads.emplace_back(task, task_user, i);
    for (std::thread& thread : threads) thread.join();
    if (self.again > 0) {
      --self.again;
      task(task_user, count - 1);
      task(task_user, count);
      task(task_user, -1);
    }
  }
};

class OnTheCpu : public Hooks {
  void SetUp() override {
    Hooks::SetUp();
    if (backend_name != "cpu") GTEST_SKIP() << "threads are the CPU's";
  }
};

TEST_F(OnTheCpu, ThreadsOfTheApplicationGiveTheSameResults) {
  options_.threads = 3;
  rt_session* own = create();
  ASSERT_NE(own, nullptr) << message_;
  const std::vector<float> wanted = run(own);
  rt_session_free(own);
  Pool pool;
  options_.threads = 0;
  options_.parallel = &pool.hook;
  rt_session* session = create();
  ASSERT_NE(session, nullptr) << message_;
  rt_device_info info = RT_DEVICE_INFO_INIT;
  ASSERT_EQ(take(rt_session_device(session, &info)), "");
  EXPECT_EQ(info.threads, 3);
  for (int round = 0; round < 3; ++round) {
    pool.regions = 0;
    EXPECT_EQ(run(session), wanted) << message_;
    EXPECT_GT(pool.regions, 0u);
  }
  rt_session_free(session);
}

TEST_F(OnTheCpu, APoolThatLeavesTasksOutOrRepeatsThemIsAnError) {
  Pool pool;
  options_.threads = 0;
  options_.parallel = &pool.hook;
  rt_session* session = create();
  ASSERT_NE(session, nullptr) << message_;
  const std::vector<float> wanted = run(session);
  ASSERT_EQ(message_, "");
  for (std::atomic<int>* fault : {&pool.skip, &pool.again}) {
    *fault = 1;
    EXPECT_TRUE(run(session).empty());
    EXPECT_EQ(code_, RT_INVALID_ARGUMENT);
    EXPECT_NE(message_.find("rt_parallel"), std::string::npos) << message_;
    EXPECT_EQ(*fault, 0);
    EXPECT_EQ(run(session), wanted) << message_;
  }
  rt_session_free(session);
}

TEST_F(OnTheCpu, PoolsAreChecked) {
  Pool pool;
  options_.parallel = &pool.hook;
  expect_refused("leave them");  // threads is set, too
  options_.threads = 0;
  options_.priority = 3;
  expect_refused("leave them");
  options_.priority = 0;
  for (const int threads : {0, -1, 4097}) {
    pool.hook.threads = threads;
    expect_refused("rt_parallel");
  }
  pool.hook.threads = 2;
  pool.hook.run = nullptr;
  expect_refused("rt_parallel");
}

/// The CPUs and the nice value of this process's threads of librt.
void placements(std::vector<std::pair<cpu_set_t, int>>& found) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (name != "librt-cpu") continue;
    const int id = std::stoi(entry.path().filename());
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(id, sizeof set, &set), 0);
    found.emplace_back(set, getpriority(PRIO_PROCESS, static_cast<id_t>(id)));
  }
}

TEST_F(OnTheCpu, ThreadsRunWhereAndAsUrgentlyAsRequested) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int32_t last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) last = cpu;
  options_.threads = 3;
  const std::vector<float> wanted = [&] {
    rt_session* session = create();
    const std::vector<float> values = run(session);
    rt_session_free(session);
    return values;
  }();
  const int nice = getpriority(PRIO_PROCESS, 0);
  options_.cpus = &last;
  options_.cpu_count = 1;
  options_.priority = std::min(nice + 2, 19);
  rt_session* session = create();
  ASSERT_NE(session, nullptr) << message_;
  EXPECT_EQ(run(session), wanted) << message_;
  std::vector<std::pair<cpu_set_t, int>> found;
  placements(found);
  const auto placed = std::count_if(found.begin(), found.end(), [&](const auto& thread) {
    return CPU_COUNT(&thread.first) == 1 && CPU_ISSET(static_cast<size_t>(last), &thread.first) &&
           thread.second == options_.priority;
  });
  EXPECT_EQ(placed, 2);
  // The caller's own thread stays where it was.
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), nice);
  rt_session_free(session);
}

TEST_F(OnTheCpu, PlacementsAreChecked) {
  int32_t cpu = -1;
  options_.cpus = &cpu;
  options_.cpu_count = 1;
  expect_refused("cpus");
  cpu = 1024;
  expect_refused("cpus");
  options_.cpus = nullptr;
  expect_refused("cpus");
  options_.cpu_count = 0;
  options_.priority = 20;
  expect_refused("priority");
  options_.priority = 0;
  cpu = 1023;
  options_.cpus = &cpu;
  options_.cpu_count = 1;
  rt_session* session = create();
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(code_, RT_DEVICE) << message_;
  EXPECT_NE(message_.find("cpus"), std::string::npos) << message_;
  rt_session_free(session);
}

TEST_F(Hooks, ASharedDeviceKeepsItsOwn) {
  Memory memory, other;
  options_.allocator = &memory.hook;
  rt_session* first = create();
  ASSERT_NE(first, nullptr) << message_;
  options_.share_device_with = first;
  options_.allocator = &other.hook;
  expect_refused("share_device_with");
  options_.allocator = nullptr;
  rt_session* second = create();
  ASSERT_NE(second, nullptr) << message_;
  const size_t calls = memory.calls;
  run(second);
  EXPECT_EQ(message_, "");
  EXPECT_GT(memory.calls, calls);
  rt_session_free(second);
  rt_session_free(first);
  EXPECT_TRUE(memory.blocks.empty());
  EXPECT_EQ(memory.wrong, 0u);
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv,
                                        [&](librt::Device&) { librt::model_path = argc > 2 ? argv[2] : ""; });
}
