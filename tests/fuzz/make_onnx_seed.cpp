// Writes a small ONNX model, the seed of the importer's fuzz test: a convolution with weights in raw bytes,
// an activation, shape arithmetic and a matmul with weights in a typed field.
#include <cstdio>
#include <fstream>

#include "tests/support/onnx_model.h"

using librt::test::add_node;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
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
  std::ofstream file(argv[1], std::ios::binary);
  file << model.SerializeAsString();
  file.close();
  return file ? 0 : 3;
}
