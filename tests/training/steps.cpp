// Features of a training step other than its optimizer, in sessions of the backend argv[1]: skipped steps,
// loss scaling, accumulation, averages, groups.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/element.h"
#include "tests/support/backend_main.h"
#include "tests/training/step_session.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/quantize/quantize_aware.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using compiler::TrainOptions;
using test::StepSession;
using tools::Array;
using Numbers = std::vector<float>;

using test::backend_name;

Array array(const char* name, std::vector<int64_t> dims, const Numbers& values) {
  Array made{.name = name, .type = DType::F32, .dims = std::move(dims), .bytes = {}};
  made.bytes.resize(values.size() * sizeof(float));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

Numbers numbers(const std::optional<Array>& made) {
  if (!made) return {};
  Numbers values(made->bytes.size() / sizeof(float));
  std::memcpy(values.data(), made->bytes.data(), made->bytes.size());
  return values;
}

int32_t integer(const std::optional<Array>& made) {
  int32_t value = -1;
  if (made) std::memcpy(&value, made->bytes.data(), sizeof value);
  return value;
}

ValueId weight(compiler::Builder& builder, const char* name, Shape shape, float first) {
  Numbers values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first * std::cos(1 + 1.3f * static_cast<float>(i));
  const ValueId made = builder.constant({.dtype = DType::F32, .shape = shape},
                                        Blob::copy_of(values.data(), values.size() * sizeof(float)));
  builder.graph().values[made].name = name;
  return made;
}

std::vector<std::byte> trained_model(Graph graph, const Status& built, const TrainOptions& options) {
  EXPECT_TRUE(built.ok()) << built.message();
  ModelGraph model;
  model.producer = "steps";
  graph.name = "infer";
  if (options.quantize_aware)
    compiler::insert_fake_quantization(
        graph, model.states, compiler::choose_fake_quantized(graph, [](const std::string&) { return false; }),
        {});
  model.entries.push_back({.name = "infer", .graph = std::move(graph)});
  Status status = compiler::add_train_entry(model, options, nullptr);
  if (status.ok()) status = compiler::optimize(model, {}, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  auto bytes = compiler::serialize_model(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? std::move(bytes).value() : std::vector<std::byte>();
}

/// tanh(x w1) w2 with a mean squared error, [batch,3] to [batch,2].
std::vector<std::byte> make_model(const TrainOptions& options) {
  Graph graph;
  compiler::Builder builder(graph);
  const ValueId x = builder.input("x", DType::F32, {{.symbol = graph.symbol("batch")}, {.extent = 3}});
  const ValueId hidden = builder.emit(op::MatMulAttributes{}, {x, weight(builder, "w1", {3, 4}, 0.5f)});
  const ValueId active = builder.emit(op::TanhAttributes{}, {hidden});
  const ValueId y = builder.emit(op::MatMulAttributes{}, {active, weight(builder, "w2", {4, 2}, 0.7f)});
  graph.values[y].name = "y";
  builder.output(y);
  return trained_model(graph, builder.status(), options);
}

TrainOptions adam() {
  TrainOptions options;
  options.loss.loss = compiler::Loss::MeanSquaredError;
  options.optimizer.optimizer.optimizer = compiler::Optimizer::Adam;
  return options;
}

const Numbers kX = {0.1f, 0.4f, -0.3f, 0.8f, -0.5f, 0.2f, 0.6f, 0.1f, 0.9f, -0.7f, 0.3f, 0.5f};
const Numbers kTarget = {1, 0, 0, 1, 0.5f, 0.5f, -1, 0.2f};

std::vector<Array> batch(float factor = 1) {
  Numbers x = kX;
  for (float& value : x) value *= factor;
  return {array("x", {4, 3}, x), array("target", {4, 2}, kTarget)};
}
std::vector<Array> with_rate(std::vector<Array> inputs, float rate = 0.01f) {
  inputs.push_back(array("learning_rate", {}, {rate}));
  return inputs;
}
/// One half of the batch.
std::vector<Array> half(size_t which) {
  const auto part = [&](const Numbers& all) {
    const auto count = static_cast<std::ptrdiff_t>(all.size() / 2),
               at = static_cast<std::ptrdiff_t>(which) * count;
    return Numbers(all.begin() + at, all.begin() + at + count);
  };
  return {array("x", {2, 3}, part(kX)), array("target", {2, 2}, part(kTarget))};
}

void expect_near(const Numbers& got, const Numbers& want, float tolerance = 1e-6f) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_FALSE(want.empty());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

TEST(TrainingSteps, AnOverflowIsSkippedAndHalvesTheScale) {
  TrainOptions options = adam();
  options.optimizer.gradients.loss_scale = 65536.0f;
  options.optimizer.gradients.loss_scale_interval = 3;
  options.optimizer.average_decay = 0.9f;
  StepSession scaled(make_model(options), backend_name, "train_step");
  TrainOptions without = adam();
  without.optimizer.average_decay = 0.9f;
  StepSession plain(make_model(without), backend_name, "train_step");
  const auto check_equal = [&] {
    for (const char* state : {"w1", "w2", "w1.m", "w2.v", "w1.ema"})
      expect_near(numbers(scaled.state(state)), numbers(plain.state(state)));
    EXPECT_EQ(integer(scaled.state("optimizer.step")), integer(plain.state("optimizer.step")));
  };
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(scaled.run(with_rate(batch()))) << scaled.error();
    ASSERT_TRUE(plain.run(with_rate(batch()))) << plain.error();
  }
  check_equal();
  EXPECT_EQ(integer(scaled.state("loss_scale.good_steps")), 2);
  const Numbers before = numbers(scaled.state("w1"));

  // Targets whose gradients overflow after loss scaling.
  std::vector<Array> overflow = batch();
  overflow[1] = array("target", {4, 2}, Numbers(8, 1e36f));
  ASSERT_TRUE(scaled.run(with_rate(overflow))) << scaled.error();
  EXPECT_EQ(numbers(scaled.state("w1")), before);
  EXPECT_EQ(numbers(scaled.state("loss_scale")), Numbers{32768});
  EXPECT_EQ(integer(scaled.state("loss_scale.good_steps")), 0);
  check_equal();

  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(scaled.run(with_rate(batch()))) << scaled.error();
    ASSERT_TRUE(plain.run(with_rate(batch()))) << plain.error();
  }
  EXPECT_EQ(numbers(scaled.state("loss_scale")), Numbers{65536});
  EXPECT_NE(numbers(scaled.state("w1")), before);
  check_equal();
}

TEST(TrainingSteps, RangesFollowTheBatches) {
  TrainOptions options = adam();
  options.quantize_aware = true;
  options.range_momentum = 0.75f;
  StepSession session(make_model(options), backend_name, "train_step");
  const auto range = [&] {
    Numbers both = numbers(session.state("x.range_low"));
    for (const float high : numbers(session.state("x.range_high"))) both.push_back(high);
    return both;
  };
  expect_near(range(), {0, 0});
  ASSERT_TRUE(session.run(with_rate(batch()))) << session.error();
  expect_near(range(), {-0.7f, 0.9f});  // initialized by the first batch
  const Numbers before = numbers(session.state("w1"));
  ASSERT_TRUE(session.run(with_rate(batch(2)))) << session.error();
  expect_near(range(), {-0.7f * 0.75f - 1.4f * 0.25f, 0.9f * 0.75f + 1.8f * 0.25f});
  EXPECT_NE(numbers(session.state("w1")), before);
  // Inference quantizes with the ranges found in training, and clips values beyond them.
  ASSERT_TRUE(session.run_entry("infer", std::array{array("x", {1, 3}, {100, 0, 0})})) << session.error();
  const Numbers clipped = numbers(session.output_of("infer", "y"));
  ASSERT_TRUE(session.run_entry("infer", std::array{array("x", {1, 3}, {200, 0, 0})})) << session.error();
  expect_near(numbers(session.output_of("infer", "y")), clipped);
}

TEST(TrainingSteps, MicroBatchesMakeTheStepOfTheirBatch) {
  TrainOptions options = adam();
  options.accumulate = true;
  options.optimizer.gradients.clip_norm = 0.05f;
  const auto model = make_model(options);
  StepSession whole(model, backend_name, "train_step"), parts(model, backend_name, "accumulate");
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(whole.run(with_rate(batch()))) << whole.error();
    for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(parts.run(half(i))) << parts.error();
    ASSERT_TRUE(parts.run_entry("update", with_rate({}))) << parts.error();
    EXPECT_EQ(integer(parts.state("micro_batches")), 0);
    for (const char* state : {"w1", "w2", "w2.m", "w1.v"})
      expect_near(numbers(parts.state(state)), numbers(whole.state(state)), 2e-6f);
  }
}

