// What a study concludes from points that are made up: knees, crossovers, the Pareto front, where time goes,
// the verdict's words.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/study/breakdown.h"
#include "tools/rtbench/study/budget.h"
#include "tools/rtbench/study/target.h"
#include "tools/rtbench/study/text.h"
#include "tools/rtbench/study/verdict.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using namespace words;  // NOLINT: functions that make text

// A point whose interval reaches `within` (a share) around the median.
Point point(int64_t batch, double ms, double within = 0.01) {
  Point made;
  made.batch = batch;
  made.timing.median_ms = ms;
  made.timing.interval = {ms * (1 - within), ms * (1 + within)};
  made.timing.runs = 100;
  made.timing.rounds = 4;
  made.timing.precise = within <= kWantedPrecision;
  set_throughput(made);
  return made;
}

Study two_devices() {
  Study study;
  study.devices.resize(2);
  study.devices[0].id = "cpu:0";
  study.devices[1].id = "vulkan:0";
  study.series.resize(2);
  study.series[0].precision = study.series[1].precision = "fp32";
  study.series[1].device = 1;
  return study;
}

// cpu: 1 ms a sample. vulkan: 10 ms and 0.1 ms a sample. They take the same time at 11.1 samples.
double cpu_ms(int64_t batch) {
  return static_cast<double>(batch);
}
double vulkan_ms(int64_t batch) {
  return 10 + 0.1 * static_cast<double>(batch);
}

void add_doubled(Study& study, int64_t largest, double within = 0.01) {
  for (int64_t batch = 1; batch <= largest; batch *= 2) {
    study.series[0].points.push_back(point(batch, cpu_ms(batch), within));
    study.series[1].points.push_back(point(batch, vulkan_ms(batch), within));
  }
}

TEST(Durations, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_duration("30s"), 30);
  EXPECT_EQ(parse_duration("5min"), 300);
  EXPECT_EQ(parse_duration("5m"), 300);
  EXPECT_EQ(parse_duration("1h"), 3600);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  EXPECT_EQ(parse_duration("250ms"), 0.25);
  EXPECT_EQ(parse_duration("90"), 90);
  for (const char* bad : {"", "0", "0s", "-5s", "s", "5 min", "5days", "nan", "inf", "1e999s", "5s "})
    EXPECT_FALSE(parse_duration(bad)) << bad;
  EXPECT_EQ(duration_text(5.25), "5.2 s");
  EXPECT_EQ(duration_text(192), "3 min 12 s");
  EXPECT_EQ(duration_text(7380), "2 h 03 min");
}

TEST(Knees, ThroughputFlattensBelowFivePercent) {
  Series series;
  EXPECT_EQ(flat_from(series), nullptr);
  series.points = {point(1, 10), point(2, 19.2)};  // 4.2 % more samples per second
  ASSERT_NE(flat_from(series), nullptr);
  EXPECT_EQ(flat_from(series)->batch, 1);
  series.points[1] = point(2, 18.8);  // 6.4 %
  EXPECT_EQ(flat_from(series), nullptr);
  series.points.push_back({.batch = 4, .error = "no memory"});
  EXPECT_EQ(flat_from(series), nullptr);
}

// A point with a wide interval may be slow by chance: the next one decides.
TEST(Knees, OneDisturbedPointDoesNotEndASweep) {
  Series series;
  series.points = {point(1, 10), point(2, 25, 0.4)};
  EXPECT_EQ(flat_from(series), nullptr);
  series.points.push_back(point(4, 21));
  EXPECT_EQ(flat_from(series), nullptr) << "batch 4 is nearly twice as fast per sample as batch 1";
  series.points[2] = point(4, 52, 0.4);
  ASSERT_NE(flat_from(series), nullptr);
  EXPECT_EQ(flat_from(series)->batch, 1);
}

