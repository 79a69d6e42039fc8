// Targets of outputs whose extents only a run knows: they are compared with the prediction, not broadcast.
// In sessions of the backend argv[1].
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/backend_main.h"
#include "tests/training/step_session.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using compiler::Loss;
using test::backend_name;
using test::StepSession;
using tools::Array;

constexpr int64_t kBatch = 2, kChannels = 3, kResults = 2;

std::vector<float> waves(size_t count, float phase) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::cos(phase + 1.3f * static_cast<float>(i));
  return values;
}

Array floats(const char* name, std::vector<int64_t> dims, const std::vector<float>& values) {
  Array made{.name = name, .type = DType::F32, .dims = std::move(dims), .bytes = {}};
  made.bytes.resize(values.size() * sizeof(float));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}
Array waves(const char* name, std::vector<int64_t> dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return floats(name, std::move(dims), waves(static_cast<size_t>(count), 0.4f));
}
Array ones(const char* name, std::vector<int64_t> dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  Array made{.name = name, .type = DType::I64, .dims = std::move(dims), .bytes = {}};
  const std::vector<int64_t> values(static_cast<size_t>(count), 1);
  made.bytes.resize(values.size() * sizeof(int64_t));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}
std::vector<float> numbers(const std::optional<Array>& made) {
  std::vector<float> values(made ? made->bytes.size() / sizeof(float) : 0);
  if (made) std::memcpy(values.data(), made->bytes.data(), made->bytes.size());
  return values;
}

enum class Length : uint8_t {
  OfInput,      ///< all positions
  FromData,     ///< those where `keep` is above 0
  FromNumbers,  ///< the first seven tenths, by arithmetic on floats that is not followed
};

