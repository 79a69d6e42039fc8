// Which tensors of an ONNX file are trained: those that the network's code computes are not. Names and
// layouts of weights in files of PyTorch.
#include "tools/onnx/known_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/text.h"
#include "tests/support/onnx_model.h"
#include "tools/onnx/lost_weights.h"
#include "tools/onnx/retie.h"
#include "tools/onnx/untie.h"
#include "tools/onnx/weights_file.h"

namespace librt::onnx {
namespace {

using test::add_node;
using Strings = std::set<std::string>;

class FileOfWeights {
 public:
  explicit FileOfWeights(const char* producer = "") { proto.set_producer_name(producer); }

  void tensor(const char* name, std::initializer_list<int64_t> dims, const std::vector<float>& elements) {
    fill(*graph().add_initializer(), name, dims, elements);
  }
  void constant(const char* name, std::initializer_list<int64_t> dims, const std::vector<float>& elements) {
    auto& attribute = *add_node(graph(), "Constant", {}, name).add_attribute();
    attribute.set_name("value");
    attribute.set_type(4);
    fill(*attribute.mutable_t(), name, dims, elements);
  }
  /// With the call that PyTorch's newer exporter writes into the metadata.
  void call(rt_onnx::NodeProto& node, const char* text) {
    auto& entry = *node.add_metadata_props();
    entry.set_key("pkg.torch.onnx.fx_node");
    entry.set_value(text);
  }
  void signature(const char* lines) {
    auto& entry = *graph().add_metadata_props();
    entry.set_key("pkg.torch.export.ExportedProgram.graph_signature");
    entry.set_value(lines);
  }
  rt_onnx::GraphProto& graph() { return *proto.mutable_graph(); }
  Strings buffers() { return known_weights(proto, "").buffers; }

  rt_onnx::ModelProto proto;

