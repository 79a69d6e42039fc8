// Shared by programs that write small ONNX models for tests.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "tools/onnx/onnx.pb.h"

namespace librt::test {

inline constexpr int kFloat = 1;  ///< TensorProto's FLOAT

/// A float input or output of a graph; an extent below 0 is the symbol "batch".
inline void set_value(rt_onnx::ValueInfoProto& value, const char* name, std::initializer_list<int64_t> dims) {
  value.set_name(name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(kFloat);
  for (const int64_t dim : dims) {
    if (dim < 0)
      type->mutable_shape()->add_dim()->set_dim_param("batch");
    else
      type->mutable_shape()->add_dim()->set_dim_value(dim);
  }
}

/// A node with one result, named after it.
inline rt_onnx::NodeProto& add_node(rt_onnx::GraphProto& graph, const char* op,
                                    std::initializer_list<const char*> inputs, const char* output) {
  auto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(output);
  for (const char* input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

}  // namespace librt::test
