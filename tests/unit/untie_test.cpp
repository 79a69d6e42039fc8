// Parameters that an exporter deduplicated, on models built from protobuf messages.
#include "tools/onnx/untie.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/ops/evaluate.h"
#include "tests/support/onnx_model.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/onnx/import.h"

namespace librt::onnx {
namespace {

using test::add_node;

/// A net of x [batch, 4] with weights of 4 or 4 x 4 elements.
class Net {
 public:
  Net() {
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(17);
    test::set_value(*graph().add_input(), "x", {-1, 4});
    graph().add_output()->set_name("y");
  }
  rt_onnx::GraphProto& graph() { return *proto.mutable_graph(); }
  void weight(const char* name, std::initializer_list<int64_t> dims, bool uniform) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(test::kFloat);
    int64_t count = 1;
    for (const int64_t extent : dims) {
      tensor->add_dims(extent);
      count *= extent;
    }
    for (int64_t i = 0; i < count; ++i) tensor->add_float_data(uniform ? 1.0f : static_cast<float>(i) / 10);
  }
  rt_onnx::NodeProto& node(const char* op, std::initializer_list<const char*> inputs, const char* output,
                           const char* name = "") {
    auto& made = add_node(graph(), op, inputs, output);
    made.set_name(name[0] == '\0' ? output : name);
    return made;
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& tensor : graph().initializer()) found.push_back(tensor.name());
    std::sort(found.begin(), found.end());
    return found;
  }
  /// The names of trained weights.
  std::vector<std::string> trained(std::vector<std::string> tie = {}) {
    const std::string bytes = proto.SerializeAsString();
    report = {};
    auto model =
        import_onnx_bytes(std::as_bytes(std::span(bytes)), {.untie = true, .tie = std::move(tie)}, report);
    EXPECT_TRUE(model.ok()) << model.status().message();
    compiler::TrainReport result;
    const Status status = compiler::add_train_entry(
        *model, {.loss = {.loss = compiler::Loss::MeanSquaredError}, .known = report.weights}, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    single = result.single;
    for (const State& state : model->states)
      if (state.kind == StateKind::Statistic) statistics.push_back(state.name);
    states = model->states;
    std::sort(result.trained.begin(), result.trained.end());
    return result.trained;
  }

  rt_onnx::ModelProto proto;
  ImportReport report;
  std::vector<std::string> statistics, single;
  std::vector<State> states;  ///< of the last training
};

using Names = std::vector<std::string>;

TEST(Untie, FreshBatchNormalizationsShareNothing) {
  Net net;
  net.weight("ones", {4}, true);
  net.weight("zeros", {4}, true);
  net.node("BatchNormalization", {"x", "ones", "zeros", "zeros", "ones"}, "a");
  net.node("BatchNormalization", {"a", "ones", "zeros", "zeros", "ones"}, "y");
  EXPECT_EQ(net.trained(), (Names{"ones", "ones.3", "zeros", "zeros.3"}));
  EXPECT_EQ(net.statistics.size(), 4u);
  ASSERT_EQ(net.report.shared.size(), 2u);
  EXPECT_EQ(net.report.shared[0].parameters.size(), 4u);
  // Scales may be shared on request, running statistics never.
  net.statistics.clear();
  EXPECT_EQ(net.trained({"*"}).size(), 2u);
  EXPECT_EQ(net.statistics.size(), 4u);
}

TEST(Untie, ModulesNameWhatTheyOwn) {
  Net net;
  net.weight("layers.0.bn.weight", {4}, true);
  net.weight("layers.0.fc.weight", {4, 4}, false);
  net.weight("zeros", {4}, true);
  net.node("MatMul", {"x", "layers.0.fc.weight"}, "a", "/layers.0/fc/MatMul");
  net.node("BatchNormalization", {"a", "layers.0.bn.weight", "zeros", "zeros", "layers.0.bn.weight"}, "b",
           "/layers.0/bn/BatchNormalization");
  net.node("MatMul", {"b", "layers.0.fc.weight"}, "y", "/layers.1/fc/MatMul");
  const Names trained = net.trained();
  EXPECT_EQ(trained, (Names{"layers.0.bn.weight", "layers.0.fc.weight", "layers.1.fc.weight", "zeros"}));
  EXPECT_EQ(net.statistics, (Names{"layers.0.bn.running_mean", "layers.0.bn.running_var"}));
}

TEST(Untie, AModuleThatIsUsedAgainStaysOne) {
  Net net;
  net.weight("fc.weight", {4, 4}, false);
  net.node("MatMul", {"x", "fc.weight"}, "a", "/fc/MatMul");
  net.node("MatMul", {"a", "fc.weight"}, "y", "/fc_1/MatMul");
  EXPECT_EQ(net.trained(), Names{"fc.weight"});
  ASSERT_EQ(net.report.shared.size(), 1u);
  EXPECT_EQ(net.report.shared[0].kept, "one module is used 2 times");
}

/// The same of a weight whose name the exporter made up, as it does where it folds a transpose. "fc_1" is the
/// second call of "fc", unless it is a module with parameters of its own.
TEST(Untie, SecondCallsAreKnownWithoutTheWeightsName) {
  for (const bool copy : {false, true}) {
    Net net;
    net.weight("onnx::MatMul_7", {4, 4}, false);
    if (copy) net.weight("block.fc_1.bias", {4}, false);
    net.node("MatMul", {"x", "onnx::MatMul_7"}, "a", copy ? "/block/fc/MatMul" : "/block/fc_1/MatMul");
    net.node("MatMul", {"a", "onnx::MatMul_7"}, copy ? "b" : "y",
             copy ? "/block/fc_1/MatMul" : "/block/fc/MatMul");
    if (copy) net.node("Add", {"b", "block.fc_1.bias"}, "y", "/block/fc_1/Add");
    EXPECT_EQ(net.trained(), copy ? (Names{"block.fc.weight", "block.fc_1.bias", "block.fc_1.weight"})
                                  : Names{"block.fc.weight"});
  }
}

/// As Keras names its layers.
TEST(Untie, FreshLayersWithNumbersAreNoSecondCalls) {
  Net net;
  net.weight("ones", {4}, true);
  net.node("PRelu", {"x", "ones"}, "a", "/prelu/PRelu");
  net.node("PRelu", {"a", "ones"}, "y", "/prelu_1/PRelu");
  EXPECT_EQ(net.trained().size(), 2u) << testing::PrintToString(net.trained());
}

/// An embedding that is also the output layer: exporters fold the transpose.
TEST(Untie, AFoldedTransposeOfAnEmbeddingIsTied) {
  for (const bool listed : {false, true}) {
    Net net;
    net.weight("embedding.weight", {3, 4}, false);
    net.weight("head.weight", {4, 3}, false);
    auto& head = *net.graph().mutable_initializer(1);
    for (int i = 0; i < 12; ++i) head.set_float_data(i, static_cast<float>(i % 3 * 4 + i / 3) / 10);
    auto& cast = net.node("Cast", {"x"}, "ids").add_attribute()[0];
    cast.set_name("to");
    cast.set_type(2);
    cast.set_i(7);
    net.node("Gather", {"embedding.weight", "ids"}, "embedded");
    net.node("MatMul", {"embedded", "head.weight"}, "y");
    if (listed) {
      auto& entry = *net.graph().add_metadata_props();
      entry.set_key("pkg.torch.export.ExportedProgram.graph_signature");
      entry.set_value("p_a: PARAMETER target='embedding.weight'\np_b: PARAMETER target='head.weight'\n");
    }
    if (listed) {
      EXPECT_EQ(net.trained(), (Names{"embedding.weight", "head.weight"}));
      continue;
    }
    EXPECT_EQ(net.trained(), Names{"embedding.weight"});
    ASSERT_EQ(net.report.shared.size(), 1u);
    EXPECT_EQ(net.report.shared[0].kept, "feeds Gather and MatMul");
  }
}

TEST(Untie, WithoutModulesEveryLayerHasItsOwn) {
  Net net;
  net.weight("w", {4, 4}, false);
  net.node("Transpose", {"w"}, "turned");
  net.node("MatMul", {"x", "w"}, "a");
  net.node("MatMul", {"a", "turned"}, "b");
  net.node("MatMul", {"b", "turned"}, "y");
  EXPECT_EQ(net.trained(), (Names{"w", "w.2", "w.3"}));
  EXPECT_EQ(net.trained({"w"}), Names{"w"});
  ASSERT_EQ(net.report.shared.size(), 1u);
  EXPECT_EQ(net.report.shared[0].kept, "by --tie");
}

TEST(Untie, DifferentKindsOfNodesAreTied) {
  Net net;
  net.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
  net.weight("embedding", {4, 4}, false);
  net.node("Gather", {"embedding", "x"}, "a");
  net.node("Transpose", {"embedding"}, "turned");
  net.node("MatMul", {"a", "turned"}, "y");
  EXPECT_EQ(net.trained(), Names{"embedding"});
  ASSERT_EQ(net.report.shared.size(), 1u);
  EXPECT_EQ(net.report.shared[0].kept, "feeds Gather and MatMul");
}

// PyTorch's older exporter writes an Identity with the original name of a deduplicated tensor.
/// The embedding of T5 and BART: a parameter of its own that encoder and decoder read.
TEST(Untie, AnEmbeddingOfEncoderAndDecoderIsTied) {
  Net net;
  net.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
  net.weight("encoder.embed.weight", {4, 4}, false);
  net.node("Gather", {"encoder.embed.weight", "x"}, "a", "/encoder/embed/Gather");
  net.node("Gather", {"encoder.embed.weight", "x"}, "b", "/decoder/embed/Gather");
  net.node("Add", {"a", "b"}, "y");
  EXPECT_EQ(net.trained(), Names{"encoder.embed.weight"});
  ASSERT_EQ(net.report.shared.size(), 1u);
  EXPECT_EQ(net.report.shared[0].kept, "feeds 2 embeddings");
}

TEST(Untie, AWeightOfAModuleThatReadsItNowhereIsTied) {
  for (const bool copies : {false, true}) {
    Net net;
    const char* name = copies ? "encoder.weight" : "shared.weight";
    net.weight(name, {4, 4}, false);
    net.node("MatMul", {"x", name}, "a", "/encoder/MatMul");
    net.node("MatMul", {"a", name}, "y", "/decoder/MatMul");
    EXPECT_EQ(net.trained(), copies ? (Names{"decoder.weight", name}) : Names{name});
    ASSERT_EQ(net.report.shared.size(), 1u);
    EXPECT_EQ(net.report.shared[0].kept, copies ? "" : "belongs to 'shared', which reads it nowhere");
  }
}

TEST(Untie, IdentitiesAreTheNamesOfParameters) {
  Net net;
  net.weight("fc1.weight", {4, 4}, false);
  net.node("Identity", {"fc1.weight"}, "fc2.weight");
  net.node("MatMul", {"x", "fc1.weight"}, "a");
  net.node("MatMul", {"a", "fc2.weight"}, "b");
  net.node("MatMul", {"b", "fc2.weight"}, "y");
  EXPECT_EQ(net.trained(), (Names{"fc1.weight", "fc2.weight"}));
  untie(net.proto, {});
  EXPECT_EQ(net.names(), (Names{"fc1.weight", "fc2.weight"}));
  EXPECT_EQ(net.graph().node_size(), 3);
}

enum AttributeType { kTensor = 4, kGraph = 5 };

/// A 4 x 4 weight "w" of 0.1 `scale`, an initializer of the body or a Constant node.
void add_body_weight(rt_onnx::GraphProto& body, bool as_node, float scale) {
  rt_onnx::TensorProto* tensor = nullptr;
  if (as_node) {
    auto* value = add_node(body, "Constant", {}, "w").add_attribute();
    value->set_name("value");
    value->set_type(kTensor);
    tensor = value->mutable_t();
  } else {
    tensor = body.add_initializer();
    tensor->set_name("w");
  }
  tensor->set_data_type(test::kFloat);
  for (int i = 0; i < 2; ++i) tensor->add_dims(4);
  for (int i = 0; i < 16; ++i) tensor->add_float_data(scale * static_cast<float>(i) / 10);
}

/// A Loop that runs `trips` times and carries x [batch, 4]. Returns its body, which takes s and has to make
/// `next`.
rt_onnx::GraphProto& add_loop(rt_onnx::GraphProto& graph, const char* input, const char* output,
                              const char* next = "next") {
  auto& loop = add_node(graph, "Loop", {"trips", "", input}, output);
  auto* attribute = loop.add_attribute();
  attribute->set_name("body");
  attribute->set_type(kGraph);
  rt_onnx::GraphProto& body = *attribute->mutable_g();
  for (const auto& [name, type] : {std::pair{"i", 7}, std::pair{"go", 9}}) {
    auto* value = body.add_input();
    value->set_name(name);
    value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    value->mutable_type()->mutable_tensor_type()->mutable_shape();
  }
  test::set_value(*body.add_input(), "s", {-1, 4});
  add_node(body, "Identity", {"go"}, "again");
  for (const char* name : {"again", next}) body.add_output()->set_name(name);
  return body;
}

/// next = tanh(s w) with a weight of the body's own.
void add_layer(rt_onnx::GraphProto& body, bool as_node, const char* next = "next") {
  add_body_weight(body, as_node, as_node ? 0.5f : 0.3f);
  add_node(body, "MatMul", {"s", "w"}, "product");
  add_node(body, "Tanh", {"product"}, next);
}

void add_trips(Net& net) {
  auto* trips = net.graph().add_initializer();
  trips->set_name("trips");
  trips->set_data_type(7);
  trips->add_int64_data(3);
}

/// The net's result for x of [1,4].
std::vector<float> result_of(const rt_onnx::ModelProto& proto, bool untied) {
  ImportReport report;
  rt_onnx::ModelProto copy = proto;
  const auto model = import_onnx_proto(copy, {.untie = untied}, report);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const float x[] = {1, -1, 0.5f, 0.25f};
  const ConstTensorView input{x, {DType::F32, {1, 4}}};
  const auto results = ops::evaluate_graph(model->entries[0].graph, {&input, 1});
  EXPECT_TRUE(results.ok()) << results.status().message();
  const auto* numbers = reinterpret_cast<const float*>((*results)[0].bytes.data());
  return {numbers, numbers + (*results)[0].info.shape.elements()};
}

// Bodies may use the same names, as those that one function wrote do.
TEST(Untie, WeightsOfBodiesMoveToTheMainGraph) {
  Net net;
  add_trips(net);
  add_layer(add_loop(net.graph(), "x", "a"), false);
  add_layer(add_loop(net.graph(), "a", "y"), true);
  const std::vector<float> before = result_of(net.proto, false);
  EXPECT_EQ(result_of(net.proto, true), before);
  EXPECT_EQ(net.trained(), (Names{"a/w", "y/w"}));
  untie(net.proto, {});
  EXPECT_EQ(net.names(), (Names{"a/w", "trips", "y/w"}));
  EXPECT_EQ(result_of(net.proto, false), before);
}

// Training writes Loops out, so that there are nine copies of the inner body.
TEST(Untie, AWeightOfALoopInALoopIsOne) {
  Net net;
  add_trips(net);
  rt_onnx::GraphProto& outer = add_loop(net.graph(), "x", "y");
  add_layer(add_loop(outer, "s", "next", "after"), false, "after");
  EXPECT_EQ(net.trained(), (Names{"w"}));
}

// What a body reads is computed from the weight outside.
TEST(Untie, AWeightThatIsTransposedOutsideOfALoopIsTrained) {
  Net net;
  add_trips(net);
  net.weight("w", {4, 4}, false);
  net.node("Transpose", {"w"}, "turned");
  rt_onnx::GraphProto& body = add_loop(net.graph(), "x", "y");
  add_node(body, "MatMul", {"s", "turned"}, "product");
  add_node(body, "Tanh", {"product"}, "next");
  EXPECT_EQ(net.trained(), (Names{"w"}));
  EXPECT_EQ(result_of(net.proto, true), result_of(net.proto, false));
}

// A branch that returns its weight still makes its output itself.
TEST(Untie, AWeightThatABranchReturnsMoves) {
  Net net;
  auto* yes = net.graph().add_initializer();
  yes->set_name("yes");
  yes->set_data_type(9);
  yes->add_int32_data(1);
  auto& branch = net.node("If", {"yes"}, "weight");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto* attribute = branch.add_attribute();
    attribute->set_name(name);
    attribute->set_type(kGraph);
    add_body_weight(*attribute->mutable_g(), false, name[0] == 't' ? 0.3f : 0.5f);
    attribute->mutable_g()->add_output()->set_name("w");
  }
  net.node("MatMul", {"x", "weight"}, "y");
  const std::vector<float> before = result_of(net.proto, false);
  untie(net.proto, {});
  EXPECT_EQ(net.names(), (Names{"weight/w", "weight/w_2", "yes"}));
  EXPECT_EQ(result_of(net.proto, false), before);
  EXPECT_EQ(net.trained(), (Names{"weight/w"}));
}

