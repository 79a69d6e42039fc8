// plan_memory: buffers that are live at the same time must not overlap; otherwise memory is shared.
#include "runtime/session/memory/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace librt {
namespace {

void expect_valid(const std::vector<Lifetime>& lives, const MemoryPlan& plan, size_t alignment) {
  ASSERT_EQ(plan.offsets.size(), lives.size());
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % alignment, 0u);
    EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.peak);
    for (size_t k = 0; k < i; ++k) {
      const bool in_time = lives[i].first <= lives[k].last && lives[k].first <= lives[i].last;
      const bool in_memory = plan.offsets[i] < plan.offsets[k] + lives[k].bytes &&
                             plan.offsets[k] < plan.offsets[i] + lives[i].bytes;
      EXPECT_FALSE(in_time && in_memory && lives[i].bytes > 0 && lives[k].bytes > 0) << i << " and " << k;
    }
  }
}

TEST(Planner, NothingNeedsNothing) {
  const MemoryPlan plan = plan_memory({});
  EXPECT_EQ(plan.peak, 0u);
  EXPECT_EQ(plan_memory(std::vector<Lifetime>{{0, 3, 0}}).peak, 0u);
}

TEST(Planner, ChainNeedsTwoBuffers) {
  std::vector<Lifetime> lives;
  for (uint32_t i = 0; i < 10; ++i) lives.push_back({i, i + 1, 1000});
  const MemoryPlan plan = plan_memory(lives);
  expect_valid(lives, plan, 64);
  EXPECT_EQ(plan.peak, 2u * 1024);
  EXPECT_EQ(plan.naive, 10u * 1024);
}

TEST(Planner, SumsAreWiderThanAddresses) {
  // Each fits in the addresses of a 32-bit machine; together they would wrap to 1 GiB.
  const uint64_t bytes = uint64_t{5} << 28;
  const std::vector<Lifetime> lives(4, Lifetime{0, 1, bytes});
  const MemoryPlan plan = plan_memory(lives);
  expect_valid(lives, plan, 64);
  EXPECT_EQ(plan.peak, 4 * bytes);
  EXPECT_EQ(plan.naive, 4 * bytes);
}

TEST(Planner, ReusesWhatIsFree) {
  // The last range starts after the short-lived ones have ended.
  const std::vector<Lifetime> lives = {{0, 9, 1024}, {0, 1, 256}, {0, 9, 512},
                                       {0, 1, 128},  {0, 9, 448}, {5, 6, 128}};
  const MemoryPlan plan = plan_memory(lives);
  expect_valid(lives, plan, 64);
  EXPECT_EQ(plan.peak, 1024u + 512 + 448 + 256 + 128);
}

/// `count` ranges of random sizes that begin in the first `steps` steps.
void expect_near_the_lower_bound(size_t count, uint32_t steps, size_t alignment) {
  std::mt19937 random(7);
  std::vector<Lifetime> lives;
  std::vector<size_t> alive(steps + 10);  // bytes, by step
  for (size_t i = 0; i < count; ++i) {
    const auto first = static_cast<uint32_t>(random() % steps);
    lives.push_back({first, first + static_cast<uint32_t>(random() % 10), random() % 5000});
    for (uint32_t step = first; step <= lives.back().last; ++step)
      alive[step] += (lives.back().bytes + alignment - 1) / alignment * alignment;
  }
  const MemoryPlan plan = plan_memory(lives, alignment);
  expect_valid(lives, plan, alignment);
  const size_t bound = *std::max_element(alive.begin(), alive.end());
  EXPECT_GE(plan.peak, bound);
  EXPECT_LE(plan.peak, bound + bound / 4);
}

TEST(Planner, RandomPlansAreValidAndNearTheLowerBound) {
  for (const size_t alignment : {size_t{64}, size_t{256}}) expect_near_the_lower_bound(200, 100, alignment);
}

TEST(Planner, ManyRangesAreNearTheLowerBound) {
  expect_near_the_lower_bound(kManyRanges + 1, kManyRanges / 2, 64);
}

TEST(Planner, ManyRangesThatAreLiveAtOnceFollowEachOther) {
  const std::vector<Lifetime> lives(kManyRanges + 1, {0, 1, 64});
  EXPECT_EQ(plan_memory(lives).peak, lives.size() * 64);
}

}  // namespace
}  // namespace librt
