// The importer's graph rules, on models built from protobuf messages.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/ops/evaluate.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

class Model {
 public:
  Model() {
    proto.set_ir_version(8);
    import("", 13);
  }
  void import(const std::string& domain, int64_t version) {
    auto* opset = proto.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  rt_onnx::GraphProto& graph() { return *proto.mutable_graph(); }
  // A dim below -1 stands for the symbol "batch"; -1 has no name.
  void value(rt_onnx::ValueInfoProto& info, const std::string& name, std::vector<int64_t> dims) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(1);
    tensor->mutable_shape();
    for (int64_t extent : dims) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (extent < -1)
        dim->set_dim_param("batch");
      else
        dim->set_dim_value(extent);
    }
  }
  void input(const std::string& name, std::vector<int64_t> dims) { value(*graph().add_input(), name, dims); }
  void output(const std::string& name) { graph().add_output()->set_name(name); }
  rt_onnx::TensorProto& initializer(const std::string& name, std::vector<float> numbers) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(1);
    tensor->add_dims(static_cast<int64_t>(numbers.size()));
    for (float number : numbers) tensor->add_float_data(number);
    return *tensor;
  }
  rt_onnx::NodeProto& node(const std::string& op, std::vector<std::string> inputs,
                           std::vector<std::string> outputs) {
    return node_in(*graph().add_node(), op, inputs, outputs);
  }
  static rt_onnx::NodeProto& node_in(rt_onnx::NodeProto& node, const std::string& op,
                                     const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs) {
    node.set_op_type(op);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    return node;
  }
  Result<ModelGraph> convert(const ImportOptions& options = {}) {
    const std::string bytes = proto.SerializeAsString();
    report = {};
    return import_onnx_bytes(std::as_bytes(std::span(bytes)), options, report);
  }

  rt_onnx::ModelProto proto;
  ImportReport report;
};

std::string error_of(Model& model, const ImportOptions& options = {}) {
  const auto result = model.convert(options);
  return result.ok() ? "" : result.status().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> run(const ModelGraph& model, std::vector<float> x) {
  const ConstTensorView input{x.data(), {.dtype = DType::F32, .shape = {static_cast<int64_t>(x.size())}}};
  const auto result = ops::evaluate_graph(model.entries[0].graph, {{input}});
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result.ok()) return {};
  std::vector<float> y(result->front().bytes.size() / sizeof(float));
  std::memcpy(y.data(), result->front().bytes.data(), result->front().bytes.size());
  return y;
}

TEST(Importer, SortsNodes) {
  Model model;
  model.input("x", {3});
  model.output("z");
  model.node("Relu", {"y"}, {"z"});
  model.node("Neg", {"x"}, {"y"});
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(run(*graph, {1, -2, 3}), (std::vector<float>{0, 2, 0}));
}

TEST(Importer, NamesACycle) {
  Model model;
  model.input("x", {3});
  model.output("a");
  model.node("Add", {"x", "b"}, {"a"}).set_name("first");
  model.node("Neg", {"a"}, {"b"}).set_name("second");
  const std::string error = error_of(model);
  EXPECT_TRUE(contains(error, "cycle") && contains(error, "first") && contains(error, "second")) << error;
}

TEST(Importer, ReportsNamesDefinedTwiceAndMissingOnes) {
  Model twice;
  twice.input("x", {3});
  twice.output("y");
  twice.node("Neg", {"x"}, {"y"});
  twice.node("Abs", {"x"}, {"y"});
  EXPECT_TRUE(contains(error_of(twice), "'y' is produced by")) << error_of(twice);

  Model missing;
  missing.input("x", {3});
  missing.output("z");
  missing.node("Add", {"x", "nowhere"}, {"y"});
  missing.node("Add", {"y", "elsewhere"}, {"z"});
  const std::string error = error_of(missing);
  EXPECT_TRUE(contains(error, "nowhere") && contains(error, "elsewhere")) << error;
}

