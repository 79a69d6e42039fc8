// Graphs written as ONNX: control flow, names, the order of axes, states, and what is refused. Operators:
// tests/onnx_export.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/geometry/custom.h"
#include "tests/support/importer_model.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/zoo/zoo.h"
#include "tools/onnx/export/model.h"

namespace librt::onnx {
namespace {

using test::ImporterModel;
using Tensors = std::vector<ops::HostTensor>;

template <class T>
ops::HostTensor tensor(DType type, Shape shape, const std::vector<T>& values) {
  ops::HostTensor made({.dtype = type, .shape = shape});
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

Tensors evaluate(const Graph& graph, const Tensors& inputs) {
  std::vector<ConstTensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  auto outputs = ops::evaluate_graph(graph, views);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move(*outputs) : Tensors();
}

rt_onnx::ModelProto written(const ModelGraph& model, WrittenModel& report) {
  rt_onnx::ModelProto proto;
  const auto bytes = onnx_bytes(model, report);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_TRUE(bytes.ok() && proto.ParseFromString(*bytes));
  return proto;
}

ModelGraph read_back(const rt_onnx::ModelProto& proto) {
  ImportReport report;
  const std::string bytes = proto.SerializeAsString();
  auto model = import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(*model) : ModelGraph();
}

/// sum = x; for i < trips: sum += flag ? -twice : x, with twice = x + x outside of the loop; sums: each sum.
ImporterModel nested() {
  ImporterModel model(16);
  model.input("x", {"n"});
  model.input("trips", {}, ImporterModel::kInt64);
  model.input("flag", {}, ImporterModel::kBool);
  model.node("Add", {"x", "x"}, {"twice"});
  auto& loop = model.node("Loop", {"trips", "", "x"}, {"sum", "sums"});
  rt_onnx::GraphProto& body = ImporterModel::body(loop, "body");
  for (const char* name : {"i", "go", "s"}) ImporterModel::input_of(body, name);
  auto& branch = ImporterModel::node_of(body, "If", {"flag"}, {"step"});
  ImporterModel::node_of(ImporterModel::body(branch, "then_branch"), "Neg", {"twice"}, {"minus"});
  branch.mutable_attribute(0)->mutable_g()->add_output()->set_name("minus");
  ImporterModel::node_of(ImporterModel::body(branch, "else_branch"), "Identity", {"x"}, {"same"});
  branch.mutable_attribute(1)->mutable_g()->add_output()->set_name("same");
  ImporterModel::node_of(body, "Add", {"s", "step"}, {"next"});
  for (const char* name : {"go", "next", "next"}) body.add_output()->set_name(name);
  model.output("sum");
  model.output("sums");
  return model;
}

TEST(GraphExport, LoopsAndBranchesReadWhatIsAroundThem) {
  auto model = nested().convert();
  ASSERT_TRUE(model.ok()) << model.status().message();
  WrittenModel report;
  const ModelGraph back = read_back(written(*model, report));
  ASSERT_FALSE(back.entries.empty());
  for (const uint8_t flag : std::initializer_list<uint8_t>{0, 1}) {
    const Tensors inputs = {tensor<float>(DType::F32, {3}, {1, -2, 4}), tensor<int64_t>(DType::I64, {}, {2}),
                            tensor<uint8_t>(DType::Bool, {}, {flag})};
    const Tensors found = evaluate(*back.entry("infer"), inputs);
    ASSERT_EQ(found.size(), 2u);
    const float factor = flag != 0 ? -3 : 3;  // 1 + 2 (flag ? -2 : 1)
    EXPECT_EQ(test::values_of(found[0]), (std::vector<float>{factor, -2 * factor, 4 * factor}));
    EXPECT_EQ(test::values_of(found[1]).size(), 6u);
  }
}

TEST(GraphExport, KeepsNamesOfInputsAndOutputs) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = model.entries[0].graph;
  compiler::Builder builder(graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = 2}});
  const ValueId y = builder.emit(op::ReluAttributes{}, {x});
  graph[y].name = "y";
  for (const ValueId output : {y, y, x, builder.scalar(3, DType::F32)}) builder.output(output);
  graph[graph.outputs[3]].name = "y";  // a name that is taken
  WrittenModel report;
  const rt_onnx::ModelProto proto = written(model, report);
  std::vector<std::string> names;
  for (const auto& output : proto.graph().output()) names.push_back(output.name());
  ASSERT_EQ(names.size(), 4u);
  EXPECT_EQ(names[0], "y");
  EXPECT_EQ(names[2], "x");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  const Tensors found = evaluate(*read_back(proto).entry("infer"), {tensor<float>(DType::F32, {2}, {-1, 5})});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(test::values_of(found[1]), (std::vector<float>{0, 5}));
  EXPECT_EQ(test::values_of(found[2]), (std::vector<float>{-1, 5}));
  EXPECT_EQ(test::values_of(found[3]), (std::vector<float>{3}));
}

