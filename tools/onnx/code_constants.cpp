#include "tools/onnx/code_constants.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/core/element.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

constexpr double kMasked =
    -1e4;  ///< what is added to scores that a softmax makes 0; -inf and -3.4e38 as well

bool is_weight_of_layer(const WeightUse& use) {
  return use.role.is_layer && use.role.kind != "bias";
}

/// "slice_3" and "embedding" are parts of a table, which may be a parameter: PyTorch's newer exporter names a
/// folded value after the function that gave it.
bool is_part(std::string_view name) {
  constexpr std::array<std::string_view, 20> kParts = {
      "cat",   "clone",        "contiguous", "embedding", "expand",  "flatten",  "gather",
      "index", "index_select", "narrow",     "permute",   "reshape", "select",   "slice",
      "split", "squeeze",      "transpose",  "t",         "view",    "unsqueeze"};
  while (!name.empty() && (name.back() == '_' || (name.back() >= '0' && name.back() <= '9')))
    name.remove_suffix(1);
  return std::find(kParts.begin(), kParts.end(), name) != kParts.end();
}

/// The frequencies of rotary embeddings, a buffer in Transformers and its likes.
bool is_rotary_table(std::string_view name) {
  return name == "inv_freq" || name.ends_with(".inv_freq") || name.ends_with(".original_inv_freq");
}

/// TensorFlow names a literal "layer/Const", or after the operand that it is: "layer/Sub/y".
bool is_tensorflow_literal(std::string_view name) {
  name = name.substr(0, name.rfind(':'));
  const std::string_view last = name.substr(name.rfind('/') + 1);
  return last == "x" || last == "y" || last == "Const" || last.starts_with("Const_") ||
         last.ends_with("_recip");
}

}  // namespace

CodeConstants::CodeConstants(const rt_onnx::ModelProto& model, const WeightUses& uses,
                             const std::string& external_folder)
    : uses_(uses), reader_(external_folder) {
  const auto signature = signature_of(model.graph());
  if (!signature.empty())
    exporter_ = Exporter::PyTorchDynamo;
  else if (model.producer_name() == "pytorch")
    exporter_ = Exporter::PyTorch;
  else if (model.producer_name() == "tf2onnx")
    exporter_ = Exporter::TensorFlow;
  std::set<std::string> present;
  for (const auto& tensor : model.graph().initializer()) {
    present.insert(tensor.name());
    are_parameters_initializers_ = are_parameters_initializers_ ||
                                   (has_weight_type(tensor) && tensor.name().find("::") == std::string::npos);
  }
  for (const auto& [key, name] : signature)
    is_parameter_lost_ = is_parameter_lost_ || (key.starts_with("p_") && !present.contains(name));
}

bool CodeConstants::contains(const FloatTensor& tensor) {
  const std::vector<WeightUse> uses = uses_.of(tensor.name);
  if (uses.empty()) return false;
  const auto all = [&](const auto& condition) { return std::all_of(uses.begin(), uses.end(), condition); };
  if (all([](const WeightUse& use) { return use.node->op_type() == "OneHot" && use.input == 2; }))
    return true;
  const bool is_weight = !all([](const WeightUse& use) { return !is_weight_of_layer(use); });
  switch (exporter_) {
    case Exporter::PyTorchDynamo:
      if (is_computed_by_pytorch(tensor.name, uses)) return true;
      break;
    case Exporter::PyTorch:
      if (tensor.is_node && (are_parameters_initializers_ || !is_weight)) return true;
      if (is_rotary_table(tensor.name)) return true;
      break;
    case Exporter::TensorFlow:
      if (is_tensorflow_literal(tensor.name) && !is_weight) return true;
      break;
    case Exporter::Other: break;
  }
  return is_mask(*tensor.tensor);
}

/// In a file that lists the parameters: the tensor is none of them, and the calls that read it read none.
bool CodeConstants::is_computed_by_pytorch(const std::string& name,
                                           const std::vector<WeightUse>& uses) const {
  for (const WeightUse& use : uses)
    if (!uses_.has_call(*use.node) || !uses_.parameters_of(*use.node).empty()) return false;
  if (!is_parameter_lost_) return true;
  // It may have been computed from a lost one.
  return !is_part(name) && !name.starts_with("val_") &&
         std::none_of(uses.begin(), uses.end(), is_weight_of_layer);
}

/// A mask that is added to scores holds 0 and large negative numbers, one that they are multiplied by is a
/// lower triangle of ones.
bool CodeConstants::is_mask(const rt_onnx::TensorProto& tensor) {
  std::string error;
  const auto outline = tools::outline_of(tensor, error);
  if (!outline || outline->narrow != nullptr || outline->dims.size() < 2) return false;
  Blob stored;
  std::span<const std::byte> bytes;
  if (tensor.data_location() != 0) {
    auto read = reader_.stored(tensor);
    if (!read.ok()) return false;  // reported by the import
    stored = std::move(*read);
    bytes = {stored.data, stored.size};
  } else if (tensor.has_raw_data()) {
    bytes = std::as_bytes(std::span(tensor.raw_data()));
  } else {
    std::vector<std::byte> copied(outline->bytes);
    if (!tools::copy_elements(tensor, *outline, copied, error)) return false;
    stored = Blob::own(std::move(copied));
    bytes = {stored.data, stored.size};
  }
  if (bytes.size() != outline->bytes) return false;
  const int64_t columns = outline->dims.back(), rows = outline->dims[outline->dims.size() - 2];
  const auto count = static_cast<int64_t>(outline->bytes / size_of(outline->type));
  bool is_added = true, is_triangle = rows == columns && rows > 1, masks = false;
  for (int64_t i = 0; i < count && (is_added || is_triangle); ++i) {
    const double value = load_element(bytes.data(), outline->type, i);
    masks = masks || value <= kMasked;
    is_added = is_added && (value == 0 || value <= kMasked);
    is_triangle = is_triangle && value == (i % columns <= i / columns % rows ? 1 : 0);
  }
  return count > 0 && ((is_added && masks) || is_triangle);
}

}  // namespace librt::onnx
