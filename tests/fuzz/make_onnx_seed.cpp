// Writes the seeds of the fuzz targets that read ONNX's messages: make_onnx_seed MODEL FOLDER.
//
// MODEL: a convolution with weights in raw bytes, an activation, shape arithmetic and a matmul with weights
// in a typed field. FOLDER: tensors with data in raw bytes and in typed fields, tensor_NAME.pb.
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/onnx_model.h"

using librt::test::add_node;

namespace {

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_onnx_seed MODEL FOLDER\n");
    return 2;
  }
  rt_onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  auto& graph = *model.mutable_graph();
  graph.set_name("seed");
  librt::test::set_value(*graph.add_input(), "x", {-1, 1, 4, 4});
  auto& kernel = *graph.add_initializer();
  kernel.set_name("kernel");
  kernel.set_data_type(1);
  for (long dim : {2, 1, 3, 3}) kernel.add_dims(dim);
  kernel.set_raw_data(std::string(2 * 9 * sizeof(float), '\x3c'));
  auto& matrix = *graph.add_initializer();
  matrix.set_name("matrix");
  matrix.set_data_type(1);
  for (long dim : {32, 3}) matrix.add_dims(dim);
  for (int i = 0; i < 96; ++i) matrix.add_float_data(0.01f * static_cast<float>(i));
  auto& shape = *graph.add_initializer();
  shape.set_name("shape");
  shape.set_data_type(7);
  shape.add_dims(2);
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
  return write(argv[1], model.SerializeAsString()) && write_tensors(argv[2]) ? 0 : 3;
}
