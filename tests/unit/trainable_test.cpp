// The part of a net for which a training step computes gradients.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tools/compiler/builder.h"
#include "tools/compiler/train/lora.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/zoo/zoo.h"

namespace librt::compiler {
namespace {

std::multiset<OpKind> kinds_of(const Graph& graph) {
  std::multiset<OpKind> kinds;
  for (const Node& node : graph.nodes) kinds.insert(node.kind());
  return kinds;
}

ModelGraph trained(const char* net, const TrainOptions& options, const LoraOptions* lora = nullptr) {
  auto model = build_zoo_model(net);
  EXPECT_TRUE(model.ok()) << model.status().message();
  Status status = lora != nullptr ? add_adapters(*model, *lora, nullptr) : Status();
  if (status.ok()) status = add_train_entry(*model, options, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(model).value();
}

bool is_gradient_below_the_head(OpKind kind) {
  return kind == OpKind::ConvWeightGrad || kind == OpKind::ConvTranspose || kind == OpKind::MaxPoolGrad ||
         kind == OpKind::BatchNormTrain;
}

// The head alone: nothing below it is differentiated, and normalizations run in inference mode.
TEST(Trainable, NothingBelowTheLowestTrainedWeight) {
  const ModelGraph model = trained("resnet18", {.trainable = {"fc.*"}});
  const Graph& step = *model.entry("train_step");
  size_t convolutions = 0;
  for (OpKind kind : kinds_of(step)) {
    EXPECT_FALSE(is_gradient_below_the_head(kind)) << name_of(kind);
    convolutions += kind == OpKind::Conv;
  }
  EXPECT_EQ(convolutions, 20u);
  for (const State& state : model.states)
    EXPECT_TRUE(state.name.starts_with("fc.") || state.name == "optimizer.step") << state.name;
}

// From the last block on: its normalizations are in training mode, those below are not.
TEST(Trainable, NormalizationsTrainWhereTheirWeightsDo) {
  const ModelGraph model = trained("resnet18", {.trainable = {"layer4.*", "fc.*"}});
  size_t training = 0, weight_gradients = 0, statistics = 0;
  for (OpKind kind : kinds_of(*model.entry("train_step"))) {
    training += kind == OpKind::BatchNormTrain;
    weight_gradients += kind == OpKind::ConvWeightGrad;
  }
  EXPECT_EQ(training, 5u);  // four, and the shortcut's
  for (const State& state : model.states) statistics += state.kind == StateKind::Statistic;
  EXPECT_EQ(statistics, 2 * training);
  EXPECT_EQ(weight_gradients, 5u);
}

TEST(Trainable, FrozenWeightsStayConstant) {
  const ModelGraph all_but_one = trained("resnet18", {.frozen = {"conv1.*"}});
  std::set<std::string> names;
  for (const State& state : all_but_one.states) names.insert(state.name);
  EXPECT_FALSE(names.contains("conv1.weight"));
  EXPECT_TRUE(names.contains("layer1.0.conv1.weight"));
  const ModelGraph bias = trained("resnet18", {.trainable = {"fc.*"}, .frozen = {"*.weight"}});
  for (const State& state : bias.states)
    EXPECT_TRUE(state.name.starts_with("fc.bias") || state.name == "optimizer.step") << state.name;
  auto model = build_zoo_model("resnet18");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Status unknown = add_train_entry(*model, {.frozen = {"no_such.*"}}, nullptr);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.message().find("'no_such.*' matches no weight"), std::string::npos) << unknown.message();
}

// y = (x weight + bias) scale + shift, all of one element.
ModelGraph line() {
  ModelGraph model;
  Graph graph;
  Builder builder(graph);
  const auto constant = [&](const char* name, Shape shape) {
    const TensorInfo info{.dtype = DType::F32, .shape = shape};
    const ValueId id = builder.constant(info, Blob::own(std::vector<std::byte>(info.bytes())));
    graph.values[id].name = name;
    return id;
  };
  const ValueId x = builder.input("x", DType::F32, {{.extent = 4}, {.extent = 1}});
  const ValueId y = builder.emit(op::MatMulAttributes{}, {x, constant("weight", {1, 1})});
  const ValueId biased = builder.add(y, constant("bias", {1}));
  builder.output(builder.add(builder.mul(biased, constant("scale", {1})), constant("shift", {1})));
  model.entries.push_back({.name = "infer", .graph = std::move(graph)});
  return model;
}

TrainReport report_of(TrainOptions options) {
  options.loss.loss = Loss::MeanSquaredError;
  ModelGraph model = line();
  TrainReport report;
  const Status status = add_train_entry(model, options, &report);
  EXPECT_TRUE(status.ok()) << status.message();
  return report;
}

TEST(Trainable, SingleValuesThatAreWeights) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(report_of({}).trained, (Names{"weight", "bias"}));
  const TrainReport known = report_of({.known = {.parameters = {"scale"}, .single = {"shift"}}});
  EXPECT_EQ(known.trained, (Names{"weight", "bias", "scale"}));
  EXPECT_EQ(known.single, Names{"shift"});
  EXPECT_EQ(report_of({.trainable = {"*"}}).trained, (Names{"weight", "bias"}));
  EXPECT_EQ(report_of({.trainable = {"*", "shift"}}).trained, (Names{"weight", "bias", "shift"}));
}

TEST(Trainable, WithoutWeightsItSaysWhatCouldBeNamed) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = model.entries[0].graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = 4}});
  const float two = 2;
  const ValueId factor =
      builder.constant({.dtype = DType::F32, .shape = {1}}, Blob::copy_of(&two, sizeof two));
  graph[factor].name = "factor";
  builder.output(builder.mul(x, factor));
  TrainOptions options;
  options.loss.loss = Loss::MeanSquaredError;
  options.known.single = {"factor"};
  const Status status = add_train_entry(model, options, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("has no f32, f16 or bf16 weights"), std::string::npos) << status.message();
  EXPECT_TRUE(status.message().ends_with("name: factor")) << status.message();
}

