// Writes the seeds of the fuzz targets that read ONNX's messages: make_onnx_seed MODELS TENSORS.
//
// MODELS: sample.onnx, a convolution with weights in raw bytes, an activation, shape arithmetic and a matmul
// with weights in a typed field; operators_N.onnx, a few operators each with one, two and three inputs, so
// that mutations start from every import function. TENSORS: data in raw bytes and in typed fields,
// tensor_NAME.pb.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tests/support/onnx_model.h"
#include "tools/onnx/import.h"

using librt::test::add_node;
using librt::test::kFloat;

namespace {

constexpr int kInt64 = 7;  // TensorProto's INT64

bool write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  return file.good();
}

bool write_tensors(const std::string& folder) {
  // Data types of onnx.proto: a name for the file, the number, bytes of raw data for 2 x 3 elements.
  struct Type {
    const char* name;
    int number;
    size_t bytes;
  };
  constexpr Type kTypes[] = {{"f32", 1, 24},  {"u8", 2, 6},    {"i64", 7, 48}, {"bool", 9, 6},
                             {"f16", 10, 12}, {"f64", 11, 48}, {"f8", 17, 6},  {"i4", 22, 3}};
  for (const Type& type : kTypes) {
    rt_onnx::TensorProto tensor;
    tensor.set_name("x");
    tensor.set_data_type(type.number);
    tensor.add_dims(2);
    tensor.add_dims(3);
    std::string raw(type.bytes, '\0');
    for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(type.number == 9 ? i % 2 : 37 * i);
    tensor.set_raw_data(raw);
    if (!write(folder + "/tensor_" + type.name + ".pb", tensor.SerializeAsString())) return false;
  }
  for (const int number : {1, 6, 7, 10}) {  // f32; i32; i64; f16, which int32_data holds
    rt_onnx::TensorProto tensor;
    tensor.set_data_type(number);
    tensor.add_dims(4);
    for (int i = 0; i < 4; ++i) {
      if (number == 1) tensor.add_float_data(0.5f * static_cast<float>(i));
      if (number == 6 || number == 10) tensor.add_int32_data(i - 1);
      if (number == 7) tensor.add_int64_data(i - 1);
    }
    if (!write(folder + "/tensor_field" + std::to_string(number) + ".pb", tensor.SerializeAsString()))
      return false;
  }
  return true;
}

rt_onnx::TensorProto& add_initializer(rt_onnx::GraphProto& graph, const char* name, int type,
                                      std::initializer_list<int64_t> dims) {
  auto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  return tensor;
}

bool write_sample(const std::string& path) {
  rt_onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  auto& graph = *model.mutable_graph();
  graph.set_name("seed");
  librt::test::set_value(*graph.add_input(), "x", {-1, 1, 4, 4});
  add_initializer(graph, "kernel", kFloat, {2, 1, 3, 3})
      .set_raw_data(std::string(2 * 9 * sizeof(float), '\x3c'));
  auto& matrix = add_initializer(graph, "matrix", kFloat, {32, 3});
  for (int i = 0; i < 96; ++i) matrix.add_float_data(0.01f * static_cast<float>(i));
  auto& shape = add_initializer(graph, "shape", kInt64, {2});
  shape.add_int64_data(0);
  shape.add_int64_data(-1);
  auto& pads = *add_node(graph, "Conv", {"x", "kernel"}, "conv").add_attribute();
  pads.set_name("pads");
  pads.set_type(7);  // a list of integers
  for (int i = 0; i < 4; ++i) pads.add_ints(1);
  add_node(graph, "Relu", {"conv"}, "relu");
  add_node(graph, "Reshape", {"relu", "shape"}, "flat");
  add_node(graph, "MatMul", {"flat", "matrix"}, "y");
  graph.add_output()->set_name("y");
  return write(path, model.SerializeAsString());
}

/// The operators, with an input that fits many of them, a weight, and integers.
bool write_operators(const std::string& path, std::span<const librt::onnx::SupportedOp> ops) {
  constexpr int kOpset = 20;
  rt_onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(kOpset);
  auto& graph = *model.mutable_graph();
  graph.set_name("operators");
  librt::test::set_value(*graph.add_input(), "x", {-1, 4, 4});
  auto& weight = add_initializer(graph, "weight", kFloat, {4, 4});
  for (int i = 0; i < 16; ++i) weight.add_float_data(0.25f * static_cast<float>(i));
  auto& integers = add_initializer(graph, "integers", kInt64, {2});
  for (long integer : {1, 2}) integers.add_int64_data(integer);
  for (const librt::onnx::SupportedOp& op : ops) {
    if (op.domain != "ai.onnx") {
      auto& import = *model.add_opset_import();
      import.set_domain(std::string(op.domain));
      import.set_version(1);
    }
    for (int inputs = 1; inputs <= 3; ++inputs) {
      auto& node = *graph.add_node();
      node.set_op_type(std::string(op.op));
      if (op.domain != "ai.onnx") node.set_domain(std::string(op.domain));
      node.set_name(std::string(op.op) + std::to_string(inputs));
      node.add_output(node.name());
      constexpr const char* kInputs[] = {"x", "weight", "integers"};
      for (int i = 0; i < inputs; ++i) node.add_input(kInputs[i]);
      graph.add_output()->set_name(node.name());
    }
  }
  return write(path, model.SerializeAsString());
}

bool write_models(const std::string& folder) {
  constexpr size_t kOperators = 8;  // in a model: few, so that a mutation changes a part of it that matters
  const std::vector<librt::onnx::SupportedOp> ops = librt::onnx::supported_ops();
  for (size_t first = 0; first < ops.size(); first += kOperators)
    if (!write_operators(folder + "/operators_" + std::to_string(first) + ".onnx",
                         std::span(ops).subspan(first, std::min(kOperators, ops.size() - first))))
      return false;
  return write_sample(folder + "/sample.onnx");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_onnx_seed MODELS TENSORS\n");
    return 2;
  }
  return write_models(argv[1]) && write_tensors(argv[2]) ? 0 : 3;
}
