#include "tools/onnx/weights_file.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/convert_floats.h"
#include "tools/data/file.h"
#include "tools/data/nearest_name.h"
#include "tools/onnx/code_constants.h"
#include "tools/onnx/initializer.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

constexpr size_t kMostListed = 10;

/// " (did you mean 'NAME'?)" for the most similar name of a weight, if one is similar.
std::string suggestion(const std::string& name, const Weights& weights) {
  if (weights.size() > 10'000) return {};
  tools::NearestName nearest(name);
  for (const auto& [known, tensor] : weights) nearest.consider(known);
  const std::string question = nearest.question();
  return question.empty() ? "" : " (" + question + ")";
}

std::string problem_of(const tools::Array& array, const rt_onnx::TensorProto& tensor, bool is_transposed) {
  std::string error;
  auto outline = tools::outline_of(tensor, error);
  if (!outline) return error;
  if (is_transposed) std::reverse(outline->dims.begin(), outline->dims.end());
  if (outline->narrow != nullptr)
    return text("the model's weight is ", tools::onnx_type_name(tensor.data_type()),
                ", which cannot be replaced");
  if (outline->dims != array.dims) {
    std::vector<int64_t> reversed(array.dims.rbegin(), array.dims.rend());
    const bool transposed = !is_transposed && array.dims.size() == 2 && reversed == outline->dims;
    return text("expected the shape ", tools::shape_text(outline->dims), ", found ",
                tools::shape_text(array.dims), transposed ? "; the model stores it transposed" : "");
  }
  const bool widens = outline->type == DType::F32 && (array.type == DType::F16 || array.type == DType::BF16);
  if (outline->type != array.type && !widens)
    return text("expected ", name_of(outline->type), ", found ", name_of(array.type));
  return {};
}

void set_data(rt_onnx::TensorProto& tensor, const tools::Array& array) {
  std::string error;
  const auto outline = tools::outline_of(tensor, error);
  tools::clear_elements(tensor);
  if (outline->type == array.type) {
    tensor.set_raw_data(array.bytes.data(), array.bytes.size());
    return;
  }
  std::string wide(outline->bytes, '\0');
  convert_floats(array.bytes.data(), array.type, wide.data(), DType::F32,
                 static_cast<int64_t>(wide.size() / sizeof(float)));
  tensor.set_raw_data(std::move(wide));
}

}  // namespace

rt_onnx::TensorProto* tensor_of_constant(rt_onnx::NodeProto& node) {
  if (node.op_type() != "Constant" || node.output_size() != 1) return nullptr;
  for (auto& attribute : *node.mutable_attribute())
    if (attribute.name() == "value" && attribute.has_t()) return attribute.mutable_t();
  return nullptr;
}

Weights weights_of(rt_onnx::ModelProto& model) {
  Weights weights;
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  for (auto& tensor : *graph.mutable_initializer()) weights[tensor.name()] = &tensor;
  const auto add_constants = [&weights](auto& nodes) {
    for (auto& node : nodes)
      if (auto* tensor = tensor_of_constant(node)) weights.try_emplace(node.output(0), tensor);
  };
  add_constants(*graph.mutable_node());
  for (auto& function : *model.mutable_functions()) add_constants(*function.mutable_node());
  return weights;
}

Result<ReplacedWeights> replace_weights(rt_onnx::ModelProto& model, const std::vector<tools::Array>& arrays,
                                        const std::set<std::string>& turned,
                                        const std::string& external_folder) {
  const Weights weights = weights_of(model);
  const std::set<std::string> constants = unnamed_constants(model, external_folder);
  std::string problems;
  size_t count = 0;
  for (const tools::Array& array : arrays) {
    const auto found = weights.find(array.name);
    const std::string problem = found == weights.end()
                                    ? "the model has no weight of this name" + suggestion(array.name, weights)
                                    : problem_of(array, *found->second, turned.contains(array.name));
    if (problem.empty()) continue;
    if (++count <= kMostListed) append(problems, "\n  ", tools::in_quotes(array.name), ": ", problem);
  }
  if (count > kMostListed) append(problems, "\n  and ", count - kMostListed, " others");
  if (count > 0)
    return invalid_argument(
        count, count == 1 ? " tensor does" : " tensors do", " not fit the model", problems,
        "\n  rename or leave out what does not belong to it; --export-safetensors writes the "
        "names and shapes that fit");
  ReplacedWeights replaced{.count = arrays.size(), .kept = {}};
  std::set<std::string_view> names;
  for (const tools::Array& array : arrays) {
    set_data(*weights.at(array.name), turned.contains(array.name) ? transposed(array) : array);
    names.insert(array.name);
  }
  for (const auto& [name, tensor] : weights) {
    const bool is_replaced = names.contains(name);
    const auto type = tools::element_type_of_onnx(tensor->data_type());
    if (!is_replaced && tensor->dims_size() > 0 && type && is_float(*type) && !constants.contains(name))
      replaced.kept.push_back(name);
  }
  return replaced;
}

Result<tools::Array> weight_array(const std::string& name, const rt_onnx::TensorProto& tensor,
                                  const std::string& external_folder) {
  rt_onnx::TensorProto copy = tensor;
  auto read = InitializerReader(external_folder).read(copy);
  if (!read.ok()) return std::move(read).status().in("weight '", name, "'");
  const auto dims = read->info.shape.dims();
  tools::Array array{.name = name, .type = read->info.dtype, .dims = {dims.begin(), dims.end()}, .bytes = {}};
  array.bytes.assign(read->data.data, read->data.data + read->data.size);
  return array;
}

tools::Array transposed(const tools::Array& array) {
  tools::Array result{
      .name = array.name, .type = array.type, .dims = {array.dims.rbegin(), array.dims.rend()}, .bytes = {}};
  result.bytes.resize(array.bytes.size());
  const auto rows = static_cast<size_t>(array.dims[0]), columns = static_cast<size_t>(array.dims[1]);
  const size_t element = size_of(array.type);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::memcpy(result.bytes.data() + (column * rows + row) * element,
                  array.bytes.data() + (row * columns + column) * element, element);
  return result;
}

}  // namespace librt::onnx
