#include "tests/differential/draft.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>

namespace librt::test {

namespace {

// AttributeProto's types.
constexpr int kFloat = 1, kInt = 2, kString = 3, kGraph = 5, kInts = 7;
// Values above it mean "to the end", not an extent.
constexpr int64_t kLargestExtent = 1'000'000;

void set_attribute(rt_onnx::AttributeProto& proto, const Attribute& attribute) {
  proto.set_name(attribute.name);
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
    proto.set_type(kInt);
    proto.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    proto.set_type(kFloat);
    proto.set_f(*real);
  } else if (const auto* word = std::get_if<std::string>(&attribute.value)) {
    proto.set_type(kString);
    proto.set_s(*word);
  } else if (const auto* list = std::get_if<Extents>(&attribute.value)) {
    proto.set_type(kInts);
    for (const int64_t each : *list) proto.add_ints(each);
  } else {
    proto.set_type(kGraph);
    *proto.mutable_g() = std::get<rt_onnx::GraphProto>(attribute.value);
  }
}

bool is_number(const std::string& dim) {
  return !dim.empty() && dim.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Draft::Draft(int its_opset) : opset(its_opset) {
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("differential");
}

rt_onnx::GraphProto& Draft::graph() {
  return bodies_.empty() ? *model.mutable_graph() : bodies_.back();
}

std::string Draft::input(const std::string& name, int type, const Names& dims) {
  auto& value = *model.mutable_graph()->add_input();
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const std::string& dim : dims) {
    if (is_number(dim))
      tensor.mutable_shape()->add_dim()->set_dim_value(std::stoll(dim));
    else
      tensor.mutable_shape()->add_dim()->set_dim_param(dim);
  }
  return name;
}

std::string Draft::node(const std::string& op, const Names& inputs, const Attributes& attributes) {
  return nodes(op, inputs, 1, attributes)[0];
}

Names Draft::nodes(const std::string& op, const Names& inputs, size_t outputs, const Attributes& attributes) {
  auto& node = *graph().add_node();
  node.set_op_type(op);
  for (const std::string& name : inputs) node.add_input(name);
  Names names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(fresh());
    node.add_output(names.back());
  }
  node.set_name(names[0]);
  for (const Attribute& attribute : attributes) set_attribute(*node.add_attribute(), attribute);
  return names;
}