/// A convolution along part of the positions of x [batch,n,3], to y [batch,length,2].
std::vector<std::byte> model_of(Length length, const compiler::TrainOptions& options) {
  Graph graph;
  compiler::Builder b(graph);
  ValueId x = b.input("x", DType::F32,
                      {{.symbol = graph.symbol("batch")}, {.symbol = graph.symbol("n")}, {kChannels}});
  if (length == Length::FromData) {
    const ValueId keep = b.input("keep", DType::F32, {{.symbol = graph.symbol("n")}});
    const ValueId kept =
        b.emit(op::NonZeroAttributes{}, {b.emit(op::GreaterAttributes{}, {keep, b.scalar(0, DType::F32)})});
    op::GatherAttributes positions;
    positions.axis = 1;
    x = b.emit(positions, {x, b.reshape(kept, b.ints(std::vector<int64_t>{-1}))});
  } else if (length == Length::FromNumbers) {
    op::ShapeAttributes n;
    n.start = 1;
    n.end = 2;
    const ValueId real = b.mul(b.cast(b.emit(n, {x}), DType::F32), b.scalar(0.7, DType::F32));
    op::SliceAttributes first;
    first.axes = {1};
    first.steps = {1};
    x = b.emit(first, {x, b.ints(std::vector<int64_t>{0}),
                       b.cast(b.emit(op::FloorAttributes{}, {real}), DType::I64)});
  }
  const std::vector<float> values = waves(kResults * 3 * kChannels, 1);
  const ValueId weight = b.constant({.dtype = DType::F32, .shape = {kResults, 3, kChannels}},
                                    Blob::copy_of(values.data(), values.size() * sizeof(float)));
  graph.values[weight].name = "weight";
  op::ConvAttributes conv;
  conv.strides = {2};
  const ValueId y = b.emit(conv, {x, weight});
  EXPECT_TRUE(b.status().ok()) << b.status().message();
  graph.values[y].name = "y";
  b.output(y);
  graph.name = "infer";
  ModelGraph model;
  model.producer = "open_targets";
  model.entries.push_back({.name = "infer", .graph = std::move(graph)});
  Status status = compiler::add_train_entry(model, options, nullptr);
  if (status.ok()) status = compiler::optimize(model, {}, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return {};
  auto bytes = compiler::serialize_model(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? std::move(bytes).value() : std::vector<std::byte>();
}

compiler::TrainOptions with(Loss loss) {
  compiler::TrainOptions options;
  options.loss.loss = loss;
  options.loss.class_axis = -1;
  return options;
}

/// x has 10 positions, of which 7 count: y has 3.
std::vector<Array> inputs_of(Length length, std::vector<Array> targets) {
  std::vector<Array> inputs = {waves("x", {kBatch, length == Length::OfInput ? 7 : 10, kChannels}),
                               floats("learning_rate", {}, {0.1f})};
  if (length == Length::FromData) inputs.push_back(floats("keep", {10}, {1, 1, 1, 1, 1, 1, 1, -1, 0, -1}));
  for (Array& target : targets) inputs.push_back(std::move(target));
  return inputs;
}

TEST(OpenTargets, TrainLikeTheSameLengthInTheInput) {
  const auto trained = [](Length length) {
    StepSession session(model_of(length, with(Loss::MeanSquaredError)), backend_name, "train_step");
    std::vector<Array> inputs = inputs_of(length, {waves("target", {kBatch, 3, kResults})});
    if (length == Length::OfInput) {  // the first seven positions of the others' x
      const std::vector<float> all = numbers(waves("x", {kBatch, 10, kChannels}));
      std::vector<float> part(all.begin(), all.begin() + 7 * kChannels);
      part.insert(part.end(), all.begin() + 10 * kChannels, all.begin() + 17 * kChannels);
      inputs[0] = floats("x", {kBatch, 7, kChannels}, part);
    }
    EXPECT_TRUE(session.run(inputs)) << session.error();
    const std::vector<float> loss = numbers(session.output("loss"));
    std::vector<float> weight = numbers(session.state("weight"));
    weight.insert(weight.end(), loss.begin(), loss.end());
    return weight;
  };
  const std::vector<float> wanted = trained(Length::OfInput);
  ASSERT_EQ(wanted.size(), static_cast<size_t>(kResults * 3 * kChannels + 1));
  EXPECT_NE(wanted[0], waves(1, 1)[0]);
  for (const Length length : {Length::FromData, Length::FromNumbers}) {
    const std::vector<float> found = trained(length);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5f) << "element " << i;
  }
}

struct Case {
  Loss loss;
  std::vector<Array> right;
  std::vector<std::vector<Array>> wrong;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto dense = [](int64_t batch, int64_t length, int64_t results) {
    Array target = waves("target", {batch, length, results});
    for (float& value : std::span(reinterpret_cast<float*>(target.bytes.data()), target.bytes.size() / 4))
      value = value > 0 ? 1.0f : 0.0f;
    return std::vector<Array>{std::move(target)};
  };
  for (const Loss loss : {Loss::MeanSquaredError, Loss::MeanAbsoluteError, Loss::Huber,
                          Loss::BinaryCrossEntropy, Loss::KlDivergence})
    all.push_back({loss,
                   dense(kBatch, 3, kResults),
                   {dense(kBatch, 1, kResults), dense(kBatch, 4, kResults), dense(kBatch, 0, kResults)}});
  for (const Loss loss : {Loss::CrossEntropy, Loss::NegativeLogLikelihood})
    all.push_back(
        {loss,
         {ones("labels", {kBatch, 3})},
         {{ones("labels", {kBatch, 1})}, {ones("labels", {kBatch, 4})}, {ones("labels", {kBatch, 0})}}});
  // y as [T,N,C]: the samples are what is open.
  const auto sequences = [](int64_t a, int64_t b, int64_t c) {
    return std::vector<Array>{ones("labels", {a, 1}), ones("input_lengths", {b}), ones("label_lengths", {c})};
  };
  all.push_back(
      {Loss::Ctc, sequences(3, 3, 3), {sequences(1, 3, 3), sequences(3, 4, 3), sequences(3, 3, 1)}});
  return all;
}

TEST(OpenTargets, EveryLossRefusesOtherExtents) {
  for (const Length length : {Length::FromData, Length::FromNumbers})
    for (const Case& c : cases()) {
      SCOPED_TRACE(text(static_cast<int>(length), ", loss ", static_cast<int>(c.loss)));
      const std::vector<std::byte> model = model_of(length, with(c.loss));
      StepSession good(model, backend_name, "train_step");
      ASSERT_TRUE(good.run(inputs_of(length, c.right))) << good.error();
      const std::vector<float> loss = numbers(good.output("loss"));
      ASSERT_EQ(loss.size(), 1U);
      EXPECT_TRUE(std::isfinite(loss[0]));
      for (const std::vector<Array>& wrong : c.wrong) {
        StepSession bad(model, backend_name, "train_step");
        EXPECT_FALSE(bad.run(inputs_of(length, wrong)));
        EXPECT_NE(bad.error().find(" in the shape of y' (Identity): expected x of shape ["),
                  std::string::npos)
            << bad.error();
      }
    }
}

/// What is no extent of a run alone is checked with the inputs, before anything runs.
TEST(OpenTargets, ExtentsOfInputsAreThoseOfTheTarget) {
  StepSession session(model_of(Length::OfInput, with(Loss::MeanSquaredError)), backend_name, "train_step");
  EXPECT_FALSE(session.run(inputs_of(Length::OfInput, {waves("target", {kBatch, 1, kResults})})));
  EXPECT_NE(session.error().find("input 'target': expected"), std::string::npos) << session.error();
  StepSession batch(model_of(Length::FromData, with(Loss::MeanSquaredError)), backend_name, "train_step");
  EXPECT_FALSE(batch.run(inputs_of(Length::FromData, {waves("target", {1, 3, kResults})})));
  EXPECT_NE(batch.error().find("batch = 1 here but 2 in input 'x'"), std::string::npos) << batch.error();
}

TEST(OpenTargets, AccumulationChecksThemToo) {
  compiler::TrainOptions options = with(Loss::Huber);
  options.accumulate = true;
  const std::vector<std::byte> model = model_of(Length::FromNumbers, options);
  const auto run = [&](int64_t extent) {
    StepSession session(model, backend_name, "accumulate");
    std::vector<Array> inputs = inputs_of(Length::FromNumbers, {waves("target", {kBatch, extent, kResults})});
    inputs.erase(inputs.begin() + 1);  // the learning rate is the update's
    return session.run(inputs) ? std::string() : session.error();
  };
  EXPECT_EQ(run(3), "");
  EXPECT_NE(run(1).find("expected x of shape [2,3,2], found [2,1,2]"), std::string::npos);
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