TEST(TrainingSteps, AveragesFollowTheWeights) {
  TrainOptions options = adam();
  options.optimizer.average_decay = 0.75f;
  StepSession session(make_model(options), backend_name, "train_step");
  Numbers average = numbers(session.state("w1"));
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(session.run(with_rate(batch(), 0.1f))) << session.error();
    const Numbers now = numbers(session.state("w1"));
    for (size_t i = 0; i < now.size(); ++i) average[i] = 0.75f * average[i] + 0.25f * now[i];
    expect_near(numbers(session.state("w1.ema")), average);
  }
  ASSERT_TRUE(session.run_entry("infer_ema", std::vector<Array>{batch()[0]})) << session.error();
}

TEST(TrainingSteps, GroupsScaleTheRateAndReplaceTheDecay) {
  TrainOptions options = adam();
  options.optimizer.optimizer.optimizer = compiler::Optimizer::Sgd;
  options.optimizer.optimizer.momentum = 0.0f;
  options.optimizer.optimizer.weight_decay = 0.5f;
  StepSession plain(make_model(options), backend_name, "train_step");
  options.optimizer.groups = {{.pattern = "w2", .learning_rate_scale = 0.1f, .weight_decay = 0.0f}};
  StepSession grouped(make_model(options), backend_name, "train_step");
  options.optimizer.groups = {};
  options.optimizer.optimizer.weight_decay = 0;
  StepSession undecayed(make_model(options), backend_name, "train_step");
  const Numbers start = numbers(plain.state("w2"));
  for (StepSession* session : {&plain, &grouped, &undecayed})
    ASSERT_TRUE(session->run(with_rate(batch(), 0.1f))) << session->error();
  expect_near(numbers(grouped.state("w1")), numbers(plain.state("w1")));
  Numbers expected = numbers(undecayed.state("w2"));
  for (size_t i = 0; i < start.size(); ++i) expected[i] = start[i] + 0.1f * (expected[i] - start[i]);
  expect_near(numbers(grouped.state("w2")), expected);
}