TEST(Importer, AnOutputListedTwiceIsTwoOutputs) {
  Model model;
  model.input("x", {2});
  model.node("Relu", {"x"}, {"y"});
  for (int i = 0; i < 3; ++i) model.output("y");
  const auto made = model.convert();
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Graph& graph = made->entries[0].graph;
  ASSERT_EQ(graph.outputs.size(), 3U);
  EXPECT_EQ(graph[graph.outputs[0]].name, "y");
  EXPECT_EQ(graph[graph.outputs[1]].name, "y_2");
  EXPECT_EQ(graph[graph.outputs[2]].name, "y_3");
  EXPECT_EQ(model.report.warnings.size(), 2U);
}

TEST(Importer, InputsThatAreInitializersAreConstants) {
  Model model;
  model.input("x", {2});
  model.input("w", {2});
  model.initializer("w", {10, 20});
  model.output("y");
  model.node("Add", {"x", "w"}, {"y"});
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->entries[0].graph.inputs.size(), 1u);
  EXPECT_EQ(run(*graph, {1, 2}), (std::vector<float>{11, 22}));
}

TEST(Importer, KeepsSymbolsAndNamesUnknownDimensions) {
  Model model;
  model.input("x", {-2, 3, -1});
  model.output("y");
  model.node("Relu", {"x"}, {"y"});
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Graph& infer = graph->entries[0].graph;
  ASSERT_EQ(infer.symbols.size(), 2u);
  EXPECT_EQ(infer.symbols[0].name, "batch");
  EXPECT_EQ(infer.symbols[1].name, "x_2");
  const Value& y = infer[infer.outputs[0]];
  EXPECT_EQ(y.name, "y");
  EXPECT_EQ(y.dims[0].symbol, 0);
  EXPECT_EQ(y.dims[1].extent, 3);

  ImportOptions options;
  options.dims["batch"] = 8;
  const auto bound = model.convert(options);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->entries[0].graph[bound->entries[0].graph.inputs[0]].dims[0].extent, 8);
  options.dims["depth"] = 1;
  EXPECT_TRUE(contains(error_of(model, options), "batch, x_2")) << error_of(model, options);
}

TEST(Importer, OpensABatchOfOne) {
  Model model;
  model.input("x", {1, 3});
  model.output("y");
  model.node("Relu", {"x"}, {"y"});
  ImportOptions options;
  options.open_batch = true;
  const auto opened = model.convert(options);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Graph& infer = opened->entries[0].graph;
  EXPECT_EQ(infer.symbols[static_cast<size_t>(infer[infer.inputs[0]].dims[0].symbol)].name, "batch");
  EXPECT_LT(infer[infer.outputs[0]].dims[0].extent, 0);

  options.dims["batch"] = 4;  // treated like any other name
  EXPECT_EQ(model.convert(options)->entries[0].graph.values[0].dims[0].extent, 4);
  options.dims.clear();
  Model two;
  two.input("x", {2, 3});
  two.output("y");
  two.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(contains(error_of(two, options), "no input has a first axis of 1")) << error_of(two, options);
  Model sum;
  sum.input("x", {1, 3});
  sum.output("y");
  sum.node("ReduceMax", {"x"}, {"y"});
  EXPECT_TRUE(contains(error_of(sum, options), "the model fixes the batch")) << error_of(sum, options);
}

std::vector<int64_t> extents_of(const Graph& graph, ValueId id) {
  std::vector<int64_t> extents;
  for (const Dim& dim : graph[id].dims) extents.push_back(dim.extent);
  return extents;
}

