// The parts of rttrain's loop that need no model: when to stop, what ranks have in common, equal
// micro-batches, what is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tools/rttrain/facts.h"
#include "tools/rttrain/fixed_batch.h"
#include "tools/rttrain/gradient_sums.h"
#include "tools/rttrain/position.h"
#include "tools/rttrain/progress.h"
#include "tools/rttrain/shares.h"
#include "tools/rttrain/steps.h"
#include "tools/rttrain/stop_rule.h"

namespace rt::train {
namespace {

// --- when to stop

EpochRecord epoch_with(double loss, double accuracy) {
  EpochRecord record;
  record.validation = {{"loss", loss}, {"accuracy", accuracy}};
  return record;
}

// Epochs with these losses and accuracies, up to the one after which the rule stops.
uint64_t stops_after(StopRule& rule, Position& position,
                     const std::vector<std::pair<double, double>>& epochs) {
  for (const auto& [loss, accuracy] : epochs) {
    ++position.epoch;
    rule.judge(epoch_with(loss, accuracy), position);
    if (rule.is_reached() || rule.is_out_of_patience(position)) break;
  }
  return position.epoch;
}

TEST(StopRuleTest, PatienceCountsEpochsSinceTheBest) {
  LoopOptions options;
  options.patience = 2;
  StopRule rule(options, {"loss", "accuracy"});
  Position position;
  EXPECT_EQ(rule.monitor(), "loss");
  EXPECT_EQ(stops_after(rule, position, {{3, 0}, {2, 0}, {2, 0}, {1, 0}, {4, 1}, {5, 1}, {0, 1}}), 6u);
  EXPECT_EQ(position.best_epoch(), 4u);
  EXPECT_EQ(rule.best_text(position), "validation loss 1.000000");
  EXPECT_EQ(rule.reason(position), "no better validation loss in 2 epochs (--patience)");
}

TEST(StopRuleTest, TheTargetAndItsMetric) {
  LoopOptions options;
  options.target = {"accuracy", 0.9};
  StopRule rule(options, {"loss", "accuracy"});
  Position position;
  EXPECT_TRUE(rule.check());
  EXPECT_EQ(stops_after(rule, position, {{3, 0.5}, {1, 0.4}, {2, 0.9}, {0, 1}}), 3u);
  EXPECT_EQ(rule.best_text(position), "validation accuracy 0.900000");
  EXPECT_EQ(rule.reason(position), "the target accuracy=0.9 is reached");
  options.monitor = "f1";
  const rt::Status unknown = StopRule(options, {"loss", "accuracy"}).check();
  EXPECT_EQ(unknown.message(), "--monitor: there is no metric 'f1'; this model's are loss, accuracy");
}

// --- positions that a checkpoint may hold

TEST(PositionTest, ImpossibleOnesAreNamed) {
  constexpr uint64_t kBatches = 5, kMost = uint64_t{1} << 62, kHuge = std::numeric_limits<uint64_t>::max();
  const auto problem = [](const Position& position) { return impossible_in(position, kBatches, 8, kMost); };
  for (const uint64_t epoch : {uint64_t{0}, uint64_t{3}, kMost / kBatches})
    for (uint64_t batch = 0; batch <= kBatches; ++batch)
      EXPECT_EQ(problem({.epoch = epoch,
                         .batch = batch,
                         .step = epoch * kBatches + batch,
                         .seen = 8 * batch,
                         .waiting = epoch}),
                "");
  EXPECT_EQ(problem({.epoch = 1, .batch = 6, .step = 11}),
            "is at batch 6 of epoch 1, but the data has 5 batches in each epoch");
  EXPECT_EQ(problem({.epoch = kMost, .step = kMost}),
            "is at batch 0 of epoch " + std::to_string(kMost) + ", but the data has 5 batches in each epoch");
  EXPECT_NE(problem({.epoch = kHuge, .batch = kHuge, .step = kHuge}), "");
  for (const uint64_t step : {uint64_t{0}, uint64_t{7}, uint64_t{9}, kHuge})
    EXPECT_EQ(problem({.epoch = 1, .batch = 3, .step = step}),
              "is at step " + std::to_string(step) + ", but 1 epochs and 3 batches are 8 steps");
  EXPECT_EQ(problem({.batch = 2, .step = 2, .seen = 17}), "has seen 17 samples in 2 batches of 8");
  EXPECT_EQ(problem({.epoch = 1, .step = 5, .waiting = 2}),
            "waits for a better epoch since 2 epochs, but is in epoch 1");
}

// --- how ranks divide a batch

TEST(Shares, PartsAddUpAndNoneIsEmpty) {
  const std::vector<std::vector<double>> all = {{1, 1}, {3, 1}, {1, 1000}, {0.1, 0.2, 0.7}, {5, 1e-9, 5}};
  for (const auto& weights : all)
    for (size_t samples = 0; samples < 70; ++samples) {
      const Shares shares(weights);
      EXPECT_EQ(shares.first_of(0, samples), 0u);
      size_t sum = 0;
      for (size_t rank = 0; rank < weights.size(); ++rank) {
        const size_t part = shares.part_of(rank, samples);
        if (samples >= weights.size()) {
          EXPECT_GE(part, 1u) << samples << " samples, rank " << rank;
        }
        // What the loader has memory for.
        EXPECT_LE(part, shares.part_of(rank, samples + 1) + 1);
        sum += part;
      }
      EXPECT_EQ(sum, samples);
    }
  EXPECT_EQ(Shares({3, 1}).part_of(0, 100), 75u);  // 1 + 98 * 0.75, rounded
  EXPECT_EQ(Shares(3).part_of(0, 7), 2u);
}

TEST(Shares, OptionIsReadOrRefused) {
  EXPECT_TRUE(parse_share("equal")->is_equal());
  EXPECT_TRUE(parse_share("auto")->is_measured);
  EXPECT_EQ(parse_share("3,1.5")->weights, (std::vector<double>{3, 1.5}));
  for (const char* wrong : {"", "3,", "3;1", "0,1", "-1,2", "nan,1", "inf,1", "automatic"}) {
    const auto option = parse_share(wrong);
    ASSERT_FALSE(option) << wrong;
    EXPECT_NE(option.status().message().find("--share: expected equal, auto, or a number above 0"),
              std::string::npos);
  }
}

// --- what ranks have in common

TEST(FactsTest, NamesWhatDiffersAndWhere) {
  const Facts one = {{"--lr", "0.1"}, {"--seed", "5"}};
  EXPECT_EQ(differences(std::vector<Facts>{one, one, one}), "");
  EXPECT_EQ(differences(std::vector<Facts>{one, {{"--lr", "0.2"}, {"--seed", "5"}}, one}),
            "--lr is 0.1 on ranks 0, 2, 0.2 on rank 1");
  EXPECT_EQ(
      differences(std::vector<Facts>{one, {{"--seed", "6"}}, {{"--lr", "0.1"}, {"--new", "1"}}}),
      "--lr is 0.1 on ranks 0, 2, unknown on rank 1; --seed is 5 on rank 0, 6 on rank 1, unknown on rank "
      "2; --new is unknown on ranks 0, 1, 1 on rank 2");
}

TEST(FactsTest, EqualNumbersAreEqualTexts) {
  EXPECT_EQ(plain_number("1e-2"), plain_number("0.010"));
  EXPECT_EQ(plain_number("0.01"), number_text(0.01f));
  EXPECT_NE(plain_number("9007199254740993"), plain_number("9007199254740992"));  // 2^53 + 1, and 2^53
  EXPECT_NE(plain_number("18446744073709551615"), plain_number("18446744073709551614"));
  EXPECT_EQ(plain_number("crop=2"), "crop=2");
  EXPECT_EQ(plain_number("1,2"), "1,2");
}

TEST(FactsTest, TheLastValueOfANameCounts) {
  Facts facts = {{"--batch", "not given"}};
  set_fact(facts, "--batch", "32");
  set_fact(facts, "--lr", "1");
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].value, "32");
  EXPECT_EQ(facts[1].name, "--lr");
}