TEST(TrainingSteps, MomentsOfTwoBytesFollowThoseOfFour) {
  TrainOptions options = adam();
  StepSession full(make_model(options), backend_name, "train_step");
  options.optimizer.optimizer.state_type = DType::BF16;
  StepSession small(make_model(options), backend_name, "train_step");
  for (int step = 0; step < 10; ++step)
    for (StepSession* session : {&full, &small})
      ASSERT_TRUE(session->run(with_rate(batch()))) << session->error();
  EXPECT_EQ(small.state("w1.m")->type, DType::BF16);
  expect_near(numbers(small.state("w1")), numbers(full.state("w1")), 2e-3f);
}

/// [batch,3] to [batch,2] through a hidden layer that is wide enough for blockwise states.
std::vector<std::byte> wide_model(const TrainOptions& options) {
  Graph graph;
  compiler::Builder builder(graph);
  const ValueId x = builder.input("x", DType::F32, {{.symbol = graph.symbol("batch")}, {.extent = 3}});
  const ValueId first = builder.emit(op::MatMulAttributes{}, {x, weight(builder, "w1", {3, 72}, 0.5f)});
  const ValueId middle = builder.emit(op::MatMulAttributes{}, {builder.emit(op::TanhAttributes{}, {first}),
                                                               weight(builder, "w2", {72, 70}, 0.2f)});
  const ValueId y = builder.emit(op::MatMulAttributes{}, {builder.emit(op::TanhAttributes{}, {middle}),
                                                          weight(builder, "w3", {70, 2}, 0.2f)});
  graph.values[y].name = "y";
  builder.output(y);
  return trained_model(graph, builder.status(), options);
}