TEST(Importer, SymbolsBecomeWhatANodeDemands) {
  Model model;
  model.input("x", {-1, -1});
  model.input("y", {-1, -1});
  model.initializer("w", std::vector<float>(12)).clear_dims();
  for (const int64_t extent : {4, 3}) model.graph().mutable_initializer(0)->add_dims(extent);
  model.node("MatMul", {"x", "y"}, {"p"});
  model.node("MatMul", {"p", "w"}, {"z"});
  model.output("z");
  const auto result = model.convert();
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Graph& graph = result->entries[0].graph;
  EXPECT_EQ(extents_of(graph, graph.inputs[1]), (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(extents_of(graph, graph.outputs[0]), (std::vector<int64_t>{-1, 3}));
  EXPECT_TRUE(graph[graph.inputs[0]].dims[1] == graph[graph.inputs[1]].dims[0]);
  EXPECT_EQ(graph.symbols.size(), 2u);
  ASSERT_EQ(model.report.warnings.size(), 2u);
  EXPECT_TRUE(contains(model.report.warnings[0], "'y_0' is 'x_1': node 'MatMul_0'"))
      << model.report.warnings[0];
  EXPECT_TRUE(contains(model.report.warnings[1], "'y_1' is 4: node 'MatMul_1'")) << model.report.warnings[1];
}

TEST(Importer, AnOpsetThatIsNotKnownYetIsAWarning) {
  for (const int64_t opset : {26, 27}) {
    Model model;
    model.proto.mutable_opset_import(0)->set_version(opset);
    model.input("x", {2});
    model.node("Relu", {"x"}, {"y"});
    model.output("y");
    const auto result = model.convert();
    ASSERT_TRUE(result.ok()) << result.status().message();
    ASSERT_EQ(model.report.warnings.size(), opset > 26 ? 1u : 0u);
    for (const std::string& warning : model.report.warnings)
      EXPECT_TRUE(contains(warning, "opset 27, the newest known one is 26")) << warning;
  }
}

TEST(Importer, WhatMayBroadcastStaysOpen) {
  Model model;
  model.input("x", {-1, 5});
  model.input("y", {3, -1});
  model.node("Add", {"x", "y"}, {"z"});
  model.output("z");
  const auto result = model.convert();
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Graph& graph = result->entries[0].graph;
  EXPECT_EQ(extents_of(graph, graph.inputs[0]), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(extents_of(graph, graph.inputs[1]), (std::vector<int64_t>{3, -1}));
  EXPECT_TRUE(model.report.warnings.empty());
}

TEST(Importer, ASliceAfterShortProbesIsNotEmpty) {
  Model model;
  model.input("x", {-1});
  auto& sizes = *model.graph().add_initializer();
  sizes.set_name("sizes");
  sizes.set_data_type(7);
  sizes.add_dims(2);
  for (const int64_t size : {40, 2}) sizes.add_int64_data(size);
  model.node("Split", {"x", "sizes"}, {"a", "b"});
  model.output("b");
  const auto result = model.convert();
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Graph& graph = result->entries[0].graph;
  EXPECT_EQ(extents_of(graph, graph.outputs[0]), (std::vector<int64_t>{2}));
}

TEST(Importer, ListsAllUnsupportedNodes) {
  Model model;
  model.input("x", {3});
  model.output("z");
  model.import("com.example", 1);
  model.node("Frobnicate", {"x"}, {"a"}).set_name("one");
  model.node("Relu", {"a"}, {"b"});
  auto& other = model.node("Whatever", {"b"}, {"z"});
  other.set_name("two");
  other.set_domain("com.example");
  const auto result = model.convert();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::Unsupported);
  ASSERT_EQ(model.report.unsupported.size(), 2u);
  EXPECT_EQ(model.report.unsupported[0].name, "one");
  EXPECT_EQ(model.report.unsupported[0].dtype, "f32");
  EXPECT_EQ(model.report.unsupported[1].domain, "com.example");
  EXPECT_FALSE(model.report.unsupported[1].help.empty());
}

TEST(Importer, RefusesAttributesItDoesNotKnow) {
  Model model;
  model.input("x", {3});
  model.output("y");
  auto* attribute = model.node("Relu", {"x"}, {"y"}).add_attribute();
  attribute->set_name("surprise");
  attribute->set_type(2);
  attribute->set_i(1);
  ASSERT_FALSE(model.convert().ok());
  ASSERT_EQ(model.report.unsupported.size(), 1u);
  EXPECT_TRUE(contains(model.report.unsupported[0].reason, "surprise"));
}

TEST(Importer, InlinesFunctions) {
  Model model;
  model.import("local", 1);
  model.input("x", {2});
  model.output("y");
  auto& call = model.node("Scale", {"x"}, {"y"});
  call.set_domain("local");
  auto* given = call.add_attribute();
  given->set_name("factor");
  given->set_type(1);
  given->set_f(3);
  auto* function = model.proto.add_functions();
  function->set_name("Scale");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("c");
  function->add_attribute("factor");
  auto* opset = function->add_opset_import();
  opset->set_domain("");
  opset->set_version(13);
  auto* constant = Model::node_in(*function->add_node(), "Constant", {}, {"b"}).add_attribute();
  constant->set_name("value_float");
  constant->set_ref_attr_name("factor");
  constant->set_type(1);
  Model::node_in(*function->add_node(), "Mul", {"a", "b"}, {"c"});
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(run(*graph, {1, 2}), (std::vector<float>{3, 6}));
}

TEST(Importer, StopsFunctionsThatCallThemselves) {
  Model model;
  model.import("local", 1);
  model.input("x", {2});
  model.output("y");
  model.node("Loop2", {"x"}, {"y"}).set_domain("local");
  auto* function = model.proto.add_functions();
  function->set_name("Loop2");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("c");
  Model::node_in(*function->add_node(), "Loop2", {"a"}, {"b"}).set_domain("local");
  Model::node_in(*function->add_node(), "Loop2", {"b"}, {"c"}).set_domain("local");
  EXPECT_TRUE(contains(error_of(model), "calls within each other")) << error_of(model);
}

TEST(Importer, ReadsExternalDataInsideTheFolderOnly) {
  const std::string folder = testing::TempDir() + "importer_external";
  std::filesystem::create_directories(folder + "/model");
  const float numbers[] = {0, 0, 5, 6};
  for (const char* place : {"/model/weights.bin", "/outside.bin"})
    std::ofstream(folder + place, std::ios::binary)
        .write(reinterpret_cast<const char*>(numbers), sizeof numbers);
  Model model;
  model.input("x", {2});
  model.output("y");
  auto& weight = model.initializer("w", {});
  weight.set_dims(0, 2);
  weight.set_data_location(1);
  const auto entry = [&](const char* key, const char* value) {
    auto* pair = weight.add_external_data();
    pair->set_key(key);
    pair->set_value(value);
  };
  entry("location", "weights.bin");
  entry("offset", "8");
  model.node("Add", {"x", "w"}, {"y"});
  ImportOptions options;
  options.external_folder = folder + "/model";
  const auto graph = model.convert(options);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(run(*graph, {1, 1}), (std::vector<float>{6, 7}));
  weight.mutable_external_data(1)->set_value("12");
  EXPECT_TRUE(contains(error_of(model, options), "the file has 16")) << error_of(model, options);
  weight.mutable_external_data(0)->set_value("../outside.bin");
  EXPECT_TRUE(contains(error_of(model, options), "outside the model's folder")) << error_of(model, options);
}

TEST(Importer, SurvivesDamagedBytes) {
  Model model;
  model.input("x", {2});
  model.initializer("w", {1, 2});
  model.output("y");
  model.node("Add", {"x", "w"}, {"y"});
  std::string bytes = model.proto.SerializeAsString();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      ImportReport report;
      (void)import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
    }
}

// Protocol Buffers read 100 messages within each other.
TEST(Importer, DeepGraphsAreNamedInTheError) {
  rt_onnx::GraphProto graph;
  for (int depth = 0; depth < 40; ++depth) {
    rt_onnx::GraphProto outer;
    outer.add_node()->add_attribute()->mutable_g()->Swap(&graph);
    graph.Swap(&outer);
  }
  rt_onnx::ModelProto model;
  model.mutable_graph()->Swap(&graph);
  const std::string bytes = model.SerializeAsString();
  ImportReport report;
  const auto imported = import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
  ASSERT_FALSE(imported.ok());
  EXPECT_TRUE(contains(imported.status().message(), "graphs within graphs more than 30 deep"))
      << imported.status().message();
}

TEST(TensorProto, TypedDataMustFitTheElements) {
  struct Case {
    int data_type;
    int32_t held;
    const char* error;  ///< nullptr: is read
    uint16_t bits;      ///< as which
  };
  constexpr int kU8 = 2, kI8 = 3, kU16 = 4, kI16 = 5, kBool = 9, kHalf = 10, kBrain = 16;
  for (const Case& each : {Case{kI8, 127, nullptr, 0x7f},
                           {kI8, -128, nullptr, 0x80},
                           {kI8, 1000, "element 0: expected a value of i8, found 1000", 0},
                           {kI8, 128, "expected a value of i8, found 128", 0},
                           {kU8, 255, nullptr, 255},
                           {kU8, -1, "expected a value of u8, found -1", 0},
                           {kU16, 65536, "expected a value of u16", 0},
                           {kI16, -32768, nullptr, 0x8000},
                           {kI16, 32768, "expected a value of i16", 0},
                           {kBool, 1 << 20, nullptr, 1},
                           {kBool, 256, nullptr, 1},
                           {kBool, 0, nullptr, 0},
                           {kHalf, 0xfc00, nullptr, 0xfc00},
                           {kHalf, -1024, nullptr, 0xfc00},
                           {kHalf, 65536, "expected a value of f16", 0},
                           {kBrain, -32769, "expected a value of bf16", 0}}) {
    rt_onnx::TensorProto proto;
    proto.set_data_type(each.data_type);
    proto.add_dims(1);
    proto.add_int32_data(each.held);
    std::string error;
    const std::string bytes = proto.SerializeAsString();
    const auto array = tools::parse_tensor_proto(std::as_bytes(std::span(bytes)), error);
    ASSERT_EQ(array.has_value(), each.error == nullptr)
        << each.data_type << " " << each.held << ": " << error;
    if (!array) {
      EXPECT_TRUE(contains(error, each.error)) << error;
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, array->bytes.data(), array->bytes.size());
    EXPECT_EQ(bits, each.bits) << each.data_type << " " << each.held;
  }
}

TEST(TensorProto, ReadsTypedAndRawData) {
  rt_onnx::TensorProto half;
  half.set_data_type(10);
  half.add_dims(2);
  half.add_int32_data(0x3c00);
  half.add_int32_data(0xc000);
  std::string error;
  const std::string bytes = half.SerializeAsString();
  const auto array = tools::parse_tensor_proto(std::as_bytes(std::span(bytes)), error);
  ASSERT_TRUE(array) << error;
  EXPECT_EQ(array->type, DType::F16);
  uint16_t bits[2];
  std::memcpy(bits, array->bytes.data(), sizeof bits);
  EXPECT_EQ(bits[0], 0x3c00);
  EXPECT_EQ(bits[1], 0xc000);

  half.set_dims(0, int64_t{1} << 50);
  const std::string huge = half.SerializeAsString();
  EXPECT_FALSE(tools::parse_tensor_proto(std::as_bytes(std::span(huge)), error));
  EXPECT_TRUE(contains(error, "the message holds 4")) << error;

  const std::string again = tools::format_tensor_proto(*array);
  const auto back = tools::parse_tensor_proto(std::as_bytes(std::span(again)), error);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->bytes, array->bytes);
}

}  // namespace
}  // namespace librt::onnx