// --- gradients in order

TEST(GradientSumsTest, AreStatesOfTheirParameters) {
  const auto state = [](const char* name, rt_state_kind kind) {
    rt::StateSpec spec;
    spec.name = name;
    spec.kind = kind;
    return spec;
  };
  EXPECT_EQ(gradient_states({state("w", RT_PARAMETER), state("w.gradient", RT_OPTIMIZER),
                             state("w.m", RT_OPTIMIZER), state("b.gradient", RT_PARAMETER),
                             state("b.gradient.gradient", RT_OPTIMIZER), state("c.gradient", RT_OPTIMIZER)}),
            (std::vector<std::string>{"w.gradient", "b.gradient.gradient"}));
}

// --- steps, progress

rt::TensorSpec input_of(std::vector<int64_t> extents) {
  rt::TensorSpec spec;
  for (const int64_t extent : extents) spec.dims.push_back({.extent = extent});
  return spec;
}

TEST(FixedBatchTest, IsWhatAllInputsFix) {
  EXPECT_EQ(fixed_batch({input_of({4, 3}), input_of({4})}), 4u);
  EXPECT_EQ(fixed_batch({input_of({4, 3}), input_of({-1})}), 0u);
  EXPECT_EQ(fixed_batch({input_of({4, 3}), input_of({3})}), 0u);
  EXPECT_EQ(fixed_batch({input_of({4, 3}), input_of({})}), 0u);
  EXPECT_EQ(fixed_batch({}), 0u);
}