// 8 bits lose some precision of each moment, but the trajectory stays nearly the same; skipped steps change
// nothing.
TEST(TrainingSteps, MomentsInBlocksFollowThoseInFull) {
  using compiler::Optimizer;
  const std::pair<Optimizer, float> kinds[] = {{Optimizer::Sgd, 0.02f},     {Optimizer::Adam, 0.002f},
                                               {Optimizer::AdamW, 0.002f},  {Optimizer::RmsProp, 0.001f},
                                               {Optimizer::Adagrad, 0.01f}, {Optimizer::Adadelta, 1},
                                               {Optimizer::Lamb, 0.002f},   {Optimizer::Lion, 0.0005f}};
  for (const auto& [kind, rate] : kinds) {
    TrainOptions options = adam();
    options.optimizer.optimizer.optimizer = kind;
    if (kind == Optimizer::RmsProp) {
      options.optimizer.optimizer.centered = true;
      options.optimizer.optimizer.momentum = 0.5f;
    }
    if (kind == Optimizer::Adagrad) options.optimizer.optimizer.initial_accumulator = 0.1f;
    StepSession full(wide_model(options), backend_name, "train_step");
    options.optimizer.optimizer.state_type = DType::U8;
    StepSession small(wide_model(options), backend_name, "train_step");
    float first = 0, full_loss = 0, small_loss = 0;
    for (int step = 0; step < 30; ++step) {
      for (StepSession* session : {&full, &small})
        ASSERT_TRUE(session->run(with_rate(batch(), rate))) << session->error();
      full_loss = numbers(full.output("loss"))[0];
      small_loss = numbers(small.output("loss"))[0];
      if (step == 0) first = full_loss;
      EXPECT_TRUE(step > 0 || small_loss == first);
      EXPECT_NEAR(small_loss, full_loss, 0.02f * first)
          << "optimizer " << static_cast<int>(kind) << " step " << step;
    }
    EXPECT_LT(full_loss, 0.9f * first) << "optimizer " << static_cast<int>(kind);
    EXPECT_NE(small_loss, full_loss) << "optimizer " << static_cast<int>(kind);
  }
}

TEST(TrainingSteps, ASkippedStepKeepsBlocksBitForBit) {
  TrainOptions options = adam();
  options.optimizer.optimizer.state_type = DType::U8;
  options.optimizer.gradients.loss_scale = 1024.0f;
  options.optimizer.gradients.loss_scale_interval = 2000;
  StepSession session(wide_model(options), backend_name, "train_step");
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(session.run(with_rate(batch()))) << session.error();
  const char* kStates[] = {"w2", "w2.m", "w2.m.scales", "w2.v", "w2.v.scales", "w1.m"};
  std::vector<Array> before;
  for (const char* name : kStates) before.push_back(*session.state(name));
  EXPECT_EQ(before[1].type, DType::U8);
  EXPECT_EQ(before[2].dims, (std::vector<int64_t>{20}));  // 5040 elements
  EXPECT_EQ(before[5].type, DType::F32);
  ASSERT_TRUE(session.run(with_rate(batch(std::numeric_limits<float>::infinity())))) << session.error();
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(session.state(kStates[i])->bytes, before[i].bytes) << kStates[i];
}

/// BatchNorm(x w1) w2 of a model in `stored`; the weights are exactly representable in every type.
std::vector<std::byte> normalized_model(DType stored) {
  Graph graph;
  compiler::Builder builder(graph);
  const auto constant = [&](const char* name, Shape shape, double first) {
    const TensorInfo info{.dtype = stored, .shape = shape};
    std::vector<std::byte> bytes(info.bytes());
    for (int64_t i = 0; i < info.elements(); ++i)
      store_element(bytes.data(), stored, i, first + static_cast<double>(i * 5 % 7) / 8);
    const ValueId made = builder.constant(info, Blob::own(std::move(bytes)));
    graph.values[made].name = name;
    return made;
  };
  const ValueId x = builder.input("x", stored, {{.symbol = graph.symbol("batch")}, {.extent = 3}});
  const ValueId hidden = builder.emit(op::MatMulAttributes{}, {x, constant("w1", {3, 4}, -0.5)});
  const ValueId normal = builder.emit(op::BatchNormAttributes{},
                                      {hidden, constant("scale", {4}, 0.5), constant("bias", {4}, 0.25),
                                       constant("mean", {4}, 0), constant("variance", {4}, 1)});
  const ValueId y = builder.emit(op::MatMulAttributes{}, {normal, constant("w2", {4, 2}, -0.25)});
  graph.values[y].name = "y";
  builder.output(y);
  return trained_model(graph, builder.status(), adam());
}

