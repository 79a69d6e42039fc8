// Weights exported to an ONNX file: every element returns to where the importer read it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>

#include "runtime/ops/evaluate.h"
#include "tests/unit/model_support.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/onnx/export.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

void add_weight(rt_onnx::TensorProto& tensor, const std::string& name, std::vector<int64_t> dims, float first,
                bool raw) {
  tensor.set_name(name);
  tensor.set_data_type(1);
  int64_t count = 1;
  for (int64_t extent : dims) {
    tensor.add_dims(extent);
    count *= extent;
  }
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  if (raw)
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  else
    for (float value : values) tensor.add_float_data(value);
}

rt_onnx::NodeProto& add_node(rt_onnx::GraphProto& graph, const std::string& op,
                             std::vector<std::string> inputs, const std::string& output) {
  auto* node = graph.add_node();
  node->set_op_type(op);
  for (const auto& name : inputs) node->add_input(name);
  node->add_output(output);
  return *node;
}

// Conv with equal extents everywhere, BatchNormalization, a Constant node as a weight, Gemm.
rt_onnx::ModelProto sample() {
  rt_onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  auto* input = graph.add_input();
  input->set_name("x");
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(1);
  type->mutable_shape()->add_dim()->set_dim_param("batch");
  for (int64_t extent : {3, 5, 5}) type->mutable_shape()->add_dim()->set_dim_value(extent);
  add_weight(*graph.add_initializer(), "conv.weight", {3, 3, 3, 3}, 0.5f, true);
  float first = 1;
  for (const char* name : {"bn.scale", "bn.bias", "bn.mean", "bn.var"})
    add_weight(*graph.add_initializer(), name, {3}, first += 10, false);
  add_weight(*graph.add_initializer(), "fc.bias", {2}, 70, false);
  add_node(graph, "Conv", {"x", "conv.weight"}, "c");
  add_node(graph, "BatchNormalization", {"c", "bn.scale", "bn.bias", "bn.mean", "bn.var"}, "b");
  add_node(graph, "Flatten", {"b"}, "f");
  auto& constant = add_node(graph, "Constant", {}, "fc.weight");
  auto* value = constant.add_attribute();
  value->set_name("value");
  value->set_type(4);
  add_weight(*value->mutable_t(), "", {27, 2}, 100, true);
  add_node(graph, "Gemm", {"f", "fc.weight", "fc.bias"}, "y");
  graph.add_output()->set_name("y");
  return model;
}

std::vector<float> elements_of(const rt_onnx::TensorProto& tensor) {
  if (!tensor.has_raw_data()) return {tensor.float_data().begin(), tensor.float_data().end()};
  std::vector<float> values(tensor.raw_data().size() / sizeof(float));
  std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
  return values;
}

TEST(Exporter, PutsWeightsWhereTheyCameFrom) {
  const testing::TemporaryFolder folder;
  rt_onnx::ModelProto model = sample();
  const std::string source = folder.path("model.onnx");
  std::ofstream(source, std::ios::binary) << model.SerializeAsString();
  ImportReport report;
  auto imported = import_onnx(source, {}, report);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(compiler::add_train_entry(*imported, {}, nullptr).ok());
  // "Training": every element e becomes 1000 - e.
  size_t weights = 0;
  for (State& state : imported->states) {
    if (state.kind != StateKind::Parameter && state.kind != StateKind::Statistic) continue;
    ++weights;
    std::vector<float> values(state.initial.size / sizeof(float));
    std::memcpy(values.data(), state.initial.data, state.initial.size);
    for (float& value : values) value = 1000 - value;
    state.initial = testing::blob_of_values(values);
  }
  EXPECT_EQ(weights, 7u);
  const std::string target = folder.path("trained.onnx");
  const auto written = export_weights(source, imported->states, target);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(written->count, 7u);
  EXPECT_EQ(written->file, "");

  rt_onnx::ModelProto trained;
  std::ifstream in(target, std::ios::binary);
  ASSERT_TRUE(trained.ParseFromIstream(&in));
  const auto compare = [](const rt_onnx::TensorProto& before, const rt_onnx::TensorProto& after) {
    std::vector<float> expected = elements_of(before);
    for (float& value : expected) value = 1000 - value;
    EXPECT_EQ(elements_of(after), expected) << before.name();
    EXPECT_TRUE(
        std::equal(before.dims().begin(), before.dims().end(), after.dims().begin(), after.dims().end()));
  };
  for (int i = 0; i < model.graph().initializer_size(); ++i)
    compare(model.graph().initializer(i), trained.graph().initializer(i));
  compare(model.graph().node(3).attribute(0).t(), trained.graph().node(3).attribute(0).t());
}