TEST(Untie, ConstantsOfFormulasStayAsTheyAre) {
  Net net;
  net.weight("scale", {1}, true);
  net.weight("mask", {4}, false);
  net.node("Mul", {"x", "scale"}, "a");
  net.node("Add", {"a", "mask"}, "b");
  net.node("Mul", {"b", "scale"}, "c");
  net.node("Add", {"c", "mask"}, "y");
  EXPECT_TRUE(untie(net.proto, {}).shared.empty());
  EXPECT_EQ(net.names(), (Names{"mask", "scale"}));
}

TEST(Untie, MetadataTellParametersExactly) {
  Net net;
  auto* entry = net.graph().add_metadata_props();
  entry->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  entry->set_value(
      "\n# inputs\np_a_weight: PARAMETER target='a.weight'\np_a_bias: PARAMETER target='a.bias'\n"
      "p_b_weight: PARAMETER target='b.weight'\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
  net.weight("val_1", {4, 4}, false);
  const auto call = [](rt_onnx::NodeProto& node, const char* text) {
    auto* made = node.add_metadata_props();
    made->set_key("pkg.torch.onnx.fx_node");
    made->set_value(text);
  };
  call(net.node("MatMul", {"x", "val_1"}, "m"), "%l : aten.linear(%x, %p_a_weight, %p_a_bias)");
  call(net.node("MatMul", {"m", "val_1"}, "y"), "%l_1 : aten.linear(%l, %p_b_weight)");
  EXPECT_EQ(net.trained(), (Names{"a.weight", "b.weight"}));
  ASSERT_EQ(net.report.lost.size(), 1u);  // the bias was zero and was removed
  EXPECT_NE(net.report.lost[0].find("1 parameters or statistics"), std::string::npos) << net.report.lost[0];
  EXPECT_NE(net.report.lost[0].find("(a.bias)"), std::string::npos) << net.report.lost[0];
  EXPECT_NE(net.report.lost[0].find("optimize=False"), std::string::npos) << net.report.lost[0];
}

// PyTorch's newer exporter writes a GroupNorm as an InstanceNormalization by ones and zeros, which several
// layers share, also with a parameter that is all ones.
TEST(Untie, NeutralOperandsOfGroupNormsAreNoParameters) {
  for (const char* shared : {"val_1", "alpha"}) {
    Net net;
    net.graph().mutable_input(0)->Clear();
    test::set_value(*net.graph().mutable_input(0), "x", {-1, 4, 4});
    auto* entry = net.graph().add_metadata_props();
    entry->set_key("pkg.torch.export.ExportedProgram.graph_signature");
    entry->set_value(
        "\n# inputs\np_n_0_weight: PARAMETER target='n.0.weight'\np_n_0_bias: PARAMETER target='n.0.bias'\n"
        "p_n_1_weight: PARAMETER target='n.1.weight'\np_n_1_bias: PARAMETER target='n.1.bias'\n"
        "p_alpha: PARAMETER target='alpha'\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    net.weight("alpha", {4}, true);
    if (shared == std::string("val_1")) net.weight("val_1", {4}, true);
    net.weight("val_2", {4}, false);
    net.weight("n.0.weight", {4}, false);
    net.weight("n.1.weight", {4}, false);
    const auto call = [](rt_onnx::NodeProto& node, const char* text) {
      auto* made = node.add_metadata_props();
      made->set_key("pkg.torch.onnx.fx_node");
      made->set_value(text);
    };
    const char* const first =
        "%g : call_function[target=torch.ops.aten.group_norm.default](args = (%x, 4, %p_n_0_weight))";
    const char* const second =
        "%h : call_function[target=torch.ops.aten.group_norm.default](args = (%g, 4, %p_n_1_weight))";
    call(net.node("InstanceNormalization", {"x", shared, "val_2"}, "a"), first);
    call(net.node("Mul", {"a", "n.0.weight"}, "b"), first);
    call(net.node("InstanceNormalization", {"b", shared, "val_2"}, "c"), second);
    call(net.node("Mul", {"c", "n.1.weight"}, "d"), second);
    call(net.node("Mul", {"d", "alpha"}, "y"), "%m : aten.mul(%h, %p_alpha)");
    EXPECT_EQ(net.trained(), (Names{"alpha", "n.0.weight", "n.1.weight"})) << shared;
  }
}

// The newer exporter stores the weights [channels] of a GroupNorm as [channels, 1, 1] under a name of its
// own, equal ones once; one without weights has ones and zeros.
TEST(Untie, WeightsOfGroupNormsHaveTheirNamesAndExtents) {
  for (const bool equal : {false, true}) {
    Net net;
    net.graph().mutable_input(0)->Clear();
    test::set_value(*net.graph().mutable_input(0), "x", {-1, 8, 4, 4});
    auto* entry = net.graph().add_metadata_props();
    entry->set_key("pkg.torch.export.ExportedProgram.graph_signature");
    entry->set_value(
        "\n# inputs\np_n_0_weight: PARAMETER target='n.0.weight'\np_n_0_bias: PARAMETER target='n.0.bias'\n"
        "p_n_1_gain: PARAMETER target='n.1.gain'\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    net.weight("val_1", {8}, true);
    net.weight("val_2", {8}, true);
    net.weight("val_3", {8, 1, 1}, equal);
    net.weight("val_4", {8, 1, 1}, false);
    if (!equal) net.weight("val_5", {8, 1, 1}, false);
    net.weight("val_6", {8, 1, 1}, true);
    const auto add = [&](const char* op, std::initializer_list<const char*> inputs, const char* output,
                         const char* arguments) {
      auto* made = net.node(op, inputs, output).add_metadata_props();
      made->set_key("pkg.torch.onnx.fx_node");
      made->set_value(text("%g : call_function[target=torch.ops.aten.group_norm.default](args = (", arguments,
                           ", 1e-05, False), kwargs = {})"));
    };
    const char *first = "%x, 8, %p_n_0_weight, %p_n_0_bias", *second = "%g, 8, %p_n_1_gain, None",
               *third = "%h, 8, None, None";
    add("InstanceNormalization", {"x", "val_1", "val_2"}, "a", first);
    add("Mul", {"a", "val_3"}, "b", first);
    add("Add", {"b", "val_4"}, "c", first);
    add("InstanceNormalization", {"c", "val_1", "val_2"}, "d", second);
    add("Mul", {"d", equal ? "val_3" : "val_5"}, "e", second);
    add("Add", {"e", "val_6"}, "f", second);
    add("InstanceNormalization", {"f", "val_1", "val_2"}, "g", third);
    add("Mul", {"g", "val_6"}, "h", third);
    add("Add", {"h", "val_6"}, "y", third);
    EXPECT_EQ(net.trained(), (Names{"n.0.bias", "n.0.weight", "n.1.gain"})) << equal;
    for (const State& state : net.states) {
      if (state.kind == StateKind::Parameter) {
        EXPECT_EQ(state.info.shape, Shape{8}) << state.name;
      }
    }
  }
}

// What code fills, as Swin UNETR does for a mask, is no parameter for the dot in its name.
TEST(Untie, FilledConstantsAreNoParameters) {
  Net net;
  net.proto.set_producer_name("pytorch");
  net.weight("w", {4, 4}, false);
  auto* value = net.node("Constant", {}, "/layers.0/Constant_output_0", "/layers.0/Constant").add_attribute();
  value->set_name("value");
  value->set_type(4);  // tensor
  value->mutable_t()->set_data_type(test::kFloat);
  value->mutable_t()->add_dims(4);
  for (int i = 0; i < 4; ++i) value->mutable_t()->add_float_data(0);
  net.node("Add", {"x", "/layers.0/Constant_output_0"}, "a", "/layers.0/Add");
  net.node("Mul", {"a", "/layers.0/Constant_output_0"}, "b", "/layers.0/Mul");
  net.node("MatMul", {"b", "w"}, "y", "/layers.0/MatMul");
  EXPECT_EQ(net.trained(), Names{"w"});
}

// A bias of zeros of which code takes parts, as Swin Transformer V2 does, is one parameter; what nodes
// compute with may be several.
TEST(Untie, PartsOfAUniformWeightBelongToIt) {
  Net net;
  net.weight("attn.qkv.bias", {4}, true);
  net.weight("attn.qkv.weight", {4, 4}, false);
  net.weight("attn.scale", {1, 4}, true);
  for (const char* name : {"zero", "two", "three", "four"}) {
    auto* tensor = net.graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(7);  // int64
    tensor->add_dims(1);
    tensor->add_int64_data(name[0] == 'z' ? 0 : name[0] == 'f' ? 4 : name[1] == 'h' ? 3 : 2);
  }
  net.node("Slice", {"attn.qkv.bias", "zero", "two"}, "first", "/attn/Slice");
  net.node("Slice", {"attn.qkv.bias", "three", "four"}, "second", "/attn/Slice_1");
  net.node("Gather", {"attn.qkv.bias", "two"}, "third", "/attn/Gather");
  auto* axis = net.node("Concat", {"second", "third", "first"}, "turned", "/attn/Concat").add_attribute();
  axis->set_name("axis");
  axis->set_type(2);  // int
  net.node("Shape", {"attn.qkv.bias"}, "extents", "/attn/Shape");
  net.node("Reshape", {"turned", "extents"}, "bias", "/attn/Reshape");
  net.node("MatMul", {"x", "attn.qkv.weight"}, "a", "/attn/MatMul");
  net.node("Add", {"a", "bias"}, "b", "/attn/Add");
  net.node("Shape", {"attn.scale"}, "scales", "/attn/Shape_1");
  net.node("Expand", {"b", "scales"}, "c", "/attn/Expand");
  net.node("Mul", {"c", "attn.scale"}, "y", "/attn/Mul");
  EXPECT_EQ(net.trained(), (Names{"attn.qkv.bias", "attn.qkv.weight", "attn.scale"}));
}

TEST(Untie, BuffersAreNotTrainedAndSingleParametersAre) {
  Net net;
  auto* entry = net.graph().add_metadata_props();
  entry->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  entry->set_value(
      "\n# inputs\np_a_weight: PARAMETER target='a.weight'\np_scale: PARAMETER target='scale'\n"
      "p_c_bias: PARAMETER target='c.bias'\nb_table: BUFFER target='table' persistent=True\n"
      "b_zeros: BUFFER target='zeros' persistent=True\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
  net.weight("a.weight", {4, 4}, false);
  net.weight("table", {4}, false);
  net.weight("zeros", {4}, true);  // equal to c.bias, which the exporter removed
  net.weight("scale", {}, false);
  net.weight("val_3", {}, false);
  net.node("MatMul", {"x", "a.weight"}, "m");
  net.node("Add", {"m", "table"}, "n");
  auto* call = net.node("Add", {"n", "zeros"}, "o").add_metadata_props();
  call->set_key("pkg.torch.onnx.fx_node");
  call->set_value("%add : aten.add(%n, %p_c_bias)");
  net.node("Mul", {"o", "scale"}, "p");
  net.node("Mul", {"p", "val_3"}, "y");
  EXPECT_EQ(net.trained(), (Names{"a.weight", "scale", "zeros"}));
  EXPECT_TRUE(net.single.empty());  // all parameters are known
}

TEST(Untie, SingleOperandsOfLayersAreParameters) {
  Net net;
  net.weight("act.weight", {1}, false);
  net.weight("shift", {1}, false);
  net.weight("onnx::Mul_7", {1}, false);
  net.node("PRelu", {"x", "act.weight"}, "a");
  net.node("Mul", {"a", "onnx::Mul_7"}, "b");
  net.node("Add", {"b", "shift"}, "y");
  EXPECT_EQ(net.trained(), Names{"act.weight"});
  EXPECT_EQ(net.single, Names{"shift"});
}

TEST(Untie, DetachedValuesAreNamed) {
  Net net;
  net.weight("a.weight", {4, 4}, false);
  net.weight("b.weight", {4, 4}, false);
  net.node("MatMul", {"x", "a.weight"}, "m");
  auto* call = net.node("Identity", {"m"}, "n").add_metadata_props();
  call->set_key("pkg.torch.onnx.fx_node");
  call->set_value("%detach : call_function[target=torch.ops.aten.detach.default](args = (%m,), kwargs = {})");
  net.node("MatMul", {"n", "b.weight"}, "y");
  EXPECT_EQ(net.trained(), (Names{"a.weight", "b.weight"}));
  EXPECT_EQ(net.report.detached, (std::set<std::string>{"n"}));
  EXPECT_TRUE(net.report.lost.empty());
}

TEST(Untie, FoldedNormalizationsAreReported) {
  Net net;
  net.graph().mutable_input(0)->Clear();
  test::set_value(*net.graph().mutable_input(0), "x", {-1, 1, 8, 8});
  net.weight("onnx::Conv_7", {4, 1, 3, 3}, false);
  net.weight("onnx::Conv_8", {4}, false);
  net.node("Conv", {"x", "onnx::Conv_7", "onnx::Conv_8"}, "y", "/conv/Conv");
  EXPECT_EQ(net.trained().size(), 2u);
  ASSERT_EQ(net.report.lost.size(), 1u);
  EXPECT_NE(net.report.lost[0].find("/conv/Conv"), std::string::npos) << net.report.lost[0];
  EXPECT_NE(net.report.lost[0].find("TrainingMode.PRESERVE"), std::string::npos) << net.report.lost[0];
}

// The Shape of a convolution's weight reads ONNX's layout, the convolution another one.
TEST(Untie, AWeightInTwoLayoutsIsOne) {
  Net net;
  net.graph().mutable_input(0)->Clear();
  test::set_value(*net.graph().mutable_input(0), "x", {-1, 2, 8, 8});
  net.weight("w", {4, 2, 3, 3}, false);
  net.node("Shape", {"w"}, "extents");
  net.node("ConstantOfShape", {"extents"}, "zeros");
  net.node("Mul", {"w", "zeros"}, "nothing");
  net.node("ReduceSum", {"nothing"}, "sum");
  net.node("Conv", {"x", "w"}, "c");
  net.node("Add", {"c", "sum"}, "y");
  EXPECT_EQ(net.trained({"w"}), Names{"w"});
}

}  // namespace
}  // namespace librt::onnx
