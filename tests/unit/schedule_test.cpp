// Learning rate schedules against their formulas, and parse errors.
#include "tools/data/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace librt::tools {
namespace {

Schedule schedule(const char* text) {
  std::string error;
  const auto parsed = Schedule::parse(text, error);
  EXPECT_TRUE(parsed.has_value()) << error;
  return parsed.value_or(Schedule());
}

std::string error_of(const char* text) {
  std::string error;
  EXPECT_FALSE(Schedule::parse(text, error).has_value()) << text;
  return error;
}

TEST(Schedule, Constant) {
  EXPECT_EQ(schedule("constant").factor(0), 1);
  EXPECT_EQ(schedule("constant").learning_rate(0.5, 1000000), 0.5);
}

TEST(Schedule, WarmupIsALineToTheFullRate) {
  const Schedule s = schedule("constant,warmup=4");
  for (uint64_t step = 0; step < 4; ++step)
    EXPECT_DOUBLE_EQ(s.factor(step), static_cast<double>(step + 1) / 4);
  EXPECT_EQ(s.factor(4), 1);
}

TEST(Schedule, StepMultipliesEveryN) {
  const Schedule s = schedule("step,every=10,gamma=0.5");
  EXPECT_EQ(s.factor(9), 1);
  EXPECT_DOUBLE_EQ(s.factor(10), 0.5);
  EXPECT_DOUBLE_EQ(s.factor(35), 0.125);
  EXPECT_DOUBLE_EQ(schedule("step,every=10,warmup=5").factor(15), 0.1);
}

TEST(Schedule, LinearEndsWhereItShould) {
  const Schedule s = schedule("linear,steps=100,end=0.2");
  EXPECT_EQ(s.factor(0), 1);
  EXPECT_DOUBLE_EQ(s.factor(50), 0.6);
  EXPECT_DOUBLE_EQ(s.factor(100), 0.2);
  EXPECT_DOUBLE_EQ(s.factor(1000), 0.2);
}

TEST(Schedule, CosineAfterWarmup) {
  const Schedule s = schedule("cosine,warmup=100,steps=1100");
  EXPECT_DOUBLE_EQ(s.factor(0), 0.01);
  EXPECT_DOUBLE_EQ(s.factor(100), 1);
  EXPECT_NEAR(s.factor(600), 0.5, 1e-12);
  EXPECT_NEAR(s.factor(350), (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(s.factor(1100), 0, 1e-12);
  EXPECT_NEAR(s.factor(5000), 0, 1e-12);
}

TEST(Schedule, OneCycleRisesAndFalls) {
  const Schedule s = schedule("one_cycle,steps=100,rise=0.25,start=0.1,end=0");
  EXPECT_DOUBLE_EQ(s.factor(0), 0.1);
  EXPECT_NEAR(s.factor(25), 1, 1e-12);
  EXPECT_NEAR(s.factor(100), 0, 1e-12);
  for (uint64_t step = 0; step < 25; ++step) EXPECT_LT(s.factor(step), s.factor(step + 1));
  for (uint64_t step = 25; step < 100; ++step) EXPECT_GT(s.factor(step), s.factor(step + 1));
  EXPECT_NEAR(schedule("one_cycle,steps=10,rise=1").factor(10), 1e-4, 1e-12);
}

TEST(Schedule, WithoutStepsItIsAsLongAsTheTraining) {
  for (const char* text : {"linear", "cosine,warmup=10", "one_cycle,rise=0.25"}) {
    Schedule s = schedule(text);
    EXPECT_EQ(s.set_length(80), "");
    const Schedule same = schedule((std::string(text) + ",steps=80").c_str());
    for (uint64_t step = 0; step <= 90; ++step) EXPECT_EQ(s.factor(step), same.factor(step)) << text;
  }
  Schedule given = schedule("linear,steps=100"), constant = schedule("constant,warmup=200");
  EXPECT_EQ(given.set_length(50), "");
  EXPECT_DOUBLE_EQ(given.factor(50), 0.5);
  EXPECT_EQ(constant.set_length(50), "");
  Schedule short_run = schedule("cosine,warmup=10");
  EXPECT_NE(short_run.set_length(10).find("shorter than the schedule's 10 steps"), std::string::npos);
}

TEST(Schedule, ErrorsSayWhatIsExpected) {
  EXPECT_NE(error_of("sine").find("constant, step, linear, cosine, one_cycle"), std::string::npos);
  EXPECT_NE(error_of("step").find("needs every=N"), std::string::npos);
  EXPECT_NE(error_of("cosine,steps=0").find("a whole number from 1"), std::string::npos);
  EXPECT_NE(error_of("cosine,steps=2.5").find("found 'steps=2.5'"), std::string::npos);
  EXPECT_NE(error_of("cosine,steps").find("found 'steps'"), std::string::npos);
  EXPECT_NE(error_of("linear,steps=10,end=2").find("from 0 to 1"), std::string::npos);
  EXPECT_NE(error_of("linear,steps=10,gamma=2").find("one of steps, end, warmup"), std::string::npos);
  EXPECT_NE(error_of("cosine,steps=10,warmup=10").find("shorter than the schedule's 10 steps"),
            std::string::npos);
  EXPECT_NE(error_of("constant,").find("found ''"), std::string::npos);
  EXPECT_NE(error_of("linear,steps=nan").find("found 'steps=nan'"), std::string::npos);
}

}  // namespace
}  // namespace librt::tools
