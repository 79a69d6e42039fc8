// How an experiment's budget is divided, and kept.
#include "tools/rtbench/experiments/time_plan.h"

#include <gtest/gtest.h>

#include "tools/cli/process.h"
#include "tools/rtbench/experiments/jpeg_folder.h"

namespace librt::bench {
namespace {

TEST(TimePlan, AChildWithoutAResultMayUseTheBudgetUntilOneHasHadOne) {
  const ChildTime first = child_time(2, 30, false);
  EXPECT_DOUBLE_EQ(first.seconds, 2);
  EXPECT_DOUBLE_EQ(first.without_result, 30);
  const ChildTime later = child_time(2, 30, true);
  EXPECT_DOUBLE_EQ(later.without_result, 2);
}

TEST(TimePlan, NoChildIsGivenMoreThanIsLeft) {
  for (const bool has_results : {false, true})
    for (const double left : {0.0, 0.5, 3.0, 100.0}) {
      const ChildTime time = child_time(10, left, has_results);
      EXPECT_LE(time.seconds, left);
      EXPECT_LE(time.without_result, left);
      EXPECT_GE(time.without_result, time.seconds);
    }
}

// Whatever children do, the last one is over when 1.2 times the budget and a second have passed: each one
// begins only while time is left, and ends within its time and its grace.
TEST(TimePlan, ChildrenThatNeverEndKeepTheBudget) {
  for (const double budget : {1.0, 5.0, 35.0, 300.0})
    for (const size_t parts : {size_t{1}, size_t{4}, size_t{12}}) {
      double spent = 0;
      for (size_t i = 0; i < parts && spent < budget; ++i) {
        const double left = budget - spent;
        const ChildTime time = child_time(left / static_cast<double>(parts - i), left, i > 0);
        spent += time.without_result + time.grace;
      }
      EXPECT_LE(spent, (1 + kOverrun) * budget + 2 * kOverrunSeconds) << budget << " s, " << parts;
    }
}

TEST(TimePlan, WorkThatDoesNotFitIsNotBegun) {
  EXPECT_TRUE(fits(1, 2));
  EXPECT_FALSE(fits(3, 2));
  EXPECT_FALSE(fits(0, 0));
}

TEST(TimePlan, PreparationsLeaveTimeForOthers) {
  EXPECT_TRUE(may_prepare(0.1, 0.1, 5, 20));
  EXPECT_FALSE(may_prepare(8, 8, 5, 20)) << "16 s of preparations in a part of 5 s";
  EXPECT_FALSE(may_prepare(2, 0, 5, 1)) << "2 s do not fit into 1 s";
  EXPECT_TRUE(may_prepare(0.1, 0.2, 0.01, 20)) << "a short part is not the reason to measure nothing";
}

TEST(JpegFolder, EndsEarlyWithWhatItHas) {
  const tools::TemporaryFolder folder("jpeg-folder-test");
  ASSERT_FALSE(folder.path().empty());
  const auto written =
      write_jpeg_folder(folder.path(), 100, 3, 16, 12, 1, [](int64_t count) { return count < 7; });
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, 7);
}

}  // namespace
}  // namespace librt::bench