TEST(Trainable, BuffersAreFrozenUnlessNamed) {
  using Names = std::vector<std::string>;
  const KnownWeights known{.buffers = {"weight", "scale"}};
  const TrainReport report = report_of({.known = known});
  EXPECT_EQ(report.trained, Names{"bias"});
  EXPECT_EQ(report.frozen, Names{"weight"});
  EXPECT_EQ(report.frozen_buffers, Names{"weight"});
  EXPECT_EQ(report_of({.trainable = {"*"}, .known = known}).trained, Names{"bias"});
  EXPECT_EQ(report_of({.trainable = {"*", "scale"}, .known = known}).trained, (Names{"bias", "scale"}));
}

TEST(Trainable, AdaptersFreezeAllElse) {
  const LoraOptions lora{.rank = 4, .targets = {"layer4.1.conv2.*"}};
  const ModelGraph model = trained("resnet18", {}, &lora);
  size_t weight_gradients = 0;
  for (OpKind kind : kinds_of(*model.entry("train_step"))) {
    EXPECT_NE(kind, OpKind::BatchNormTrain);
    weight_gradients += kind == OpKind::ConvWeightGrad;
  }
  EXPECT_EQ(weight_gradients, 2u);  // of A and of B
  for (const State& state : model.states) EXPECT_NE(state.name.find("lora"), std::string::npos) << state.name;
}

TEST(Trainable, WideWeightsAreFrozenOrRefusedByName) {
  ModelGraph model;
  Graph graph;
  Builder builder(graph);
  ValueId y = builder.input("x", DType::F32, {{.extent = 2}, {.extent = 3}});
  for (const auto& [name, dtype] :
       {std::pair("full", DType::F32), std::pair("narrow", DType::F16), std::pair("wide", DType::F64)}) {
    const TensorInfo info{.dtype = dtype, .shape = {3, 3}};
    const ValueId weight = builder.constant(info, Blob::own(std::vector<std::byte>(info.bytes())));
    graph.values[weight].name = name;
    y = builder.emit(op::MatMulAttributes{},
                     {y, dtype == DType::F32 ? weight : builder.cast(weight, DType::F32)});
  }
  builder.output(y);
  model.entries.push_back({.name = "infer", .graph = std::move(graph)});
  TrainOptions options;
  options.loss.loss = Loss::MeanSquaredError;
  ModelGraph all = model;
  TrainReport report;
  const Status trained = add_train_entry(all, options, &report);
  ASSERT_TRUE(trained.ok()) << trained.message();
  EXPECT_EQ(report.trained, (std::vector<std::string>{"full", "narrow"}));
  EXPECT_EQ(report.frozen, std::vector<std::string>{"wide"});
  options.trainable = {"w*"};
  const Status refused = add_train_entry(model, options, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find("not wide (f64)"), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace librt::compiler