TEST(Crossovers, AreMeasuredUntilTheyAreFine) {
  Study study = two_devices();
  add_doubled(study, 32);
  CrossoverState state = find_crossover(study, 0, 1, 4096);
  EXPECT_EQ(state.crossover.kind, Crossover::Kind::Crosses);
  EXPECT_EQ(state.crossover.below, 0u);
  EXPECT_EQ(state.crossover.last_below, 8);
  EXPECT_EQ(state.crossover.first_above, 16);
  EXPECT_FALSE(state.crossover.resolved);
  int measured = 0;
  for (; state.next && measured < 20; ++measured) {
    const int64_t batch = *state.next;
    EXPECT_GT(batch, state.crossover.last_below);
    EXPECT_LT(batch, state.crossover.first_above);
    study.series[0].points.push_back(point(batch, cpu_ms(batch)));
    study.series[1].points.push_back(point(batch, vulkan_ms(batch)));
    for (Series& series : study.series)
      std::sort(series.points.begin(), series.points.end(),
                [](const Point& a, const Point& b) { return a.batch < b.batch; });
    state = find_crossover(study, 0, 1, 4096);
  }
  EXPECT_LE(measured, 6);
  EXPECT_TRUE(state.crossover.resolved);
  EXPECT_EQ(state.crossover.last_below, 10);  // at 11 the intervals overlap
  EXPECT_EQ(state.crossover.first_above, 12);
  EXPECT_NEAR(state.crossover.estimate, 11.11, 0.2);
}

// The order of the two series does not matter.
TEST(Crossovers, NameTheSmallBatchesWinnerFirst) {
  Study study = two_devices();
  add_doubled(study, 32);
  const Crossover crossover = find_crossover(study, 1, 0, 4096).crossover;
  EXPECT_EQ(crossover.below, 0u);
  EXPECT_EQ(crossover.above, 1u);
}

TEST(Crossovers, TheSlowerOneIsFollowedToLargerBatches) {
  Study study = two_devices();
  add_doubled(study, 4);
  for (const int64_t batch : {8, 16, 32}) study.series[1].points.push_back(point(batch, vulkan_ms(batch)));
  CrossoverState state = find_crossover(study, 0, 1, 4096);
  EXPECT_EQ(state.crossover.kind, Crossover::Kind::AlwaysFaster);
  EXPECT_EQ(state.next, 8);
  EXPECT_EQ(find_crossover(study, 0, 1, 4).next, std::nullopt) << "no batch above the largest is proposed";
  study.series[1].points.resize(3);
  state = find_crossover(study, 0, 1, 4096);
  EXPECT_EQ(state.next, std::nullopt) << "neither was measured at more";
  EXPECT_NEAR(state.crossover.least_margin, 10.4 / 4, 1e-9);
}

TEST(Crossovers, OverlappingIntervalsAreTooClose) {
  Study study = two_devices();
  for (const int64_t batch : {1, 2, 4}) {
    study.series[0].points.push_back(point(batch, 10, 0.05));
    study.series[1].points.push_back(point(batch, 10.4, 0.05));
  }
  const CrossoverState state = find_crossover(study, 0, 1, 4096);
  EXPECT_EQ(state.crossover.kind, Crossover::Kind::TooClose);
  EXPECT_FALSE(state.next);
  study.series[1].points.clear();
  EXPECT_EQ(find_crossover(study, 0, 1, 4096).crossover.kind, Crossover::Kind::TooClose);
}

TEST(Pareto, HasNoPointThatAnotherBeats) {
  Study study = two_devices();
  study.series[0].points = {point(1, 1), point(2, 2.2), point(4, 3.9)};  // 1000, 909, 1026 samples/s
  study.series[1].points = {point(1, 5), point(8, 6), {.batch = 16, .error = "no memory"}};  // 200, 1333
  const auto front = pareto_front(study, Mode::Infer);
  ASSERT_EQ(front.size(), 3u);
  EXPECT_EQ(front[0].series, 0u);
  EXPECT_EQ(front[0].point, 0u);
  EXPECT_EQ(front[1].point, 2u);
  EXPECT_EQ(front[2].series, 1u);
  EXPECT_EQ(front[2].point, 1u);
  EXPECT_TRUE(pareto_front(study, Mode::Train).empty());
}

