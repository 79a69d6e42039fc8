// What is said of a program that failed.
#include "tools/rtbench/child.h"

#include <gtest/gtest.h>

#include <optional>

#include "tools/cli/exit_code.h"

namespace librt::bench {
namespace {

TEST(LastError, IsTheProgramsOwnLastLine) {
  EXPECT_EQ(last_error("rttrain", "rttrain: reading\nwarning\nrttrain: no memory\n"), "no memory");
}

TEST(LastError, IsElseTheFirstLineInWords) {
  EXPECT_EQ(last_error("rttrain", "--------\n\nmpirun has detected an attempt to run as root.\nmore\n"),
            "rttrain failed: mpirun has detected an attempt to run as root.");
}

TEST(LastError, MayBeMissing) {
  EXPECT_EQ(last_error("rttrain", ""), "rttrain failed without a message");
  EXPECT_EQ(last_error("rttrain", "----\n"), "rttrain failed without a message");
}

int follow(Child& child, const ChildTime& time, const std::function<bool()>& has_result = {}) {
  const StopRequest stop;
  return child.follow(
      time, stop, [](const std::string&) {}, has_result);
}

TEST(Child, ThatEndsInTimeIsLeftAlone) {
  Child child;
  ASSERT_EQ(child.start({"sh", "-c", "exit 3"}), "");
  EXPECT_EQ(follow(child, {}), 3);
  EXPECT_FALSE(child.was_ended());
}

TEST(Child, ThatIgnoresTheRequestToEndIsKilled) {
  Child child;
  const Budget watch(std::nullopt);
  ASSERT_EQ(child.start({"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}), "");
  EXPECT_EQ(follow(child, {.seconds = 0.2, .without_result = 0.2, .grace = 0.2}), tools::kBadMachine);
  EXPECT_TRUE(child.was_ended());
  EXPECT_LT(watch.spent(), 60) << "it would go on for ever";
}

TEST(Child, WithoutAResultGetsLonger) {
  Child child;
  ASSERT_EQ(child.start({"sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.1; done"}), "");
  const Budget watch(std::nullopt);
  EXPECT_EQ(follow(child, {.seconds = 0, .without_result = 0.8, .grace = 1000}, [] { return false; }), 7);
  EXPECT_GE(watch.spent(), 0.8);
}

TEST(Child, IsAskedAsSoonAsItHasAResult) {
  Child child;
  ASSERT_EQ(child.start({"sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.1; done"}), "");
  int asked = 0;
  EXPECT_EQ(follow(child, {.seconds = 0, .without_result = 1e9, .grace = 1000}, [&] { return ++asked > 3; }),
            7);
  EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace librt::bench