 private:
  static void fill(rt_onnx::TensorProto& tensor, const char* name, std::initializer_list<int64_t> dims,
                   const std::vector<float>& elements) {
    tensor.set_name(name);
    tensor.set_data_type(test::kFloat);
    for (const int64_t extent : dims) tensor.add_dims(extent);
    tensor.set_raw_data(elements.data(), elements.size() * sizeof(float));
  }
};

// FrozenBatchNorm2d registers its weight and bias as buffers, which PyTorch's older exporter does not show; a
// normalization that the code computes from x trains its own.
TEST(KnownWeights, FrozenBatchNormalizationsAreNotTrained) {
  FileOfWeights file("pytorch");
  for (const char* module : {"bn", "own"})
    for (const char* leaf : {"weight", "bias", "running_mean", "running_var"})
      file.tensor(text(module, ".", leaf).c_str(), {2}, {1, 2});
  const auto node = [&](const char* op, std::initializer_list<const char*> inputs, const char* output) {
    add_node(file.graph(), op, inputs, output);
  };
  node("Sqrt", {"bn.running_var"}, "deviation");
  node("Div", {"bn.weight", "deviation"}, "scale");
  node("Mul", {"bn.running_mean", "scale"}, "shift");
  node("Sub", {"bn.bias", "shift"}, "offset");
  node("Mul", {"x", "scale"}, "scaled");
  node("Add", {"scaled", "offset"}, "a");
  node("Sub", {"a", "own.running_mean"}, "b");
  node("Sqrt", {"own.running_var"}, "own_deviation");
  node("Div", {"b", "own_deviation"}, "c");
  node("Mul", {"c", "own.weight"}, "d");
  node("Add", {"d", "own.bias"}, "y");
  EXPECT_EQ(file.buffers(), (Strings{"bn.bias", "bn.running_mean", "bn.running_var", "bn.weight",
                                     "own.running_mean", "own.running_var"}));
}

TEST(KnownWeights, MasksAreNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  FileOfWeights file;
  file.tensor("infinite", {2, 2}, {0, -kInfinity, 0, 0});
  file.tensor("lowest", {1, 2, 2}, {0, std::numeric_limits<float>::lowest(), 0, 0});
  file.tensor("triangle", {1, 1, 2, 2}, {1, 0, 1, 1});
  file.constant("large", {2, 2}, {0, -10000, 0, 0});
  // None of them masks.
  file.tensor("zeros", {2, 2}, {0, 0, 0, 0});
  file.tensor("ones", {2, 2}, {1, 1, 1, 1});
  file.tensor("bias", {2}, {0, -20000});
  file.tensor("weight", {2, 2}, {-20000, 0, 0, 1});
  const char* before = "x";
  for (const char* name : {"infinite", "lowest", "large", "zeros", "ones", "bias"}) {
    add_node(file.graph(), "Add", {before, name}, text("after_", name).c_str());
    before = file.graph().node(file.graph().node_size() - 1).output(0).c_str();
  }
  add_node(file.graph(), "Mul", {before, "triangle"}, "seen");
  add_node(file.graph(), "MatMul", {"seen", "weight"}, "y");
  // Scales of channels, before their training: triangles of 1x1.
  file.tensor("scale", {2, 1, 1}, {1, 1});
  add_node(file.graph(), "Mul", {"seen", "scale"}, "scaled");
  EXPECT_EQ(file.buffers(), (Strings{"infinite", "large", "lowest", "triangle"}));
}

/// Sines and cosines of Vaswani et al. 2017, with a row of zeros for padding as Fairseq has it; not a learned
/// table.
TEST(KnownWeights, PositionsByWavesAreNone) {
  constexpr int64_t kRows = 12, kColumns = 6;
  std::vector<float> waves, learned, flat(kRows * kColumns, 0.5f);
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      const double angle = static_cast<double>(row) * std::pow(1e4, -static_cast<double>(column / 2) / 3);
      waves.push_back(row == 1 ? 0 : static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle)));
      learned.push_back(std::sin(static_cast<float>(row * row + 5 * column)));
    }
  FileOfWeights file;
  file.tensor("waves", {kRows, kColumns}, waves);
  file.tensor("spread", {1, kRows, 1, kColumns}, waves);
  file.tensor("learned", {kRows, kColumns}, learned);
  file.tensor("flat", {kRows, kColumns}, flat);
  add_node(file.graph(), "Gather", {"waves", "ids"}, "a");
  add_node(file.graph(), "Add", {"a", "learned"}, "b");
  add_node(file.graph(), "Mul", {"b", "spread"}, "c");
  add_node(file.graph(), "Add", {"c", "flat"}, "y");
  EXPECT_EQ(file.buffers(), (Strings{"spread", "waves"}));
}

TEST(KnownWeights, OnAndOffOfOneHot) {
  FileOfWeights file;
  file.tensor("values", {2}, {0, 1});
  file.tensor("both", {2}, {0, 1});
  add_node(file.graph(), "OneHot", {"ids", "depth", "values"}, "a");
  add_node(file.graph(), "OneHot", {"ids", "depth", "both"}, "b");
  add_node(file.graph(), "Mul", {"b", "both"}, "y");
  EXPECT_EQ(file.buffers(), Strings{"values"});
}

TEST(KnownWeights, InitialStatesOfZeros) {
  FileOfWeights file;
  file.tensor("zeros", {1, 2, 2}, {0, 0, 0, 0});
  file.tensor("learned", {1, 2, 2}, {0, 0, 0, 1});
  file.tensor("bias", {1, 4}, {0, 0, 0, 0});
  add_node(file.graph(), "RNN", {"x", "w", "r", "bias", "", "zeros"}, "a");
  add_node(file.graph(), "RNN", {"a", "w", "r", "bias", "", "learned"}, "y");
  EXPECT_EQ(file.buffers(), Strings{"zeros"});
}

