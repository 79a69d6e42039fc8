// A model of one ONNX node with constant or open inputs, and its results after import, by the reference
// evaluator.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/pipeline.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::test {

/// The ONNX data type number of an element type.
template <class T>
constexpr int onnx_type_of() {
  if constexpr (std::is_same_v<T, float>) return 1;
  if constexpr (std::is_same_v<T, uint8_t>) return 2;
  if constexpr (std::is_same_v<T, int8_t>) return 3;
  if constexpr (std::is_same_v<T, int32_t>) return 6;
  if constexpr (std::is_same_v<T, int64_t>) return 7;
  return 0;
}

class NodeModel {
 public:
  explicit NodeModel(std::string_view op, int outputs = 1, std::string_view domain = "com.microsoft") {
    proto_.set_ir_version(8);
    proto_.add_opset_import()->set_version(17);
    if (!domain.empty()) {
      auto& import = *proto_.add_opset_import();
      import.set_domain(std::string(domain));
      import.set_version(1);
    }
    node_ = graph().add_node();
    node_->set_op_type(std::string(op));
    node_->set_domain(std::string(domain));
    for (int i = 0; i < outputs; ++i) {
      node_->add_output("y" + std::to_string(i));
      graph().add_output()->set_name(node_->output(i));
    }
  }
  NodeModel(NodeModel&&) = default;  // node_ stays valid

  template <class T>
  NodeModel& constant(const std::vector<int64_t>& dims, const std::vector<T>& data) {
    auto& tensor = *graph().add_initializer();
    tensor.set_name("c" + std::to_string(node_->input_size()));
    tensor.set_data_type(onnx_type_of<T>());
    for (int64_t dim : dims) tensor.add_dims(dim);
    std::string bytes(data.size() * sizeof(T), '\0');
    if (!bytes.empty()) std::memcpy(bytes.data(), data.data(), bytes.size());
    tensor.set_raw_data(bytes);
    node_->add_input(tensor.name());
    return *this;
  }
  /// An input of the model with this value in values(); `open` names axes whose extents are not known at
  /// import.
  template <class T>
  NodeModel& input(const std::vector<int64_t>& dims, const std::vector<T>& data,
                   const std::map<size_t, std::string>& open) {
    auto& made = *graph().add_input();
    made.set_name("c" + std::to_string(node_->input_size()));
    auto& type = *made.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx_type_of<T>());
    Shape shape;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      auto& dim = *type.mutable_shape()->add_dim();
      if (const auto name = open.find(axis); name != open.end())
        dim.set_dim_param(name->second);
      else
        dim.set_dim_value(dims[axis]);
      shape.push_back(dims[axis]);
    }
    given_.emplace_back(TensorInfo{.dtype = dtype_of<T>(), .shape = shape});
    if (!data.empty()) std::memcpy(given_.back().bytes.data(), data.data(), data.size() * sizeof(T));
    node_->add_input(made.name());
    return *this;
  }
  /// A scalar.
  template <class T>
  NodeModel& number(T value) {
    return constant<T>({}, {value});
  }
  /// A vector of bool.
  NodeModel& condition(std::initializer_list<int64_t> dims, const std::vector<uint8_t>& data) {
    constant<uint8_t>(dims, data);
    graph().mutable_initializer(graph().initializer_size() - 1)->set_data_type(9);
    return *this;
  }
  NodeModel& absent(int count = 1) {
    for (int i = 0; i < count; ++i) node_->add_input("");
    return *this;
  }
  NodeModel& integer(std::string_view name, int64_t value) {
    auto& attribute = add(name, 2);
    attribute.set_i(value);
    return *this;
  }
  NodeModel& real(std::string_view name, float value) {
    add(name, 1).set_f(value);
    return *this;
  }
  NodeModel& string(std::string_view name, std::string_view value) {
    add(name, 3).set_s(std::string(value));
    return *this;
  }
  NodeModel& integers(std::string_view name, std::initializer_list<int64_t> values) {
    auto& attribute = add(name, 7);
    for (int64_t value : values) attribute.add_ints(value);
    return *this;
  }
  NodeModel& reals(std::string_view name, std::initializer_list<float> values) {
    auto& attribute = add(name, 6);
    for (float value : values) attribute.add_floats(value);
    return *this;
  }

  Result<ModelGraph> convert() {
    const std::string text = proto_.SerializeAsString();
    return onnx::import_onnx_bytes(std::as_bytes(std::span(text)), {}, report);
  }
  /// Each output's elements; empty after a failure, which fails the test.
  std::vector<std::vector<double>> values() {
    auto model = convert();
    EXPECT_TRUE(model.ok()) << model.status().message() << (report.unsupported.empty() ? "" : ": ")
                            << (report.unsupported.empty() ? "" : report.unsupported[0].reason);
    std::vector<std::vector<double>> all(static_cast<size_t>(node_->output_size()));
    if (!model.ok()) return all;
    const Status expanded = compiler::expand_composites(model->entries[0].graph, {});
    EXPECT_TRUE(expanded.ok()) << expanded.message();
    std::vector<ConstTensorView> views;
    for (const ops::HostTensor& given : given_) views.push_back(given.view());
    const auto results =
        ops::evaluate_graph(model->entries[0].graph, views, nullptr, {}, ops::reference_value);
    EXPECT_TRUE(results.ok()) << results.status().message();
    for (size_t k = 0; results.ok() && k < all.size(); ++k)
      for (int64_t i = 0; i < (*results)[k].info.elements(); ++i)
        all[k].push_back(load_element((*results)[k].bytes.data(), (*results)[k].info.dtype, i));
    return all;
  }

  onnx::ImportReport report;

 private:
  rt_onnx::GraphProto& graph() { return *proto_.mutable_graph(); }
  rt_onnx::AttributeProto& add(std::string_view name, int type) {
    auto& attribute = *node_->add_attribute();
    attribute.set_name(std::string(name));
    attribute.set_type(type);
    return attribute;
  }

  template <class T>
  static constexpr DType dtype_of() {
    return std::is_same_v<T, float> ? DType::F32 : std::is_same_v<T, int32_t> ? DType::I32 : DType::I64;
  }

  rt_onnx::ModelProto proto_;
  std::vector<ops::HostTensor> given_;
  rt_onnx::NodeProto* node_ = nullptr;
};

/// Pseudorandom values of both signs.
inline std::vector<float> sample_values(size_t count, int seed = 1, float scale = 1) {
  std::vector<float> numbers(count);
  uint32_t state = 2463534242u + static_cast<uint32_t>(seed) * 7919u;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1);
  }
  return numbers;
}

/// An element, for formulas in f64.
inline double at(const std::vector<float>& data, size_t i) {
  return static_cast<double>(data[i]);
}

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

inline void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

}  // namespace librt::test
