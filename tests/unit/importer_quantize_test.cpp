// Import of low-bit types, and quantized operators as integer arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

enum Type {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kFloat8E4M3FN = 17,
  kFloat8E5M2FNUZ = 20,
  kInt4 = 22,
  kUint2 = 25
};

struct Model {
  Model() {
    proto.set_ir_version(11);
    proto.add_opset_import()->set_version(23);
  }
  rt_onnx::GraphProto& graph() { return *proto.mutable_graph(); }
  rt_onnx::TensorProto& constant(const std::string& name, int type, std::vector<int64_t> dims,
                                 const std::string& bytes) {
    auto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (int64_t dim : dims) tensor.add_dims(dim);
    tensor.set_raw_data(bytes);
    return tensor;
  }
  void number(const std::string& name, float value) {
    constant(name, kFloat, {}, std::string(reinterpret_cast<const char*>(&value), sizeof value));
  }
  void input(const std::string& name, int type, std::vector<int64_t> dims) {
    auto& value = *graph().add_input();
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (int64_t dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
  }
  rt_onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                           const std::string& output) {
    auto& node = *graph().add_node();
    node.set_op_type(op);
    for (const std::string& name : inputs) node.add_input(name);
    node.add_output(output);
    return node;
  }
  static void integer(rt_onnx::NodeProto& node, const std::string& name, int64_t value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(2);
    attribute.set_i(value);
  }
  Result<ModelGraph> convert() {
    graph().add_output()->set_name("y");
    const std::string bytes = proto.SerializeAsString();
    ImportReport report;
    return import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
  }
  /// The result of a model without inputs.
  std::vector<double> values() {
    const auto model = convert();
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (!model.ok()) return {};
    const auto result = ops::evaluate_graph(model->entries[0].graph, {}, nullptr, {}, ops::reference_value);
    EXPECT_TRUE(result.ok()) << result.status().message();
    std::vector<double> numbers;
    if (result.ok())
      for (int64_t i = 0; i < result->front().info.elements(); ++i)
        numbers.push_back(load_element(result->front().bytes.data(), result->front().info.dtype, i));
    return numbers;
  }
  rt_onnx::ModelProto proto;
};

TEST(ImporterQuantize, PackedIntegersAreWidened) {
  Model model;
  model.constant("x", kInt4, {3}, std::string("\x78\x03", 2));
  model.number("scale", 0.5f);
  model.node("DequantizeLinear", {"x", "scale"}, "y");
  EXPECT_EQ(model.values(), (std::vector<double>{-4, 3.5, 1.5}));
}

TEST(ImporterQuantize, PackedIntegersInTypedFields) {
  Model model;
  auto& x = model.constant("x", kUint2, {5}, "");
  x.clear_raw_data();
  x.add_int32_data(0xe4);  // 0 1 2 3
  x.add_int32_data(0x02);
  Model::integer(model.node("Cast", {"x"}, "y"), "to", kInt32);
  EXPECT_EQ(model.values(), (std::vector<double>{0, 1, 2, 3, 2}));
}

TEST(ImporterQuantize, PackedBytesAreCounted) {
  Model model;
  model.constant("x", kInt4, {3}, std::string(3, '\0'));
  Model::integer(model.node("Cast", {"x"}, "y"), "to", kInt32);
  const auto result = model.convert();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("2 bytes"), std::string::npos) << result.status().message();
}

TEST(ImporterQuantize, NarrownessFollowsTheValue) {
  Model model;
  model.constant("like", kInt4, {1, 2}, std::string("\x00", 1));
  const int32_t numbers[] = {9, -9, 7};
  model.constant("x", kInt32, {3}, std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
  const int64_t shape = 2;
  model.constant("shape", 7, {1}, std::string(reinterpret_cast<const char*>(&shape), sizeof shape));
  model.node("Reshape", {"like", "shape"}, "flat");
  model.node("CastLike", {"x", "flat"}, "y");
  EXPECT_EQ(model.values(), (std::vector<double>{-7, 7, 7}));
}

// Values read from a file equal the values that NarrowFloat rounds to.
TEST(ImporterQuantize, EightBitFloatsDecodeToTheirFormat) {
  for (int type = kFloat8E4M3FN; type <= kFloat8E5M2FNUZ; ++type) {
    std::string quantized;
    for (int code = 0; code < 256; ++code) quantized.push_back(static_cast<char>(code));
    Model plain;
    plain.constant("x", type, {256}, quantized);
    Model::integer(plain.node("Cast", {"x"}, "y"), "to", kFloat);
    const std::vector<double> numbers = plain.values();
    ASSERT_EQ(numbers.size(), 256u);
    double largest = 0;
    op::NarrowFloatAttributes attributes;
    attributes.format = static_cast<op::NarrowFormat>(type - kFloat8E4M3FN);
    Node node;
    node.op = make_op(std::move(attributes));
    const TensorInfo info{.dtype = DType::F32, .shape = {256}};
    ops::HostTensor x(info), y(info);
    for (int64_t i = 0; i < 256; ++i)
      store_element(x.bytes.data(), DType::F32, i, numbers[static_cast<size_t>(i)]);
    const Operand operand{.present = true, .info = info};
    const std::vector<TensorInfo> infos{info};
    const ConstTensorView view = std::as_const(x).view();
    const TensorView result = y.view();
    ASSERT_TRUE(
        ops::reference_value(OpKind::NarrowFloat)({node, {&operand, 1}, infos}, {&view, 1}, {&result, 1})
            .ok());
    for (int64_t i = 0; i < 256; ++i) {
      const double want = numbers[static_cast<size_t>(i)], got = load_element(y.bytes.data(), DType::F32, i);
      EXPECT_EQ(std::isnan(got), std::isnan(want)) << "type " << type << ", code " << i;
      if (std::isfinite(want)) {
        EXPECT_EQ(got, want) << "type " << type << ", code " << i;
      }
      if (std::isfinite(want)) largest = std::max(largest, want);
    }
    EXPECT_EQ(largest, type == kFloat8E4M3FN ? 448.0 : type == kFloat8E4M3FN + 1 ? 240.0 : 57344.0);
  }
}

TEST(ImporterQuantize, QuantizedConvolutionStaysInIntegers) {
  Model model;
  model.input("x", kUint8, {1, 2, 4, 4});
  model.constant("w", kInt8, {3, 2, 3, 3}, std::string(54, '\1'));
  model.constant("bias", kInt32, {3}, std::string(12, '\0'));
  model.constant("zero", kUint8, {}, std::string(1, '\5'));
  model.constant("w_zero", kInt8, {}, std::string(1, '\0'));
  model.number("scale", 0.5f);
  model.node("QLinearConv", {"x", "scale", "zero", "w", "scale", "w_zero", "scale", "zero", "bias"}, "y");
  const auto result = model.convert();
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Graph& graph = result->entries[0].graph;
  int matmuls = 0, roundings = 0;
  for (const Node& node : graph.nodes) {
    matmuls += node.kind() == OpKind::ConvInteger;
    roundings += node.kind() == OpKind::Requantize;
    EXPECT_NE(node.kind(), OpKind::DequantizeLinear);
    EXPECT_NE(node.kind(), OpKind::Conv);
  }
  EXPECT_EQ(matmuls, 1);
  EXPECT_EQ(roundings, 1);
  EXPECT_EQ(graph[graph.outputs[0]].dtype, DType::U8);
}

TEST(ImporterQuantize, ZeroPointAndOutputTypeMustAgree) {
  Model model;
  model.input("x", kFloat, {3});
  model.number("scale", 1);
  model.constant("zero", kUint8, {}, std::string(1, '\0'));
  Model::integer(model.node("QuantizeLinear", {"x", "scale", "zero"}, "y"), "output_dtype", kInt8);
  const auto result = model.convert();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("output_dtype is int8"), std::string::npos)
      << result.status().message();
}