NodeTime node(const char* op, double ms, double flops = 0, double bytes = 0) {
  NodeTime made;
  made.name = made.op = op;
  made.milliseconds = ms;
  made.flops = flops;
  made.bytes = bytes;
  return made;
}

TEST(Breakdown, PartsAddUpToTheRun) {
  const Roof roof = {
      .measured = true, .flops_per_second = 1e9, .bytes_per_second = 1e9, .launch_seconds = 1e-5};
  Profile profile = split_run(8, 10, 11, {node("Conv", 6, 3e6, 1e6), node("Transfer", 1)}, roof);
  EXPECT_DOUBLE_EQ(profile.kernels_ms, 6);
  EXPECT_DOUBLE_EQ(profile.transfers_ms, 1);
  EXPECT_DOUBLE_EQ(profile.launches_ms, 3);
  EXPECT_NEAR(profile.overhead, 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(profile.nodes[0].roof_share.value_or(0), 0.5);
  EXPECT_EQ(profile.nodes[0].bound, "compute");
  EXPECT_FALSE(profile.nodes[1].roof_share);
  // Timed nodes take longer together than the run without timers.
  profile = split_run(8, 10, 30, {node("Conv", 15), node("Transfer", 5)}, {});
  EXPECT_DOUBLE_EQ(profile.kernels_ms, 7.5);
  EXPECT_DOUBLE_EQ(profile.transfers_ms, 2.5);
  EXPECT_DOUBLE_EQ(profile.launches_ms, 0);
  EXPECT_FALSE(profile.nodes[0].roof_share);
  EXPECT_DOUBLE_EQ(split_run(1, 2, 2, {}, {}).launches_ms, 2);
}

TEST(Target, LinesOfRttrain) {
  TimeToTarget target;
  int64_t samples = 0;
  EXPECT_FALSE(read_epoch("rttrain: something", "accuracy", target, samples));
  EXPECT_FALSE(read_epoch("[1]", "accuracy", target, samples));
  EXPECT_TRUE(
      read_epoch(R"({"epoch":1,"step":10,"loss":1.5,"validation_accuracy":0.8,"samples_per_second":50.0,)"
                 R"("seconds":2.0,"data_wait_seconds":0.5,"total_seconds":2.5})",
                 "accuracy", target, samples));
  EXPECT_TRUE(
      read_epoch(R"({"epoch":2,"step":20,"loss":1.5,"validation_accuracy":0.7,"samples_per_second":50.0,)"
                 R"("seconds":2.0,"data_wait_seconds":0.25,"total_seconds":5.0})",
                 "accuracy", target, samples));
  EXPECT_EQ(samples, 100);
  EXPECT_EQ(target.epochs, 2);
  EXPECT_EQ(target.steps, 20);
  EXPECT_EQ(target.best, 0.8);
  EXPECT_EQ(target.seconds, 5.0);
  EXPECT_EQ(target.waiting_seconds, 0.25);
}

std::string said(const Study& study, Sentence::About about) {
  std::string all;
  for (const Sentence& sentence : verdict_of(study))
    if (sentence.about == about) all += sentence.text + (sentence.too_close ? " [close]" : "") + "\n";
  return all;
}

TEST(Verdict, SaysWhoWinsAndByHowMuch) {
  Study study = two_devices();
  add_doubled(study, 32);
  study.series[1].knee = Knee{32, 2424, false, "--largest-batch is 32"};
  study.crossovers = {find_crossover(study, 0, 1, 32).crossover};
  EXPECT_EQ(said(study, Sentence::About::Latency),
            "Shortest inference, at batch 1: cpu:0 in fp32 with 1.000 ms (0.9900 to 1.010); vulkan:0 in fp32 "
            "takes 10.1 "
            "times (9.90 to 10.3) as long.\n");
  EXPECT_EQ(said(study, Sentence::About::Throughput),
            "Most samples inferred: vulkan:0 in fp32 at batch 32 with 2424 samples/s, 2.42 times (2.38 to "
            "2.47) as many as "
            "cpu:0 in fp32 at batch 1.\n");
  EXPECT_EQ(said(study, Sentence::About::Crossover),
            "fp32 inference: cpu:0 is faster up to batch 8, vulkan:0 from batch 16 on; they cross at about "
            "11.18, and "
            "between it is open. [close]\n");
  EXPECT_NE(said(study, Sentence::About::Batch).find("batch 32 is the best measured"), std::string::npos);
}

TEST(Verdict, OverlappingIntervalsAreTooCloseToCall) {
  Study study = two_devices();
  study.series[0].points = {point(1, 10, 0.05)};
  study.series[1].points = {point(1, 10.4, 0.05)};
  EXPECT_NE(said(study, Sentence::About::Latency).find("is too close to call. [close]"), std::string::npos);
  EXPECT_NE(said(study, Sentence::About::Throughput).find("is too close to call. [close]"),
            std::string::npos);
  EXPECT_NE(said(study, Sentence::About::Caution).find("2 of 2 points have intervals wider than 2 %"),
            std::string::npos);
}

TEST(Verdict, PrecisionsAndWrongResults) {
  Study study = two_devices();
  study.series[0].points = {point(1, 10)};
  study.series[1] = {.device = 0, .precision = "int8", .points = {point(1, 5)}};
  study.series[1].difference = Difference{0.02, "reference", 0.3};
  EXPECT_EQ(said(study, Sentence::About::Precision),
            "On cpu:0 at batch 1, inference in int8 is 2.00 times (1.96 to 2.04) as fast as fp32; outputs "
            "differ by 2.0e-02 "
            "of the largest.\n");
  EXPECT_EQ(said(study, Sentence::About::Caution), "");
  study.series[1].difference->relative = 0.5;
  EXPECT_NE(said(study, Sentence::About::Caution).find("Wrong results: outputs of cpu:0 in int8"),
            std::string::npos);
}

TEST(Verdict, TargetsReachedAndNot) {
  Study study = two_devices();
  study.targets = {{.device = 0,
                    .precision = "fp32",
                    .metric = "accuracy",
                    .wanted = 0.985,
                    .reached = true,
                    .seconds = 75,
                    .epochs = 3},
                   {.device = 1,
                    .precision = "fp32",
                    .metric = "accuracy",
                    .wanted = 0.985,
                    .best = 0.9,
                    .reason = "it took longer than 20 s"}};
  EXPECT_EQ(
      said(study, Sentence::About::Target),
      "cpu:0 in fp32 reaches accuracy 0.9850 in 1 min 15 s, after 3 epochs.\n"
      "vulkan:0 in fp32 does not reach accuracy 0.9850: it took longer than 20 s; the best was 0.9000.\n");
}

// Nothing measured, and a device alone.
TEST(Verdict, EmptyStudies) {
  EXPECT_TRUE(verdict_of({}).empty());
  Study study = two_devices();
  EXPECT_TRUE(verdict_of(study).empty());
  study.series[0].points = {point(1, 10)};
  EXPECT_EQ(said(study, Sentence::About::Latency),
            "Shortest inference, at batch 1: cpu:0 in fp32 with 10.00 ms (9.900 to 10.10).\n");
}

TEST(StudyText, NamesANoisyMachineFirst) {
  Study study = two_devices();
  study.machine.warnings = {"noisy machine: other work used 0.50 of 2 CPUs before the measurements"};
  study.omissions = {{"vulkan:0 bf16 infer", "the device has no bf16"}};
  const std::string text = study_text(study);
  EXPECT_TRUE(text.starts_with("noisy machine: other work used 0.50"));
  EXPECT_NE(text.find("vulkan:0 bf16 infer: the device has no bf16"), std::string::npos);
}

TEST(Words, Numbers) {
  EXPECT_EQ(number_text(12345.6), "12346");
  EXPECT_EQ(number_text(1.23456), "1.235");
  EXPECT_EQ(number_text(0.00012345), "0.0001234");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(INFINITY), "-");
  EXPECT_EQ(time_text(0.0172), "17.20 us");
  EXPECT_EQ(time_text(12345), "12.35 s");
  EXPECT_EQ(times_text(3, {3, 3}), "3.00 times");
}

}  // namespace
}  // namespace librt::bench