// Training uses each layer's own momentum, unless one is asked for.
TEST(Exporter, BatchNormalizationsKeepTheirMomentum) {
  const testing::TemporaryFolder folder;
  for (const bool in_training_mode : {false, true}) {
    rt_onnx::ModelProto model = sample();
    model.mutable_opset_import(0)->set_version(15);
    const auto attribute = [&](const char* name) {
      auto* added = model.mutable_graph()->mutable_node(1)->add_attribute();
      added->set_name(name);
      return added;
    };
    auto* momentum = attribute("momentum");
    momentum->set_type(1);
    momentum->set_f(0.75f);
    if (in_training_mode) {
      auto* mode = attribute("training_mode");
      mode->set_type(2);
      mode->set_i(1);
    }
    const std::string source = folder.path("model.onnx");
    std::ofstream(source, std::ios::binary) << model.SerializeAsString();
    for (const std::optional<float> asked : {std::optional<float>(), std::optional<float>(0.5f)}) {
      ImportReport report;
      auto imported = import_onnx(source, {}, report);
      ASSERT_TRUE(imported.ok()) << imported.status().message();
      ASSERT_TRUE(compiler::add_train_entry(*imported, {.batch_norm_momentum = asked}, nullptr).ok());
      const auto found = [&](const char* entry, OpKind kind) {
        const auto& nodes = imported->entry(entry)->nodes;
        return std::find_if(nodes.begin(), nodes.end(),
                            [&](const Node& node) { return node.kind() == kind; });
      };
      const auto infer = found("infer", OpKind::BatchNorm),
                 train = found("train_step", OpKind::BatchNormTrain);
      ASSERT_NE(infer, imported->entry("infer")->nodes.end());
      ASSERT_NE(train, imported->entry("train_step")->nodes.end());
      EXPECT_EQ(infer->as<op::BatchNormAttributes>().momentum, 0.75f);
      EXPECT_EQ(train->as<op::BatchNormTrainAttributes>().momentum, asked.value_or(0.75f));
    }
  }
}

std::string external(const rt_onnx::TensorProto& tensor, const std::string& key) {
  for (const auto& entry : tensor.external_data())
    if (entry.key() == key) return entry.value();
  return {};
}

/// y = x a + b in a Loop's body that adds a constant of its own: three initializers of 1 KiB and more.
rt_onnx::ModelProto large() {
  rt_onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  const auto input = [](rt_onnx::GraphProto& of, const std::string& name, int type_of,
                        std::vector<int64_t> dims) {
    auto* added = of.add_input();
    added->set_name(name);
    auto* type = added->mutable_type()->mutable_tensor_type();
    type->set_elem_type(type_of);
    for (const int64_t extent : dims) type->mutable_shape()->add_dim()->set_dim_value(extent);
    type->mutable_shape();
  };
  input(graph, "x", 1, {2, 16});
  input(graph, "trips", 7, {});
  add_weight(*graph.add_initializer(), "a", {16, 300}, 1, true);
  add_weight(*graph.add_initializer(), "b", {300}, 5, false);
  add_weight(*graph.add_initializer(), "small", {1}, 9, true);
  add_node(graph, "MatMul", {"x", "a"}, "xa");
  add_node(graph, "Add", {"xa", "b"}, "xab");
  add_node(graph, "Add", {"xab", "small"}, "first");
  auto& loop = add_node(graph, "Loop", {"trips", "", "first"}, "y");
  auto* attribute = loop.add_attribute();
  attribute->set_name("body");
  attribute->set_type(5);
  rt_onnx::GraphProto& body = *attribute->mutable_g();
  body.set_name("body");
  input(body, "i", 7, {});
  input(body, "go", 9, {});
  input(body, "s", 1, {2, 300});
  add_weight(*body.add_initializer(), "inner", {2, 300}, 0.5f, true);
  add_node(body, "Identity", {"go"}, "again");
  add_node(body, "Add", {"s", "inner"}, "next");
  body.add_output()->set_name("again");
  body.add_output()->set_name("next");
  graph.add_output()->set_name("y");
  return model;
}

rt_onnx::ModelProto parsed(const std::string& path) {
  rt_onnx::ModelProto model;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(model.ParseFromIstream(&in)) << path;
  return model;
}