TEST(KnownWeights, ConstantNodesOfPyTorch) {
  const auto build = [](FileOfWeights& file) {
    file.constant("computed", {2}, {1, 2});
    file.constant("kernel", {2, 2}, {1, 2, 3, 4});
    add_node(file.graph(), "Mul", {"x", "computed"}, "a");
    add_node(file.graph(), "MatMul", {"a", "kernel"}, "b");
  };
  FileOfWeights frozen("pytorch"), other, usual("pytorch");
  build(frozen);
  EXPECT_EQ(frozen.buffers(), Strings{"computed"});
  build(other);
  EXPECT_EQ(other.buffers(), Strings{});
  build(usual);
  usual.tensor("fc.weight", {2, 2}, {1, 2, 3, 4});
  usual.tensor("layers.0.rotary.inv_freq", {1, 2}, {1, 2});
  add_node(usual.graph(), "MatMul", {"b", "fc.weight"}, "c");
  add_node(usual.graph(), "MatMul", {"c", "layers.0.rotary.inv_freq"}, "y");
  EXPECT_EQ(usual.buffers(), (Strings{"computed", "kernel", "layers.0.rotary.inv_freq"}));
}

TEST(KnownWeights, TablesThatPyTorchFolded) {
  const auto build = [](FileOfWeights& file, bool lost) {
    file.signature(
        "\np_fc_weight: PARAMETER target='fc.weight'\np_table: PARAMETER target='table'\nx: USER_INPUT\n");
    file.tensor("fc.weight", {2, 2}, {1, 2, 3, 4});
    if (!lost) file.tensor("table", {2, 2}, {1, 2, 3, 4});
    file.tensor("cos", {2, 2}, {1, 2, 3, 4});
    file.tensor("slice_1", {2, 2}, {1, 2, 3, 4});
    file.tensor("val_3", {2, 2}, {1, 2, 3, 4});
    file.call(add_node(file.graph(), "MatMul", {"x", "fc.weight"}, "a"), "linear(args = (%x, %p_fc_weight))");
    file.call(add_node(file.graph(), "Mul", {"a", "cos"}, "b"), "mul.Tensor(args = (%linear, %cos))");
    file.call(add_node(file.graph(), "Add", {"b", "slice_1"}, "c"), "add.Tensor(args = (%mul, %slice_1))");
    file.call(add_node(file.graph(), "MatMul", {"c", "val_3"}, "d"), "linear(args = (%add, %mul_2))");
  };
  FileOfWeights whole, lost;
  build(whole, false);
  EXPECT_EQ(whole.buffers(), (Strings{"cos", "slice_1", "val_3"}));
  // What was computed from a parameter that is not in the file may be a part of it.
  build(lost, true);
  EXPECT_EQ(lost.buffers(), Strings{"cos"});
}

/// 1 + weight of a normalization, folded: the module that reads it has lost the parameter.
TEST(KnownWeights, WhatWasComputedFromALostParameterIsOne) {
  FileOfWeights file;
  file.signature("p_w: PARAMETER target='norm.weight'\np_fc: PARAMETER target='fc.weight'\n");
  file.tensor("fc.weight", {2, 2}, {1, 2, 3, 4});
  file.tensor("add_1", {2}, {1, 1.5f});
  file.tensor("cos", {2}, {1, 0.5f});
  const auto in_module = [](rt_onnx::NodeProto& node, const char* module) {
    auto& entry = *node.add_metadata_props();
    entry.set_key("pkg.torch.onnx.name_scopes");
    entry.set_value(text("['', '", module, "', 'mul']"));
  };
  auto& scaled = add_node(file.graph(), "Mul", {"x", "add_1"}, "a");
  file.call(scaled, "mul.Tensor(args = (%x, %add_1))");
  in_module(scaled, "norm");
  auto& turned = add_node(file.graph(), "Mul", {"a", "cos"}, "b");
  file.call(turned, "mul.Tensor(args = (%a, %cos))");
  in_module(turned, "attention");
  file.call(add_node(file.graph(), "MatMul", {"b", "fc.weight"}, "y"), "linear(args = (%b, %p_fc))");
  EXPECT_EQ(file.buffers(), Strings{"cos"});
  const std::vector<std::string> lost = lost_weights(file.proto, "");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find(
                "computed 1 weights from parameters of the PyTorch model that are not in the file (add_1)"),
            std::string::npos)
      << lost[0];
}

TEST(KnownWeights, FoldedNormalizationsOfKerasAreReported) {
  FileOfWeights file("tf2onnx");
  file.tensor("net/bn/batchnorm/mul:0", {2}, {1, 2});
  add_node(file.graph(), "Mul", {"x", "net/bn/batchnorm/mul:0"}, "y");
  const std::vector<std::string> lost = lost_weights(file.proto, "");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("1 batch normalizations of Keras are folded (net/bn/batchnorm/mul:0)"),
            std::string::npos)
      << lost[0];
}