TEST(GraphExport, TransposesOnlyAtTheEndsOfConvolutions) {
  for (const char* name : {"resnet18", "mobilenet_v2"}) {
    auto model = compiler::build_zoo_model(name);
    ASSERT_TRUE(model.ok());
    ASSERT_TRUE(compiler::optimize(*model, {}, nullptr).ok());
    WrittenModel report;
    const rt_onnx::ModelProto proto = written(*model, report);
    const auto& nodes = proto.graph().node();
    const auto is_transpose = [](const auto& node) { return node.op_type() == "Transpose"; };
    EXPECT_LE(std::count_if(nodes.begin(), nodes.end(), is_transpose), 2) << name;
    EXPECT_EQ(report.opset, 20);
  }
}

/// The shape inference of others counts windows that start in the padding at the end.
TEST(GraphExport, PoolsRoundUpOnlyWhereItCounts) {
  struct {
    std::array<int64_t, 2> extents, kernel, windows;
    int64_t rounds_up;
    std::vector<int64_t> pads;
  } const kPools[] = {{{3, 4}, {1, 1}, {1, 2}, 0, {0, 0, 0, 0}},  // by steps of 3: the first drops one
                      {{4, 5}, {2, 2}, {2, 2}, 1, {0, 0, 0, 0}},
                      {{4, 3}, {2, 1}, {2, 1}, 0, {0, 0, 1, 0}}};
  for (const auto& [extents, kernel, windows, rounds_up, pads] : kPools) {
    ModelGraph model;
    model.entries.push_back({.name = "infer", .graph = {}});
    compiler::Builder builder(model.entries[0].graph);
    const ValueId x = builder.input(
        "x", DType::F32, {{.extent = 1}, {.extent = extents[0]}, {.extent = extents[1]}, {.extent = 2}});
    op::MaxPoolAttributes pool;
    pool.kernel = {kernel.begin(), kernel.end()};
    pool.strides = {3, 3};
    pool.pads = {0, 0, 0, 0};
    pool.dilations = {1, 1};
    pool.ceil_mode = true;
    const ValueId y = builder.emit(pool, {x});
    ASSERT_TRUE(builder.status().ok()) << builder.status().message();
    for (size_t i = 0; i < 2; ++i) ASSERT_EQ(builder.value(y).dims[i + 1].extent, windows[i]);
    builder.output(y);
    WrittenModel report;
    const rt_onnx::ModelProto proto = written(model, report);
    std::vector<int64_t> modes, written_pads;
    for (const auto& node : proto.graph().node())
      for (const auto& attribute : node.attribute()) {
        if (attribute.name() == "ceil_mode") modes.push_back(attribute.i());
        if (attribute.name() == "pads") written_pads = {attribute.ints().begin(), attribute.ints().end()};
      }
    EXPECT_EQ(modes, (std::vector<int64_t>{rounds_up}));
    EXPECT_EQ(written_pads, pads);
    const ModelGraph back = read_back(proto);
    ASSERT_FALSE(back.entries.empty());
    const Graph& graph = back.entries[0].graph;
    EXPECT_EQ(graph[graph.outputs[0]].info().shape, builder.value(y).info().shape);
  }
}