std::string Draft::ints(const Extents& values) {
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("c" + std::to_string(next_++));
  tensor.set_data_type(kOnnxInt64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor.name();
}

std::string Draft::number(int64_t value) {
  std::string name = ints({value});
  auto& initializers = *model.mutable_graph()->mutable_initializer();
  initializers[initializers.size() - 1].clear_dims();
  return name;
}

std::string Draft::floats(const Extents& dims, const std::vector<float>& values) {
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("c" + std::to_string(next_++));
  tensor.set_data_type(kOnnxFloat);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  for (const float value : values) tensor.add_float_data(value);
  return tensor.name();
}

std::string Draft::flag(bool value) {
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("c" + std::to_string(next_++));
  tensor.set_data_type(kOnnxBool);
  tensor.add_int32_data(value ? 1 : 0);
  return tensor.name();
}

void Draft::begin_body() {
  bodies_.emplace_back().set_name("body" + std::to_string(next_++));
}

std::string Draft::body_input(int type, int rank) {
  auto& value = *graph().add_input();
  value.set_name(fresh());
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (int i = 0; i < rank; ++i) tensor.mutable_shape()->add_dim();
  return value.name();
}

rt_onnx::GraphProto Draft::take_body(const Names& outputs) {
  for (const std::string& name : outputs) graph().add_output()->set_name(name);
  rt_onnx::GraphProto body = std::move(bodies_.back());
  bodies_.pop_back();
  return body;
}

void Draft::set_outputs(const Names& names) {
  model.mutable_graph()->clear_output();
  for (const std::string& name : names) model.mutable_graph()->add_output()->set_name(name);
}

rt_onnx::ModelProto with_extents(const rt_onnx::ModelProto& model, const Assignment& extents) {
  rt_onnx::ModelProto fixed = model;
  for (auto& input : *fixed.mutable_graph()->mutable_input())
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      if (!dim.dim_param().empty()) {
        dim.set_dim_value(extents.at(std::string(dim.dim_param())));
        dim.clear_dim_param();
      }
  return fixed;
}

Names symbols_of(const rt_onnx::ModelProto& model) {
  std::set<std::string> names;
  for (const auto& input : model.graph().input())
    for (const auto& dim : input.type().tensor_type().shape().dim())
      if (!dim.dim_param().empty()) names.insert(dim.dim_param());
  return {names.begin(), names.end()};
}

namespace {

void widen(int64_t& largest, int64_t number) {
  if (number == std::numeric_limits<int64_t>::min()) return;
  if (std::abs(number) <= kLargestExtent) largest = std::max(largest, std::abs(number));
}

void widen(int64_t& largest, const rt_onnx::GraphProto& graph) {
  for (const auto& node : graph.node())
    for (const auto& attribute : node.attribute()) {
      if (attribute.type() == kInt) widen(largest, attribute.i());
      for (const int64_t number : attribute.ints()) widen(largest, number);
      if (attribute.type() == kGraph) widen(largest, attribute.g());
    }
}

}  // namespace

int64_t largest_constant(const rt_onnx::ModelProto& model) {
  int64_t largest = 1;
  widen(largest, model.graph());
  for (const auto& tensor : model.graph().initializer()) {
    for (const int64_t number : tensor.int64_data()) widen(largest, number);
    for (const int64_t dim : tensor.dims()) widen(largest, dim);
  }
  return largest;
}

namespace {

std::string shown(int64_t number) {
  if (number == std::numeric_limits<int64_t>::max()) return "MAX";
  if (number == std::numeric_limits<int64_t>::min()) return "MIN";
  return std::to_string(number);
}

template <class List>
std::string listed(const List& numbers) {
  std::string line = "[";
  for (const int64_t number : numbers) line += (line.size() > 1 ? "," : "") + shown(number);
  return line + "]";
}

std::string shown(const rt_onnx::TensorProto& tensor) {
  if (tensor.data_type() == kOnnxInt64)
    return tensor.dims_size() == 0 ? shown(tensor.int64_data(0)) : listed(tensor.int64_data());
  if (tensor.data_type() == kOnnxBool) return tensor.int32_data(0) != 0 ? "true" : "false";
  std::string line = "f32" + listed(tensor.dims());
  if (tensor.float_data_size() <= 4)
    for (const float value : tensor.float_data()) line += " " + std::to_string(value);
  return line;
}

using Constants = std::map<std::string, std::string>;

void append_graph(std::string& out, const rt_onnx::GraphProto& graph, const Constants& constants,
                  const std::string& indent) {
  for (const auto& node : graph.node()) {
    out += indent;
    for (int i = 0; i < node.output_size(); ++i) out += (i > 0 ? ", " : "") + std::string(node.output(i));
    out += " = " + std::string(node.op_type()) + "(";
    for (int i = 0; i < node.input_size(); ++i) {
      const auto constant = constants.find(std::string(node.input(i)));
      const std::string name = constant != constants.end() ? constant->second : std::string(node.input(i));
      out += (i > 0 ? ", " : "") + (name.empty() ? "-" : name);
    }
    std::string bodies;
    for (const auto& attribute : node.attribute()) {
      if (attribute.type() == kGraph) {
        bodies += indent + "  " + std::string(attribute.name()) + "(";
        for (const auto& input : attribute.g().input()) bodies += std::string(input.name()) + " ";
        bodies += "):\n";
        append_graph(bodies, attribute.g(), constants, indent + "    ");
        continue;
      }
      out += ", " + std::string(attribute.name()) + "=";
      if (attribute.type() == kInt) out += std::to_string(attribute.i());
      if (attribute.type() == kFloat) out += std::to_string(attribute.f());
      if (attribute.type() == kString) out += attribute.s();
      if (attribute.type() == kInts) out += listed(attribute.ints());
    }
    out += ")\n" + bodies;
  }
  out += indent + "return";
  for (const auto& output : graph.output()) out += " " + std::string(output.name());
  out += "\n";
}

}  // namespace

std::string readable(const rt_onnx::ModelProto& model) {
  std::string out = "  opset " + std::to_string(model.opset_import(0).version()) + ":";
  for (const auto& input : model.graph().input()) {
    const auto& tensor = input.type().tensor_type();
    out += " " + std::string(input.name()) + (tensor.elem_type() == kOnnxInt64 ? " i64[" : " f32[");
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
      const auto& dim = tensor.shape().dim(i);
      out += (i > 0 ? "," : "") +
             (dim.dim_param().empty() ? std::to_string(dim.dim_value()) : std::string(dim.dim_param()));
    }
    out += "]";
  }
  out += "\n";
  Constants constants;
  for (const auto& tensor : model.graph().initializer())
    constants[std::string(tensor.name())] = shown(tensor);
  append_graph(out, model.graph(), constants, "  ");
  return out;
}

}  // namespace librt::test
