// Low-rank adapters in sessions of the backend argv[1]: gradients, merging, swapping,
// dropout, and a language model that learns new text.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/core/element.h"
#include "runtime/model/checkpoint.h"
#include "tests/support/backend_main.h"
#include "tests/training/step_session.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/lora.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/writer.h"
#include "tools/data/tokenizer.h"
#include "tools/onnx/import.h"

namespace librt {
namespace {

using compiler::LoraOptions;
using compiler::TrainOptions;
using test::StepSession;
using tools::Array;
using Numbers = std::vector<float>;

using test::backend_name;

template <class T>
Array array(const char* name, DType type, std::vector<int64_t> dims, const std::vector<T>& values) {
  Array made{.name = name, .type = type, .dims = std::move(dims), .bytes = {}};
  made.bytes.resize(values.size() * sizeof(T));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}
Array floats(const char* name, std::vector<int64_t> dims, const Numbers& values) {
  return array(name, DType::F32, std::move(dims), values);
}
Array integers(const char* name, std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return array(name, DType::I64, std::move(dims), values);
}

Numbers numbers(const std::optional<Array>& made) {
  if (!made) return {};
  Numbers values(made->bytes.size() / sizeof(float));
  std::memcpy(values.data(), made->bytes.data(), values.size() * sizeof(float));
  return values;
}

Numbers waves(size_t count, float phase, float height) {
  Numbers values(count);
  for (size_t i = 0; i < count; ++i) values[i] = height * std::cos(phase + 1.3f * static_cast<float>(i));
  return values;
}

ValueId weight(compiler::Builder& builder, const char* name, Shape shape, float phase,
               DType dtype = DType::F32) {
  const TensorInfo info{.dtype = dtype, .shape = shape};
  const Numbers values = waves(static_cast<size_t>(shape.elements()), phase, 0.6f);
  std::vector<std::byte> bytes(info.bytes());
  for (size_t i = 0; i < values.size(); ++i)
    store_element(bytes.data(), dtype, static_cast<int64_t>(i), static_cast<double>(values[i]));
  const ValueId made = builder.constant(info, Blob::own(std::move(bytes)));
  builder.graph().values[made].name = name;
  return made;
}

constexpr int64_t kBatch = 4;

// A grouped convolution, a matrix shared by two nodes, one that is stored transposed, and an embedding that
// is also the classifier: [batch,5,5,4] and ids [batch] to [batch,5]. shared: the type of the shared matrix.
ModelGraph small_net(DType shared = DType::F32) {
  ModelGraph model;
  model.producer = "lora";
  Graph graph;
  compiler::Builder builder(graph);
  const Dim batch{.symbol = graph.symbol("batch")};
  const ValueId x = builder.input("x", DType::F32, {batch, {.extent = 5}, {.extent = 5}, {.extent = 4}});
  const ValueId ids = builder.input("ids", DType::I64, {batch});
  op::ConvAttributes conv;
  conv.groups = 2;
  conv.strides = {2, 2};
  conv.pads = {1, 1, 1, 1};
  builder.set_scope("conv");
  ValueId y = builder.emit(std::move(conv), {x, weight(builder, "conv.weight", {6, 3, 3, 2}, 0)});
  y = builder.reduce_mean(builder.emit(op::TanhAttributes{}, {y}), {1, 2}, false);
  const ValueId table = weight(builder, "table", {5, 6}, 1);
  y = builder.add(y, builder.emit(op::GatherAttributes{}, {table, ids}));
  ValueId matrix = weight(builder, "matrix", {6, 6}, 2, shared);
  if (shared != DType::F32) matrix = builder.cast(matrix, DType::F32);
  for (int use = 0; use < 2; ++use)
    y = builder.emit(op::TanhAttributes{}, {builder.emit(op::MatMulAttributes{}, {y, matrix})});
  op::MatMulAttributes transposed;
  transposed.transpose_b = true;
  y = builder.emit(transposed, {y, weight(builder, "stored_transposed", {6, 6}, 3)});
  y = builder.emit(op::MatMulAttributes{}, {y, builder.transpose(table, {1, 0})});
  EXPECT_TRUE(builder.status().ok()) << builder.status().message();
  graph.values[y].name = "y";
  builder.output(y);
  graph.name = "infer";
  model.entries.push_back({.name = "infer", .graph = std::move(graph)});
  return model;
}

const std::vector<const char*> kWeights = {"conv.weight", "matrix", "stored_transposed", "table"};

std::vector<Array> inputs() {
  return {floats("x", {kBatch, 5, 5, 4}, waves(static_cast<size_t>(kBatch) * 100, 0.4f, 1)),
          integers("ids", {kBatch}, {3, 0, 4, 3})};
}
std::vector<Array> batch(float rate) {
  std::vector<Array> all = inputs();
  all.push_back(floats("target", {kBatch, 5}, waves(static_cast<size_t>(kBatch) * 5, 0.7f, 0.5f)));
  all.push_back(floats("learning_rate", {}, {rate}));
  return all;
}

TrainOptions training(compiler::Optimizer optimizer) {
  TrainOptions options;
  options.loss.loss = compiler::Loss::MeanSquaredError;
  options.optimizer.optimizer.optimizer = optimizer;
  options.optimizer.optimizer.momentum = 0.0f;
  return options;
}

std::vector<std::byte> compiled(ModelGraph model) {
  const Status status = compiler::optimize(model, {}, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  auto bytes = compiler::serialize_model(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? std::move(bytes).value() : std::vector<std::byte>();
}

ModelGraph adapted(ModelGraph model, const LoraOptions& lora) {
  const Status status = compiler::add_adapters(model, lora, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  return model;
}

ModelGraph trainable(ModelGraph model, const TrainOptions& options) {
  const Status status = compiler::add_train_entry(model, options, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  return model;
}

/// A session's state values, as in a checkpoint.
std::vector<State> states_of(const ModelGraph& model, StepSession& session) {
  std::vector<State> states = model.states;
  for (State& state : states) {
    const auto value = session.state(state.name);
    EXPECT_TRUE(value.has_value()) << session.error();
    if (value) state.initial = Blob::copy_of(value->bytes.data(), value->bytes.size());
  }
  return states;
}

void expect_near(const Numbers& got, const Numbers& want, float tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  ASSERT_FALSE(want.empty()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance) << what << ", element " << i;
}

Numbers result(ModelGraph model) {
  StepSession session(compiled(std::move(model)), backend_name, "infer");
  EXPECT_TRUE(session.run(inputs())) << session.error();
  return numbers(session.output("y"));
}

/// Sets every B to nonzero values, so that A has a gradient too.
void fill_adapters(ModelGraph& model) {
  for (State& state : model.states)
    if (state.name.ends_with(".lora_b")) {
      const Numbers values = waves(static_cast<size_t>(state.info.elements()), 0.9f, 0.3f);
      state.initial = Blob::copy_of(values.data(), values.size() * sizeof(float));
    }
}

TEST(Lora, ANewAdapterChangesNothing) {
  ModelGraph model = adapted(small_net(), {.rank = 3});
  EXPECT_EQ(model.states.size(), 1 + 2 * kWeights.size());
  EXPECT_EQ(result(model), result(small_net()));
}

TEST(Lora, MergedEqualsBeside) {
  for (DType shared : {DType::F32, DType::F16, DType::BF16}) {
    const ModelGraph base = small_net(shared);
    const ModelGraph model =
        trainable(adapted(base, {.rank = 3, .alpha = 6}), training(compiler::Optimizer::Adam));
    for (const State& state : model.states)
      EXPECT_TRUE(state.name.find("lora") != state.name.npos || state.name.find("step") != state.name.npos)
          << state.name << " is no part of an adapter";
    StepSession session(compiled(model), backend_name, "train_step");
    float first = 0, last = 0;
    for (int step = 0; step < 20; ++step) {
      ASSERT_TRUE(session.run(batch(0.02f))) << session.error();
      (step == 0 ? first : last) = numbers(session.output("loss"))[0];
    }
    EXPECT_LT(last, 0.7f * first);
    ModelGraph beside = model, merged = base;
    beside.states = states_of(model, session);
    const auto weights = compiler::merge_adapter(merged, beside.states);
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    EXPECT_EQ(weights->size(), kWeights.size());
    for (const auto& each : *weights)
      EXPECT_EQ(each.is_shared, each.weight.name == "table") << each.weight.name;
    EXPECT_TRUE(merged.states.empty());
    // The classifier's copy comes with the Transpose that leads to it; no other node is new.
    EXPECT_EQ(merged.entries[0].graph.nodes.size(), base.entries[0].graph.nodes.size());
    // Narrow weights round the sum.
    const float tolerance = shared == DType::F32 ? 2e-6f : shared == DType::F16 ? 1e-3f : 1e-2f;
    expect_near(result(merged), result(beside), tolerance, std::string(name_of(shared)));
  }
}

// With G the gradient of the merged weight W + s B A: dA = s B^T G and dB = s G A^T.
TEST(Lora, GradientsFollowFromThoseOfTheMergedWeight) {
  const LoraOptions lora{.rank = 2, .alpha = 3};
  ModelGraph model = adapted(small_net(), lora);
  fill_adapters(model);
  ModelGraph merged = small_net();
  ASSERT_TRUE(compiler::merge_adapter(merged, model.states).ok());
  const TrainOptions options = training(compiler::Optimizer::Sgd);
  merged = trainable(merged, options);
  const std::vector<State> before = model.states, merged_before = merged.states;
  StepSession adapters(compiled(trainable(model, options)), backend_name, "train_step");
  StepSession whole(compiled(merged), backend_name, "train_step");
  ASSERT_TRUE(adapters.run(batch(1))) << adapters.error();
  ASSERT_TRUE(whole.run(batch(1))) << whole.error();
  expect_near(numbers(adapters.output("loss")), numbers(whole.output("loss")), 1e-5f, "loss");

  const auto initial = [](const std::vector<State>& states, const std::string& name) {
    for (const State& state : states)
      if (state.name == name) {
        Numbers values(static_cast<size_t>(state.info.elements()));
        if (state.initial.data != nullptr) std::memcpy(values.data(), state.initial.data, state.initial.size);
        return values;
      }
    ADD_FAILURE() << "no state " << name;
    return Numbers();
  };
  // With a learning rate of 1 a step subtracts the gradient.
  const auto gradient = [&](StepSession& session, const std::vector<State>& states, const std::string& name) {
    Numbers values = initial(states, name);
    const Numbers after = numbers(session.state(name));
    for (size_t i = 0; i < values.size() && i < after.size(); ++i) values[i] -= after[i];
    return values;
  };
  const float scale = lora.alpha / static_cast<float>(lora.rank);
  const auto rank = static_cast<size_t>(lora.rank);
  for (const std::string name : kWeights) {
    const bool is_conv = name == "conv.weight", in_is_rows = name == "matrix";
    const size_t groups = is_conv ? 2 : 1, out = name == "table" ? 5 : 6, in = is_conv ? 18 : 6;
    const Numbers a = initial(before, name + ".lora_a"), b = initial(before, name + ".lora_b");
    const Numbers g = gradient(whole, merged_before, name == "table" ? "table.merged" : name);
    ASSERT_EQ(g.size(), in * out) << name;
    Numbers grad_a(a.size()), grad_b(b.size());
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < in; ++i)
        for (size_t r = 0; r < rank; ++r) {
          const size_t row = (o / (out / groups) * rank + r) * in + i;
          const float value = scale * g[in_is_rows ? i * out + o : o * in + i];
          grad_a[row] += value * b[o * rank + r];
          grad_b[o * rank + r] += value * a[row];
        }
    expect_near(gradient(adapters, before, name + ".lora_a"), grad_a, 3e-6f, name + ".lora_a");
    expect_near(gradient(adapters, before, name + ".lora_b"), grad_b, 3e-6f, name + ".lora_b");
  }
}

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("lora-" + backend_name + "-" + name)).string();
}

TEST(Lora, AdaptersAreSwappedInARunningSession) {
  ModelGraph filled = adapted(small_net(), {.rank = 2, .seed = 5});
  fill_adapters(filled);
  const std::string first = scratch("first"), empty = scratch("empty"), foreign = scratch("foreign");
  const ModelGraph model = adapted(small_net(), {.rank = 2});
  StepSession session(compiled(model), backend_name, "infer");
  ASSERT_TRUE(session.run(inputs())) << session.error();
  const Numbers base = numbers(session.output("y"));
  ASSERT_TRUE(write_checkpoint(empty, {.producer = "test", .tensors = states_of(model, session)}).ok());
  ASSERT_TRUE(session.load_adapter(empty)) << session.error();
  std::vector<State> tensors = filled.states;
  ASSERT_TRUE(write_checkpoint(first, {.producer = "test", .tensors = tensors}).ok());
  ASSERT_TRUE(session.load_adapter(first)) << session.error();
  ASSERT_TRUE(session.run(inputs())) << session.error();
  EXPECT_EQ(numbers(session.output("y")), result(filled));
  EXPECT_NE(numbers(session.output("y")), base);
  ASSERT_TRUE(session.load_adapter(empty)) << session.error();
  ASSERT_TRUE(session.run(inputs())) << session.error();
  EXPECT_EQ(numbers(session.output("y")), base);
  // Another model's adapter: one unknown tensor, and one missing.
  tensors[1].name = "other.lora_a";
  ASSERT_TRUE(write_checkpoint(foreign, {.producer = "test", .tensors = tensors}).ok());
  EXPECT_FALSE(session.load_adapter(foreign));
  EXPECT_NE(session.error().find("found none"), std::string::npos) << session.error();
  EXPECT_NE(session.error().find("'other.lora_a': the model has none"), std::string::npos) << session.error();
  for (const std::string& path : {first, empty, foreign}) std::filesystem::remove(path);
}

TEST(Lora, DropoutIsForTrainingAlone) {
  TrainOptions options = training(compiler::Optimizer::Sgd);
  const ModelGraph base = adapted(small_net(), {.rank = 2, .targets = {"matrix"}});
  const ModelGraph plain = trainable(base, options);
  options.adapter_dropout = 0.5f;
  const ModelGraph dropping = trainable(base, options);
  const auto draws = [](const ModelGraph& model, const char* entry) {
    size_t count = 0;
    for (const Node& node : model.entry(entry)->nodes) count += node.kind() == OpKind::RandomUniform;
    return count;
  };
  EXPECT_EQ(draws(dropping, "train_step"), 2u);  // two nodes share the weight
  EXPECT_EQ(draws(dropping, "infer"), 0u);
  EXPECT_EQ(draws(plain, "train_step"), 0u);
  StepSession with(compiled(dropping), backend_name, "train_step"),
      again(compiled(dropping), backend_name, "train_step"),
      without(compiled(plain), backend_name, "train_step");
  for (int step = 0; step < 3; ++step)
    for (StepSession* session : {&with, &again, &without})
      ASSERT_TRUE(session->run(batch(0.1f))) << session->error();
  EXPECT_EQ(numbers(with.state("matrix.lora_b")), numbers(again.state("matrix.lora_b")));
  EXPECT_NE(numbers(with.state("matrix.lora_b")), numbers(without.state("matrix.lora_b")));
}

TEST(Lora, WeightsCanBeTrainedBesideAdapters) {
  TrainOptions options = training(compiler::Optimizer::Sgd);
  options.trainable = {"stored_*"};
  const ModelGraph base = small_net();
  const ModelGraph model =
      trainable(adapted(base, {.rank = 2, .targets = {"conv"}}), options);  // the name of the node
  StepSession session(compiled(model), backend_name, "train_step");
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(session.run(batch(0.1f))) << session.error();
  ModelGraph merged = base, beside = model;
  beside.states = states_of(model, session);
  const auto weights = compiler::merge_adapter(merged, beside.states);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->size(), 2u);
  EXPECT_NE(result(merged), result(base));
  expect_near(result(merged), result(beside), 2e-6f, "merged");
}

TEST(Lora, WhatCannotBeDoneIsNamed) {
  ModelGraph model = small_net();
  Status status = compiler::add_adapters(model, {.targets = {"nothing*"}}, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("the weights of MatMul and Conv are conv.weight, matrix"),
            std::string::npos)
      << status.message();
  ModelGraph adapter = adapted(model, {.rank = 2});
  for (State& state : adapter.states)
    if (state.initial.data == nullptr) state.initial = Blob::own(std::vector<std::byte>(state.info.bytes()));
  adapter.states[1].name = "else.lora_a";
  const auto merged = compiler::merge_adapter(model, adapter.states);
  ASSERT_FALSE(merged.ok());
  EXPECT_NE(
      merged.status().message().find("'else': no MatMul or Conv of the model has a weight of this name"),
      std::string::npos)
      << merged.status().message();
}

// The 260K-parameter language model on unseen text, in windows of 48 tokens.
TEST(Lora, ALanguageModelLearnsNewText) {
  if (backend_name == "cuda_emu") GTEST_SKIP() << "takes an emulated GPU too long";
  const std::string folder = RT_SHARED_DATA "/data";
  const std::string source = folder + "/models/llm_stories260k/prefill/model.onnx";
  std::ifstream file(folder + "/datasets/tinyshakespeare/input.txt");
  std::string text(20000, ' ');
  const auto tokenizer = tools::Tokenizer::load(folder + "/models/llm_stories260k/tok512.bin");
  if (!std::filesystem::exists(source) || !file.read(text.data(), 20000) || !tokenizer)
    GTEST_SKIP() << "the language model or the text is not there";
  onnx::ImportReport report;
  auto model = onnx::import_onnx(source, {}, report);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ModelGraph base = *model;
  *model = adapted(*model, {.rank = 4, .alpha = 8});
  TrainOptions options;
  options.optimizer.optimizer.optimizer = compiler::Optimizer::Adam;
  *model = trainable(*model, options);
  StepSession session(compiled(*model), backend_name, "train_step");
  const std::vector<int64_t> tokens = tokenizer->encode(text);
  constexpr int64_t kLength = 48, kWindows = 4;
  const auto window = [&](int64_t index) {
    const auto at = tokens.begin() + index * kLength;
    return std::vector<Array>{integers("tokens", {kLength}, {at, at + kLength}),
                              integers("labels", {kLength}, {at + 1, at + kLength + 1}),
                              floats("learning_rate", {}, {0.01f})};
  };
  Numbers losses;
  for (int64_t step = 0; step < 3 * kWindows; ++step) {
    ASSERT_TRUE(session.run(window(step % kWindows))) << session.error();
    losses.push_back(numbers(session.output("loss"))[0]);
  }
  float first = 0, last = 0;
  for (size_t i = 0; i < kWindows; ++i) {
    first += losses[i] / kWindows;
    last += losses[losses.size() - 1 - i] / kWindows;
  }
  std::printf("loss %.3f in the first pass, %.3f in the third\n", static_cast<double>(first),
              static_cast<double>(last));
  EXPECT_LT(last, 0.8f * first);
  // The embedding, which is also the classifier, is unchanged; the merged model computes the same as the
  // model with a separate adapter.
  ModelGraph merged = base;
  const std::vector<State> states = states_of(*model, session);
  const auto weights = compiler::merge_adapter(merged, states);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  const auto embedding = [](const ModelGraph& of) {
    for (const Value& value : of.entries[0].graph.values)
      if (value.name == "tok_embeddings" && value.role == Role::Constant) return value.data;
    return Blob();
  };
  const Blob before = embedding(base), after = embedding(merged);
  ASSERT_GT(after.size, 0u);
  EXPECT_EQ(std::memcmp(before.data, after.data, after.size), 0);
  StepSession plain(compiled(merged), backend_name, "infer");
  const std::vector<Array> prompt = {window(7)[0]};
  ASSERT_TRUE(plain.run(prompt)) << plain.error();
  ASSERT_TRUE(session.run_entry("infer", prompt)) << session.error();
  expect_near(numbers(session.output_of("infer", "logits")), numbers(plain.output("logits")), 2e-3f,
              "logits");
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