std::string evaluated(const std::string& path) {
  ImportReport report;
  auto model = import_onnx(path, {}, report);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  ops::HostTensor x({.dtype = DType::F32, .shape = {2, 16}}), trips({.dtype = DType::I64, .shape = {}});
  for (int i = 0; i < 32; ++i) reinterpret_cast<float*>(x.bytes.data())[i] = static_cast<float>(i - 9);
  *reinterpret_cast<int64_t*>(trips.bytes.data()) = 3;
  const std::vector<ConstTensorView> views = {x.view(), trips.view()};
  const auto outputs = ops::evaluate_graph(model->entries[0].graph, views);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return {};
  return {reinterpret_cast<const char*>((*outputs)[0].bytes.data()), (*outputs)[0].bytes.size()};
}

TEST(Exporter, WritesWeightsIntoASecondFile) {
  const testing::TemporaryFolder folder;
  const std::string source = folder.path("model.onnx"), target = folder.path("two.onnx");
  std::ofstream(source, std::ios::binary) << large().SerializeAsString();
  const auto written = export_weights(source, {}, target, {}, true);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(written->file, target + ".data");
  EXPECT_EQ(folder.list(), (std::vector<std::string>{"model.onnx", "two.onnx", "two.onnx.data"}));
  const rt_onnx::ModelProto two = parsed(target);
  const auto& weights = two.graph().initializer();
  const rt_onnx::TensorProto& inner = two.graph().node(3).attribute(0).g().initializer(0);
  for (const rt_onnx::TensorProto* each : {&weights[0], &inner}) {
    EXPECT_EQ(each->data_location(), 1) << each->name();
    EXPECT_FALSE(each->has_raw_data()) << each->name();
    EXPECT_EQ(external(*each, "location"), "two.onnx.data");
    EXPECT_EQ(std::stoul(external(*each, "offset")) % 4096, 0u);
  }
  EXPECT_EQ(external(weights[0], "length"), std::to_string(16 * 300 * 4));
  EXPECT_EQ(weights[1].float_data_size(), 300);  // not raw: it stays as it is
  EXPECT_TRUE(weights[2].has_raw_data());        // small
  EXPECT_EQ(evaluated(target), evaluated(source));

  // Out of a model with external data: it stays in its folder, moves into the message of one elsewhere, and
  // into the other second file where there is one.
  std::filesystem::create_directory(folder.path("other"));
  const std::string again = folder.path("again.onnx"), inside = folder.path("other/inside.onnx"),
                    apart = folder.path("other/apart.onnx");
  EXPECT_EQ(export_weights(target, {}, again)->file, "");
  EXPECT_EQ(external(parsed(again).graph().initializer(0), "location"), "two.onnx.data");
  EXPECT_EQ(export_weights(target, {}, inside)->file, "");
  EXPECT_EQ(parsed(inside).graph().initializer(0).data_location(), 0);
  EXPECT_EQ(export_weights(target, {}, apart, {}, true)->file, apart + ".data");
  for (const std::string& each : {again, inside, apart})
    EXPECT_EQ(evaluated(each), evaluated(source)) << each;
  EXPECT_FALSE(export_weights(target, {}, "/dev/null", {}, true).ok());
}

TEST(Exporter, WritesNoSecondFileForSmallWeights) {
  const testing::TemporaryFolder folder;
  const std::string source = folder.path("model.onnx"), target = folder.path("one.onnx");
  std::ofstream(source, std::ios::binary) << sample().SerializeAsString();
  const auto written = export_weights(source, {}, target, {}, true);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(written->file, "");
  EXPECT_EQ(folder.list(), (std::vector<std::string>{"model.onnx", "one.onnx"}));
}

TEST(Exporter, RefusesUnsupportedStates) {
  const testing::TemporaryFolder folder;
  const std::string source = folder.path("model.onnx");
  std::ofstream(source, std::ios::binary) << sample().SerializeAsString();
  const auto message = [&](State state) {
    const auto result = export_weights(source, {std::move(state)}, folder.path("out.onnx"));
    return result.ok() ? std::string() : result.status().message();
  };
  const Blob three = testing::blob_of_values<float>({1, 2, 3});
  EXPECT_NE(message({.name = "other", .info = {DType::F32, {3}}, .initial = three}).find("'other'"),
            std::string::npos);
  EXPECT_NE(message({.name = "fc.bias", .info = {DType::F32, {3}}, .initial = three}).find("2 elements"),
            std::string::npos);
  EXPECT_EQ(folder.list(), std::vector<std::string>{"model.onnx"});
  // Optimizer state is not a weight.
  EXPECT_EQ(
      message({.name = "other", .info = {DType::F32, {3}}, .kind = StateKind::Optimizer, .initial = three}),
      "");
}

}  // namespace
}  // namespace librt::onnx