TEST(FixedBatchTest, DecidesAboutTheSteps) {
  const auto fitted = [](BatchChoice choice, size_t batch, size_t micro_batch) {
    LoopOptions options;
    options.batch = batch;
    options.micro_batch = micro_batch;
    choice.is_given = batch != LoopOptions().batch;
    const rt::Status status = fit_batch(choice, options);
    return status ? std::to_string(options.batch) + "/" + std::to_string(options.micro_batch)
                  : std::string(status.message());
  };
  const size_t other = LoopOptions().batch;
  EXPECT_EQ(fitted({}, 7, 3), "7/3");
  EXPECT_EQ(fitted({.fixed = 4}, other, 0), "4/0");
  EXPECT_EQ(fitted({.fixed = 4, .ranks = 2}, other, 0), "8/0");
  EXPECT_EQ(fitted({.fixed = 4}, 4, 0), "4/0");
  EXPECT_EQ(fitted({.fixed = 4, .accumulates = true}, 12, 0), "12/4");
  EXPECT_EQ(fitted({.fixed = 4, .ranks = 2, .accumulates = true}, 16, 4), "16/4");
  EXPECT_EQ(
      fitted({.fixed = 1}, 64, 0),
      "--batch 64: the model takes 1 sample at once, as its inputs fix their first axis; --batch 1 fits, or "
      "larger batches after rtconvert --train --accumulate; rtconvert --open-batch makes the batch dynamic");
  for (const auto& [batch, micro] : {std::pair<size_t, size_t>{6, 0}, {12, 3}, {10, 4}, {2, 0}})
    EXPECT_NE(fitted({.fixed = 4, .accumulates = true}, batch, micro).find("--batch 4 or a multiple"),
              std::string::npos)
        << batch;
}

TEST(FixedBatchTest, LastBatchesAreFull) {
  const BatchChoice choice{.fixed = 4, .ranks = 2};
  LoopOptions options;
  options.batch = 8;
  EXPECT_TRUE(check_last_batch(choice, options, 16, 0));
  EXPECT_TRUE(check_last_batch(choice, options, 16, 24));
  EXPECT_TRUE(check_last_batch({}, options, 17, 3));
  EXPECT_NE(check_last_batch(choice, options, 17, 0).message().find("1 sample, and the model takes 4"),
            std::string::npos);
  EXPECT_NE(check_last_batch(choice, options, 16, 12).message().find("--validate"), std::string::npos);
  options.drop_last = options.ordered_sums = true;
  EXPECT_TRUE(check_last_batch(choice, options, 17, 12));
}

TEST(StepsTest, EqualParts) {
  EXPECT_EQ(equal_part(64, 16), 16u);
  EXPECT_EQ(equal_part(58, 16), 2u);
  EXPECT_EQ(equal_part(5, 16), 5u);
  EXPECT_EQ(equal_part(37, 16), 1u);
  EXPECT_EQ(equal_part(0, 16), 1u);
}

TEST(ProgressTest, DurationsAndWidths) {
  EXPECT_EQ(duration_text(0.04), "0.0 s");
  EXPECT_EQ(duration_text(59.94), "59.9 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(7380), "2 h 03 min");
  EXPECT_EQ(fitted("0123456789", 8), "0123456");
  EXPECT_EQ(fitted("0123456789", 11), "0123456789");
  EXPECT_EQ(fitted("0123456789", 0), "0123456789");
}

TEST(ProgressTest, TheTableHasTheLastEpochsAndAStar) {
  std::vector<EpochRecord> epochs;
  for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
    epochs.push_back(epoch_with(2, 0.5));
    epochs.back().epoch = epoch;
  }
  const std::string table = epoch_table(epochs, "accuracy", 4, 3);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_EQ(table.find("\n     2 "), std::string::npos) << table;
  const size_t best = table.find("\n     4 ");
  ASSERT_NE(best, std::string::npos) << table;
  EXPECT_EQ(table.find('*'), table.find('\n', best + 1) - 1) << table;
  EXPECT_EQ(epoch_table({}, "", 0, 3), "");
}

}  // namespace
}  // namespace rt::train