/// y of a node of QONNX for x.
std::vector<float> quantized_by(rt_onnx::NodeProto& node, Model& model, const std::vector<float>& x) {
  node.set_domain("qonnx.custom_op.general");
  auto* opset = model.proto.add_opset_import();
  opset->set_domain("qonnx.custom_op.general");
  opset->set_version(1);
  model.graph().add_output()->set_name("y");
  ImportReport report;
  const std::string bytes = model.proto.SerializeAsString();
  const auto imported = import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
  EXPECT_TRUE(imported.ok()) << imported.status().message();
  if (!imported.ok()) return {};
  const ConstTensorView view{x.data(), {DType::F32, {static_cast<int64_t>(x.size())}}};
  const auto outputs = ops::evaluate_graph(imported->entries[0].graph, {{view}});
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return {};
  const auto* y = reinterpret_cast<const float*>((*outputs)[0].bytes.data());
  return {y, y + x.size()};
}

// Expected values by qonnx/custom_op/general/quant.py, of 0.25 steps.
TEST(Qonnx, QuantRoundsAndClips) {
  const std::vector<float> x{-9, -1.1F, -0.375F, 0.125F, 0.375F, 0.6F, 1.5F, 9};
  const auto quantized = [&](float bits, float zero_point, bool is_signed, bool narrow, const char* mode) {
    Model model;
    model.input("x", kFloat, {8});
    model.number("scale", 0.25F);
    model.number("zero", zero_point);
    model.number("bits", bits);
    auto& node = model.node("Quant", {"x", "scale", "zero", "bits"}, "y");
    Model::integer(node, "signed", is_signed);
    Model::integer(node, "narrow", narrow);
    auto& rounding = *node.add_attribute();
    rounding.set_name("rounding_mode");
    rounding.set_type(3);
    rounding.set_s(mode);
    return quantized_by(node, model, x);
  };
  using Values = std::vector<float>;
  EXPECT_EQ(quantized(4, 0, true, false, "ROUND"), (Values{-2, -1, -0.5F, 0, 0.5F, 0.5F, 1.5F, 1.75F}));
  EXPECT_EQ(quantized(4, 0, true, true, "ROUND"), (Values{-1.75F, -1, -0.5F, 0, 0.5F, 0.5F, 1.5F, 1.75F}));
  EXPECT_EQ(quantized(2, 0, false, false, "FLOOR"), (Values{0, 0, 0, 0, 0.25F, 0.5F, 0.75F, 0.75F}));
  EXPECT_EQ(quantized(2, 0, false, true, "CEIL"), (Values{0, 0, 0, 0.25F, 0.5F, 0.5F, 0.5F, 0.5F}));
  EXPECT_EQ(quantized(4, 0, true, false, "ROUND_TO_ZERO"),
            (Values{-2, -1, -0.25F, 0, 0.25F, 0.5F, 1.5F, 1.75F}));
  EXPECT_EQ(quantized(3, 2, false, false, "ROUND"),
            (Values{-0.5F, -0.5F, -0.5F, 0, 0.5F, 0.5F, 1.25F, 1.25F}));
}

TEST(Qonnx, BipolarQuantIsTheSign) {
  Model model;
  model.input("x", kFloat, {4});
  model.number("scale", 0.5F);
  EXPECT_EQ(quantized_by(model.node("BipolarQuant", {"x", "scale"}, "y"), model, {-3, -0.1F, 0, 2}),
            (std::vector<float>{-0.5F, -0.5F, 0.5F, 0.5F}));
}

}  // namespace
}  // namespace librt::onnx
