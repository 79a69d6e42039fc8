// ONNX models built from protobuf messages, for tests of the importer.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/ops/evaluate.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::test {

class ImporterModel {
 public:
  enum Type { kFloat = 1, kUint8 = 2, kInt32 = 6, kInt64 = 7, kBool = 9 };
  using Integers = std::vector<std::pair<std::string, int64_t>>;

  explicit ImporterModel(int64_t opset) {
    proto.set_ir_version(10);
    import("", opset);
  }
  void import(const std::string& domain, int64_t version) {
    auto* opset = proto.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  rt_onnx::GraphProto& graph() { return *proto.mutable_graph(); }

  /// Dimensions: an extent, or a symbol's name.
  void input(const std::string& name, const std::vector<std::string>& dims, int type = kFloat) {
    auto* value = graph().add_input();
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const std::string& dim : dims)
      if (dim.find_first_not_of("0123456789") == std::string::npos)
        tensor->mutable_shape()->add_dim()->set_dim_value(std::stoll(dim));
      else
        tensor->mutable_shape()->add_dim()->set_dim_param(dim);
  }
  /// A body's input; its type and shape follow from the node.
  static void input_of(rt_onnx::GraphProto& body, const std::string& name) {
    body.add_input()->set_name(name);
  }
  void output(const std::string& name) { graph().add_output()->set_name(name); }
  void integers(const std::string& name, const std::vector<int64_t>& dims,
                const std::vector<int64_t>& numbers) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(kInt64);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    for (const int64_t number : numbers) tensor->add_int64_data(number);
  }
  void floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& numbers) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(kFloat);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    for (const float number : numbers) tensor->add_float_data(number);
  }
  static rt_onnx::NodeProto& node_of(rt_onnx::GraphProto& graph, const std::string& op,
                                     const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs,
                                     const Integers& attributes = {}) {
    auto& node = *graph.add_node();
    node.set_op_type(op);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    for (const auto& [name, number] : attributes) {
      auto* attribute = node.add_attribute();
      attribute->set_name(name);
      attribute->set_type(2);
      attribute->set_i(number);
    }
    return node;
  }
  rt_onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs, const Integers& attributes = {}) {
    return node_of(graph(), op, inputs, outputs, attributes);
  }
  static rt_onnx::GraphProto& body(rt_onnx::NodeProto& node, const std::string& attribute) {
    auto* added = node.add_attribute();
    added->set_name(attribute);
    added->set_type(5);
    return *added->mutable_g();
  }

  Result<ModelGraph> convert(const onnx::ImportOptions& options = {}) {
    const std::string bytes = proto.SerializeAsString();
    report = {};
    return onnx::import_onnx_bytes(std::as_bytes(std::span(bytes)), options, report);
  }
  /// Why nodes could not be imported, with the suggested help.
  std::string reasons() const {
    std::string all;
    for (const auto& node : report.unsupported) all += node.reason + "; " + node.help + "\n";
    return all;
  }

  rt_onnx::ModelProto proto;
  onnx::ImportReport report;
};

inline std::vector<float> values_of(const ops::HostTensor& tensor) {
  std::vector<float> numbers(tensor.bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), tensor.bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

}  // namespace librt::test