/// A parameter that is expanded for each sample of the batch, folded.
TEST(Retie, TheCopiesOfABatchAreOne) {
  FileOfWeights file;
  file.signature("p_token: PARAMETER target='token'\np_fc: PARAMETER target='fc.weight'\n");
  file.tensor("fc.weight", {2, 2}, {1, 2, 3, 4});
  file.tensor("expand_1", {3, 1, 2}, {1, 2, 1, 2, 1, 2});
  file.tensor("expand_2", {3, 1, 2}, {1, 2, 1, 2, 1, 3});
  add_node(file.graph(), "Concat", {"x", "expand_1", "expand_2"}, "a");
  add_node(file.graph(), "MatMul", {"a", "fc.weight"}, "y");
  retie(file.proto, "");
  Strings names;
  for (const auto& tensor : file.graph().initializer()) names.insert(tensor.name());
  EXPECT_EQ(names, (Strings{"expand_1.extents", "expand_1.one", "expand_2", "fc.weight"}));
  const auto& node = file.graph().node(file.graph().node_size() - 1);
  EXPECT_EQ(node.op_type(), "Expand");
  EXPECT_EQ(node.output(0), "expand_1");
}

/// A layer that is called twice: the exporter folds the transpose of its weight twice.
TEST(Retie, TheCopiesOfAParameterAreOne) {
  FileOfWeights file;
  file.signature("p_fc: PARAMETER target='fc.weight'\np_other: PARAMETER target='other.weight'\n");
  for (const char* name : {"val_0", "val_1", "val_2"}) file.tensor(name, {2, 2}, {1, 2, 3, 4});
  const auto call = [&](const char* x, const char* weight, const char* y, const char* parameter) {
    file.call(add_node(file.graph(), "MatMul", {x, weight}, y),
              text("call_function[target=torch.ops.aten.linear.default](args = (%x, %", parameter,
                   "), kwargs = {})")
                  .c_str());
  };
  call("x", "val_0", "a", "p_fc");
  call("a", "val_1", "b", "p_fc");
  call("b", "val_2", "y", "p_other");
  retie(file.proto, "");
  ASSERT_EQ(file.graph().initializer_size(), 2);
  EXPECT_EQ(file.graph().node(1).input(1), "val_0");
  EXPECT_EQ(file.graph().node(2).input(1), "val_2");
}

/// By the older exporter, which counts the calls. Equal weights of two layers remain two, though these share
/// a bias.
TEST(Retie, TheCopiesOfALayerThatIsCalledTwice) {
  FileOfWeights file("pytorch");
  for (const char* name : {"onnx::MatMul_5", "onnx::MatMul_6", "onnx::MatMul_7"})
    file.tensor(name, {2, 2}, {1, 2, 3, 4});
  const auto layer = [&](const char* x, const char* weight, const char* y, const std::string& path) {
    const std::string product = text(y, "_product");
    add_node(file.graph(), "MatMul", {x, weight}, product.c_str()).set_name(text("/", path, "/MatMul"));
    add_node(file.graph(), "Add", {"layers.0.fc.bias", product.c_str()}, y).set_name(text("/", path, "/Add"));
  };
  layer("x", "onnx::MatMul_5", "a", "layers.0/fc");
  layer("a", "onnx::MatMul_6", "b", "layers.0/fc_1");
  layer("b", "onnx::MatMul_7", "y", "layers.1/fc");
  retie(file.proto, "");
  EXPECT_EQ(untie(file.proto, {}).transposed, (Strings{"layers.0.fc.weight", "layers.1.fc.weight"}));
}