// Weights stored in 16 bits have f32 master states, and take the same steps as an f32 model.
TEST(TrainingSteps, WeightsOfTwoBytesHaveMastersOfFour) {
  for (const DType stored : {DType::F16, DType::BF16}) {
    StepSession full(normalized_model(DType::F32), backend_name, "train_step");
    StepSession narrow(normalized_model(stored), backend_name, "train_step");
    for (int step = 0; step < 3; ++step)
      for (StepSession* session : {&full, &narrow})
        ASSERT_TRUE(session->run(with_rate(batch()))) << session->error();
    for (const char* name : {"w1", "scale", "bias", "mean", "variance", "w2"}) {
      ASSERT_TRUE(narrow.state(name)) << narrow.error();
      EXPECT_EQ(narrow.state(name)->type, DType::F32) << name;
      expect_near(numbers(narrow.state(name)), numbers(full.state(name)), 1e-5f);
    }
    const Array x = batch()[0];
    for (StepSession* session : {&full, &narrow})
      ASSERT_TRUE(session->run_entry("infer", std::vector<Array>{x})) << session->error();
    expect_near(numbers(narrow.output_of("infer", "y")), numbers(full.output_of("infer", "y")), 1e-4f);
  }
}

// ranks.sh tests more ranks.
TEST(TrainingSteps, OneRankIsAsWithoutRanks) {
  for (const int64_t shards : {0, 1}) {
    TrainOptions options = adam();
    options.accumulate = true;
    options.optimizer.average_decay = 0.9f;
    options.optimizer.gradients.clip_norm = 0.05f;
    options.optimizer.groups = {{.pattern = "w2", .learning_rate_scale = 0.5f}};
    StepSession plain(make_model(options), backend_name, "train_step");
    options.data_parallel = {.enabled = true, .bucket_bytes = 1};
    options.optimizer.shards = shards;
    StepSession parallel(make_model(options), backend_name, "train_step");
    const auto check_equal = [&] {
      for (const char* state : {"w1", "w2", "w1.ema"})
        expect_near(numbers(parallel.state(state)), numbers(plain.state(state)));
      const char* moment = shards > 0 ? "optimizer.shard1.m" : "w1.m";
      expect_near(numbers(parallel.state(moment)), numbers(plain.state("w1.m")));
    };
    for (int step = 0; step < 3; ++step)
      for (StepSession* session : {&plain, &parallel})
        ASSERT_TRUE(session->run(with_rate(batch()))) << session->error();
    check_equal();
    expect_near(numbers(parallel.output("loss")), numbers(plain.output("loss")));
    for (StepSession* session : {&plain, &parallel}) {
      for (size_t i = 0; i < 2; ++i)
        ASSERT_TRUE(session->run_entry("accumulate", half(i))) << session->error();
      ASSERT_TRUE(session->run_entry("update", with_rate({}))) << session->error();
    }
    check_equal();
  }
}

TEST(TrainingSteps, LambIsNotSharded) {
  TrainOptions options = adam();
  options.optimizer.optimizer.optimizer = compiler::Optimizer::Lamb;
  options.data_parallel.enabled = true;
  options.optimizer.shards = 2;
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  const Status status = compiler::add_train_entry(model, options, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("lamb"), std::string::npos) << status.message();
}

TEST(TrainingSteps, AGroupWithoutAWeightIsAnError) {
  TrainOptions options = adam();
  options.optimizer.groups = {{.pattern = "head.*"}};
  ModelGraph model;
  Graph graph;
  compiler::Builder builder(graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = 2}, {.extent = 3}});
  builder.output(builder.emit(op::MatMulAttributes{}, {x, weight(builder, "w1", {3, 4}, 0.5f)}));
  model.entries.push_back({.name = "infer", .graph = std::move(graph)});
  const Status status = compiler::add_train_entry(model, options, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("'head.*' matches no trained weight; these are w1"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
