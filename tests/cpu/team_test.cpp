// Teams: every part and piece once, barriers, callers on several threads, oneDNN's regions.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "backends/cpu/device/openmp.h"
#include "backends/cpu/device/parallel.h"
#include "tests/cpu/cpu_support.h"

namespace librt::test {
namespace {

using cpu::Team;
using cpu::ThreadScope;

TEST(Team, RunsEachPartOnceInEachRegion) {
  for (const int threads : {1, 2, 3, 8}) {
    const ThreadScope scope(threads);
    ASSERT_EQ(cpu::max_threads(), threads);
    for (int region = 0; region < 2000; ++region) {
      const int parts = 1 + region % threads;
      std::array<std::atomic<int>, 8> runs{};
      cpu::parallel_region(parts, [&](int part, int count) noexcept {
        if (count != parts || part != cpu::thread_index()) runs[0] += 100;
        ++runs[static_cast<size_t>(part)];
      });
      for (int part = 0; part < 8; ++part)
        ASSERT_EQ(runs[static_cast<size_t>(part)], part < parts ? 1 : 0)
            << threads << " threads, region " << region;
    }
  }
}

TEST(Team, PartsMeetAtBarriers) {
  constexpr int kThreads = 4, kMeetings = 50;
  const ThreadScope scope(kThreads);
  for (int region = 0; region < 50; ++region) {
    std::atomic<int> arrived{0}, wrong{0};
    cpu::parallel_region(kThreads, [&](int, int parts) noexcept {
      for (int meeting = 1; meeting <= kMeetings; ++meeting) {
        ++arrived;
        cpu::current_team()->barrier();
        if (arrived != parts * meeting) ++wrong;
        cpu::current_team()->barrier();
      }
    });
    ASSERT_EQ(arrived, kThreads * kMeetings);
    ASSERT_EQ(wrong, 0);
  }
}

TEST(Team, LoopsCoverEachItemOnceHoweverTheyAreCut) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadScope scope(threads);
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{1000}, int64_t{100'003}})
      for (const int64_t unit : {1, 16})
        for (const int64_t work : {1, 100, 100'000}) {
          std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
          cpu::parallel_for(count, work, unit, [&](int64_t begin, int64_t end) noexcept {
            if (begin % unit != 0) return;
            for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
          });
          for (const std::atomic<int>& visit : visits)
            ASSERT_EQ(visit, 1) << threads << " " << count << " " << unit;
        }
  }
}

TEST(Team, RegionsInRegionsHaveOnePart) {
  const ThreadScope scope(3);
  std::atomic<int> inner{0};
  cpu::parallel_region(3, [&](int, int) noexcept {
    if (cpu::max_threads() != 1) inner += 100;
    cpu::parallel_region(3,
                         [&](int part, int parts) noexcept { inner += part == 0 && parts == 1 ? 1 : 100; });
    // The place in the outer region is back.
    if (!Team::place().inside || Team::place().parts != 3) inner += 100;
  });
  EXPECT_EQ(inner, 3);
  EXPECT_FALSE(Team::place().inside);
}

TEST(Team, ScopesNestAndEnd) {
  {
    const ThreadScope outer(2);
    Team* const team = cpu::current_team();
    {
      const ThreadScope same(2);
      EXPECT_EQ(cpu::current_team(), team);
      const ThreadScope other(3);
      EXPECT_EQ(cpu::max_threads(), 3);
    }
    EXPECT_EQ(cpu::current_team(), team);
  }
  EXPECT_EQ(cpu::current_team(), nullptr);
  EXPECT_EQ(cpu::max_threads(), 1);
}

TEST(Team, CallersOnSeveralThreadsHaveTeamsOfTheirOwn) {
  std::atomic<int> parts{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int run = 0; run < 300; ++run) {
        const ThreadScope scope(2);
        cpu::parallel_region(2, [&](int, int) noexcept {
          cpu::current_team()->barrier();
          ++parts;
        });
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(parts, 4 * 300 * 2);
}

TEST(Team, WorksInAForkedChild) {
  {
    const ThreadScope scope(3);
    cpu::parallel_region(3, [](int, int) noexcept { cpu::current_team()->barrier(); });
  }
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> parts{0};
    const ThreadScope scope(3);
    cpu::parallel_region(3, [&](int, int) noexcept {
      cpu::current_team()->barrier();
      ++parts;
    });
    _exit(parts == 3 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

#if defined(RT_HAS_ONEDNN)
// Without this, oneDNN runs on libgomp's threads, of which the others know nothing.
TEST(Team, RunsOneDnn) {
  op::MatMulAttributes attributes;
  check_node(cpu_device(), make_node(attributes, 2),
             {f32(Shape{64, 96}, -1, 1, 1), f32(Shape{96, 128}, -1, 1, 2)}, 2);
  EXPECT_TRUE(cpu::onednn_uses_teams());
}
#endif

}  // namespace
}  // namespace librt::test