/// The first step of an RNN: a linear layer of zeros is its bias.
TEST(Retie, TheBiasOfALayerOfZerosIsItsBias) {
  FileOfWeights file;
  file.signature(
      "p_b: PARAMETER target='rnn.bias'\np_c: PARAMETER target='first.bias'\np_d: PARAMETER "
      "target='second.bias'\n");
  file.tensor("rnn.bias", {2}, {1, 2});
  file.tensor("linear_1", {1, 2, 2}, {1, 2, 1, 2});
  file.tensor("linear_2", {1, 2, 2}, {1, 2, 1, 3});
  // Of two biases that are equal, as new ones are, it could be either's.
  file.tensor("first.bias", {2}, {0, 0});
  file.tensor("second.bias", {2}, {0, 0});
  file.tensor("linear_3", {1, 2, 2}, {0, 0, 0, 0});
  add_node(file.graph(), "Add", {"x", "linear_1"}, "a");
  add_node(file.graph(), "Add", {"a", "linear_2"}, "b");
  add_node(file.graph(), "Add", {"b", "rnn.bias"}, "y");
  retie(file.proto, "");
  Strings names;
  for (const auto& tensor : file.graph().initializer()) names.insert(tensor.name());
  EXPECT_EQ(names,
            (Strings{"first.bias", "linear_1.extents", "linear_2", "linear_3", "rnn.bias", "second.bias"}));
  const auto& node = file.graph().node(file.graph().node_size() - 1);
  EXPECT_EQ(node.op_type(), "Expand");
  EXPECT_EQ(node.input(0), "rnn.bias");
}

/// Keras has one bias, ONNX two in a row: the second is zero and stays so. A GRU that resets after the matmul
/// has two.
TEST(Retie, TheBiasOfAKerasLayerIsOne) {
  for (const bool is_keras : {false, true}) {
    FileOfWeights file(is_keras ? "tf2onnx" : "pytorch");
    file.proto.add_opset_import()->set_version(17);
    file.tensor("one", {1, 8}, {1, 2, 3, 4, 0, 0, 0, 0});
    file.tensor("both", {1, 6}, {1, 2, 3, 0, 0, 0});
    add_node(file.graph(), "LSTM", {"x", "w", "r", "one"}, "a");
    auto& after = *add_node(file.graph(), "GRU", {"a", "w", "r", "both"}, "y").add_attribute();
    after.set_name("linear_before_reset");
    after.set_type(2);
    after.set_i(1);
    retie(file.proto, "");
    Strings names;
    for (const auto& tensor : file.graph().initializer()) names.insert(tensor.name());
    EXPECT_EQ(names, is_keras ? (Strings{"both", "one.input", "one.pads"}) : (Strings{"both", "one"}));
    const auto& last = file.graph().node(file.graph().node_size() - 1);
    EXPECT_EQ(last.op_type(), is_keras ? "Pad" : "GRU");
  }
}

/// The exporter writes an RNN as linear layers with weights of other names.
TEST(WeightsFile, OperandsOfALinearCallAreParametersByTheirPlace) {
  FileOfWeights file;
  file.signature("p_w: PARAMETER target='rnn.weight_hh_l0'\np_b: PARAMETER target='rnn.bias_hh_l0'\n");
  file.tensor("val_0", {2, 3}, {1, 2, 3, 4, 5, 6});
  file.call(
      add_node(file.graph(), "MatMul", {"x", "val_0"}, "y"),
      "%linear : call_function[target=torch.ops.aten.linear.default](args = (%x, %p_w, %p_b), kwargs = {})");
  const Untied untied = untie(file.proto, {});
  EXPECT_EQ(file.graph().initializer(0).name(), "rnn.weight_hh_l0");
  EXPECT_EQ(untied.transposed, Strings{"rnn.weight_hh_l0"});
}