/// total += x; y = total * scale, with `total` updated and `scale` not.
ModelGraph with_states() {
  ModelGraph model;
  const float scale = 2;
  model.states.push_back({.name = "total", .info = {.dtype = DType::F32, .shape = {2}}, .initial = {}});
  model.states.push_back({.name = "scale",
                          .info = {.dtype = DType::F32, .shape = {}},
                          .initial = Blob::copy_of(&scale, sizeof scale)});
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = model.entries[0].graph;
  compiler::Builder builder(graph, &model.states);
  const ValueId x = builder.input("x", DType::F32, {{.extent = 2}});
  const ValueId total = builder.state("total", 0, model.states[0].info);
  const ValueId factor = builder.state("scale", 1, model.states[1].info);
  const ValueId sum = builder.add(total, x), y = builder.mul(sum, factor);
  graph[y].name = "y";
  builder.output(y);
  graph.state_updates.push_back({.state = total, .value = sum});
  EXPECT_TRUE(builder.status().ok());
  return model;
}

TEST(GraphExport, StatesThatChangeAreInputsAndOutputs) {
  WrittenModel report;
  const ModelGraph back = read_back(written(with_states(), report));
  EXPECT_EQ(report.states, std::vector<std::string>{"total"});
  const Graph& graph = *back.entry("infer");
  ASSERT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(graph[graph.inputs[1]].name, "total");
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph[graph.outputs[1]].name, "total.next");
  const Tensors found =
      evaluate(graph, {tensor<float>(DType::F32, {2}, {1, 2}), tensor<float>(DType::F32, {2}, {10, 20})});
  EXPECT_EQ(test::values_of(found[0]), (std::vector<float>{22, 44}));
  EXPECT_EQ(test::values_of(found[1]), (std::vector<float>{11, 22}));
}

TEST(GraphExport, OperatorsOfTheApplicationKeepTheirDomain) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = model.entries[0].graph;
  compiler::Builder builder(graph);
  const ValueId x = builder.input("x", DType::F32, {{.symbol = graph.symbol("n")}, {.extent = 2}});
  op::CustomAttributes softcap;
  softcap.domain = "com.example";
  softcap.name = "Softcap";
  softcap.outputs = {static_cast<int64_t>(DType::F32), 2, custom_extent_of(0, 0), 2};
  softcap.attributes = "limit:f1 axes:i2 mode:s4";
  softcap.floats = {3};
  softcap.ints = {0, 1};
  softcap.text = "fast";
  const ValueId y = builder.emit(op::CustomAttributes(softcap), {x});
  graph[y].name = "y";
  builder.output(y);
  ASSERT_TRUE(builder.status().ok()) << builder.status().message();
  WrittenModel report;
  const std::string bytes = written(model, report).SerializeAsString();
  ImportReport imported;
  ImportOptions options;
  options.custom_domains = {"com.example"};
  const auto back = import_onnx_bytes(std::as_bytes(std::span(bytes)), options, imported);
  ASSERT_TRUE(back.ok()) << back.status().message();
  const auto& nodes = back->entry("infer")->nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [](const Node& node) { return node.kind() == OpKind::Custom; });
  ASSERT_NE(found, nodes.end());
  const auto& same = found->as<op::CustomAttributes>();
  EXPECT_EQ(same.domain, softcap.domain);
  EXPECT_EQ(same.name, softcap.name);
  EXPECT_EQ(same.outputs, softcap.outputs);
  EXPECT_EQ(same.attributes, softcap.attributes);
  EXPECT_EQ(same.floats, softcap.floats);
  EXPECT_EQ(same.ints, softcap.ints);
  EXPECT_EQ(same.text, softcap.text);
}

TEST(GraphExport, NamesEveryNodeThatHasNoForm) {
  ModelGraph model;
  WrittenModel report;
  model.entries.push_back({.name = "train_step", .graph = {}});
  EXPECT_NE(onnx_bytes(model, report).status().message().find("an entry 'infer'"), std::string::npos);
  model.entries[0].name = "infer";
  compiler::Builder builder(model.entries[0].graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = 2}});
  const ValueId bits = builder.input("bits", DType::I32, {{.extent = 2}});
  builder.set_scope("sums");
  builder.output(builder.emit(op::AllReduceAttributes{}, {x}));
  builder.set_scope("shifts");
  builder.output(builder.emit(op::BitShiftAttributes{}, {bits, bits}));
  const std::string message = onnx_bytes(model, report).status().message();
  for (const char* part : {"node 'sums' (AllReduce): ", "between the ranks",
                           "node 'shifts' (BitShift): ", "unsigned integers only, found i32"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace
}  // namespace librt::onnx