/// The older exporter names a folded transpose after the operator, and the node after the layer.
TEST(WeightsFile, LinearLayersOfTheOlderExporter) {
  FileOfWeights file("pytorch");
  for (const char* name : {"onnx::MatMul_5", "onnx::MatMul_6", "onnx::MatMul_7"})
    file.tensor(name, {2, 2}, {1, 2, 3, static_cast<float>(name[13])});
  const auto node = [&](const char* op, std::initializer_list<const char*> inputs, const char* output,
                        const char* name) { add_node(file.graph(), op, inputs, output).set_name(name); };
  node("MatMul", {"x", "onnx::MatMul_5"}, "a", "/layers.0/fc/MatMul");
  node("Add", {"net.layers.0.fc.bias", "a"}, "b", "/layers.0/fc/Add");
  node("MatMul", {"b", "onnx::MatMul_6"}, "c", "/attention/MatMul");  // of a module that does more
  node("Softmax", {"c"}, "d", "/attention/Softmax");
  node("MatMul", {"d", "onnx::MatMul_7"}, "y", "/MatMul");  // of the whole net
  const Untied untied = untie(file.proto, {});
  EXPECT_EQ(untied.transposed, Strings{"net.layers.0.fc.weight"});
  Strings names;
  for (const auto& tensor : file.graph().initializer()) names.insert(tensor.name());
  EXPECT_EQ(names, (Strings{"net.layers.0.fc.weight", "onnx::MatMul_6", "onnx::MatMul_7"}));
}

TEST(KnownWeights, LiteralsOfTensorFlow) {
  FileOfWeights file("tf2onnx");
  for (const char* name : {"net/scale/ReadVariableOp:0", "net/shift/Sub/y:0", "net/table/Const:0",
                           "const_fold_opt__1", "ConstantFolding/net/truediv_recip:0", "net/zeros:0"})
    file.tensor(name, {2}, {1, 2});
  file.tensor("net/kernel/Const:0", {2, 2}, {1, 2, 3, 4});
  const char* before = "x";
  for (const auto& tensor : file.graph().initializer()) {
    add_node(file.graph(), tensor.dims_size() == 1 ? "Mul" : "MatMul", {before, tensor.name().c_str()},
             text("after_", tensor.name()).c_str());
    before = file.graph().node(file.graph().node_size() - 1).output(0).c_str();
  }
  EXPECT_EQ(file.buffers(), (Strings{"ConstantFolding/net/truediv_recip:0", "net/shift/Sub/y:0",
                                     "net/table/Const:0", "net/zeros:0"}));
}

/// PyTorch's newer exporter folds the transpose of a linear layer's weight [outputs, inputs].
TEST(WeightsFile, LinearLayersHaveTheLayoutOfPyTorch) {
  FileOfWeights file;
  file.signature("p_fc_weight: PARAMETER target='fc.weight'\np_w: PARAMETER target='w'\n");
  file.tensor("val_0", {2, 3}, {1, 2, 3, 4, 5, 6});
  file.tensor("w", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  file.call(add_node(file.graph(), "MatMul", {"x", "val_0"}, "a"),
            "%linear : call_function[target=torch.ops.aten.linear.default](args = (%x, %p_fc_weight), kwargs "
            "= {})");
  file.call(
      add_node(file.graph(), "MatMul", {"a", "w"}, "y"),
      "%matmul : call_function[target=torch.ops.aten.matmul.default](args = (%linear, %p_w), kwargs = {})");
  const Untied untied = untie(file.proto, {});
  EXPECT_EQ(untied.transposed, Strings{"fc.weight"});

  const auto array = [](const char* name, std::vector<int64_t> dims, const std::vector<float>& elements) {
    const auto bytes = std::as_bytes(std::span(elements));
    return tools::Array{
        .name = name, .type = DType::F32, .dims = std::move(dims), .bytes = {bytes.begin(), bytes.end()}};
  };
  const std::vector<float> turned{10, 40, 20, 50, 30, 60}, plain{9, 8, 7, 6, 5, 4, 3, 2, 1};
  const auto replaced = replace_weights(
      file.proto, {array("fc.weight", {3, 2}, turned), array("w", {3, 3}, plain)}, untied.transposed, "");
  ASSERT_TRUE(replaced.ok()) << replaced.status().message();
  const auto held = [&](const char* name) {
    const std::string& bytes = weights_of(file.proto).at(name)->raw_data();
    std::vector<float> elements(bytes.size() / sizeof(float));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  };
  EXPECT_EQ(held("fc.weight"), (std::vector<float>{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(held("w"), plain);
  const auto refused =
      replace_weights(file.proto, {array("fc.weight", {2, 3}, turned)}, untied.transposed, "");
  EXPECT_NE(refused.status().message().find("expected the shape [3,2], found [2,3]"), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace librt::onnx
