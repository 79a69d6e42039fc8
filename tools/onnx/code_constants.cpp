#include "tools/onnx/code_constants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "runtime/core/element.h"
#include "tools/onnx/tensor_proto.h"
#include "tools/onnx/weight_uses.h"

namespace librt::onnx {
namespace {

/// What is added to scores that a softmax makes 0 is at most this.
constexpr double kMasked = -1e4;

bool is_weight_of_layer(const WeightUse& use) {
  return use.role.is_layer && use.role.kind != "bias";
}

/// Of a recurrent layer.
bool is_initial_state(const WeightUse& use) {
  const std::string& op = use.node->op_type();
  return use.input >= 5 && use.input <= 6 && (op == "LSTM" || op == "GRU" || op == "RNN");
}

bool is_embedding_and_matmul(const std::vector<WeightUse>& uses) {
  const auto reads = [&](const char* kind) {
    return std::any_of(uses.begin(), uses.end(), [&](const WeightUse& use) { return use.role.kind == kind; });
  };
  return reads("Gather") && reads("MatMul");
}

/// Functions whose result is a part of a table, or copies of it, which may be a parameter.
bool gives_parts(std::string_view function) {
  constexpr std::array<std::string_view, 12> kParts = {"cat",    "embedding",    "expand", "gather",
                                                       "index",  "index_select", "narrow", "repeat",
                                                       "select", "slice",        "split",  "tile"};
  return std::find(kParts.begin(), kParts.end(), function) != kParts.end();
}

/// Functions that apply parameters, here to constants.
bool applies_parameters(std::string_view function) {
  constexpr std::array<std::string_view, 9> kLayers = {
      "addmm", "batch_norm", "conv1d", "conv2d", "conv3d", "group_norm", "layer_norm", "linear", "rms_norm"};
  return std::find(kLayers.begin(), kLayers.end(), function) != kLayers.end();
}

/// Functions of no parameter, or that networks compute tables of angles with.
bool creates(std::string_view function) {
  constexpr std::array<std::string_view, 14> kCreators = {
      "arange", "cos",       "empty", "eye",  "full", "full_like", "linspace",
      "ones",   "ones_like", "sin",   "tril", "triu", "zeros",     "zeros_like"};
  return std::find(kCreators.begin(), kCreators.end(), function) != kCreators.end();
}

/// Whether the module itself has the parameter, not a module in it.
bool is_owned_by(const std::string& module, const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? module.empty() : parameter.compare(0, dot, module) == 0;
}

/// The frequencies of rotary embeddings, a buffer in Transformers and its likes.
bool is_rotary_table(std::string_view name) {
  return name == "inv_freq" || name.ends_with(".inv_freq") || name.ends_with(".original_inv_freq");
}

/// TensorFlow names a literal "layer/Const" or "layer/zeros", or after the operand that it is: "layer/Sub/y".
bool is_tensorflow_literal(std::string_view name) {
  name = name.substr(0, name.rfind(':'));
  const std::string_view last = name.substr(name.rfind('/') + 1);
  const std::string_view function = function_of(last);
  return last == "x" || last == "y" || function == "Const" || function == "zeros" || function == "ones" ||
         last.ends_with("_recip");
}

/// Elements of at least two axes, seen as matrices.
class Table {
 public:
  template <class Extents>
  Table(const std::byte* data, DType type, Extents extent, Extents end) : data_(data), type_(type) {
    for (; extent != end; ++extent) {
      count_ *= *extent;
      if (*extent == 1 && count_ == 1) continue;  // leading extents of 1 do not matter
      dims_.push_back(*extent);
    }
  }

  /// A mask that is added to scores holds 0 and large negative numbers, one that they are multiplied by is a
  /// lower triangle of ones.
  bool is_mask() const {
    if (dims_.size() < 2 || count_ == 0) return false;
    const int64_t columns = dims_.back(), rows = dims_[dims_.size() - 2];
    bool is_added = true, is_triangle = rows == columns && rows > 1, masks = false;
    for (int64_t i = 0; i < count_ && (is_added || is_triangle); ++i) {
      const double value = at(i);
      masks = masks || value <= kMasked;
      is_added = is_added && (value == 0 || value <= kMasked);
      is_triangle = is_triangle && value == (i % columns <= i / columns % rows ? 1 : 0);
    }
    return (is_added && masks) || is_triangle;
  }

  /// Positions by sines and cosines, as in Vaswani et al. 2017, section 3.5, or of a rotary embedding: along
  /// the positions each column v is a wave, v[k+1] + v[k-1] = 2 cos(w) v[k]. Rows of zeros, for padding, do
  /// not count.
  bool is_wave() const {
    std::vector<int64_t> dims;
    for (const int64_t extent : dims_)
      if (extent != 1) dims.push_back(extent);
    if (dims.size() != 2 || dims[0] < kFewestPositions) return false;
    const int64_t rows = dims[0], columns = dims[1];
    int64_t positions = 0;
    std::vector<bool> is_padding(static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t column = 0;
      while (column < columns && at(row * columns + column) == 0) ++column;
      is_padding[static_cast<size_t>(row)] = column == columns;
      positions += column < columns;
    }
    if (positions < kFewestPositions) return false;
    const double tolerance = type_ == DType::F32 ? 3e-3 : 1.5e-2;  // angles of many positions are rounded
    bool oscillates = false;
    for (int64_t column = 0; column < columns; ++column) {
      double product = 0, square = 0, largest = 0;
      const auto each = [&](const auto& visit) {
        for (int64_t row = 1; row + 1 < rows; ++row) {
          const auto k = static_cast<size_t>(row);
          if (is_padding[k - 1] || is_padding[k] || is_padding[k + 1]) continue;
          visit(at((row - 1) * columns + column), at(row * columns + column),
                at((row + 1) * columns + column));
        }
      };
      each([&](double before, double here, double after) {
        product += here * (before + after);
        square += here * here;
        largest = std::max(largest, std::abs(here));
      });
      const double twice_cosine = square > 0 ? product / square : 0;
      if (!(std::abs(twice_cosine) <= 2 + tolerance)) return false;
      bool fits = true;
      each([&](double before, double here, double after) {
        fits = fits && std::abs(before + after - twice_cosine * here) <= tolerance;
      });
      if (!fits) return false;
      oscillates = oscillates || (largest > 0.5 && std::abs(twice_cosine) < 1.99);
    }
    return oscillates;
  }

 private:
  static constexpr int64_t kFewestPositions = 6;

  double at(int64_t index) const { return load_element(data_, type_, index); }

  const std::byte* data_;
  DType type_;
  std::vector<int64_t> dims_;
  int64_t count_ = 1;
};

class CodeConstants {
 public:
  CodeConstants(const rt_onnx::ModelProto& model, const WeightUses& uses, const std::string& external_folder);
  bool contains(const FloatTensor& tensor);

 private:
  enum class Exporter { Other, PyTorch, PyTorchDynamo, TensorFlow };

  bool is_computed_by_pytorch(const std::string& name, const std::vector<WeightUse>& uses) const;
  bool is_zero(const rt_onnx::TensorProto& tensor);
  void add_frozen_norm(const std::string& module);

  Exporter exporter_ = Exporter::Other;
  /// PyTorchDynamo: listed parameters that are no tensor of the file, and that no call reads by another name.
  std::vector<std::string> lost_;
  bool are_parameters_initializers_ = false;  ///< PyTorch: not so where a ScriptModule was frozen
  std::set<std::string> frozen_;              ///< buffers of batch normalizations that the code computes
  const WeightUses& uses_;
  InitializerReader reader_;
};

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
  if (!signature.empty())
    for (const auto& node : model.graph().node())
      for (std::string& read : uses.parameters_of(node)) present.insert(std::move(read));
  for (const auto& [key, name] : signature)
    if (key.starts_with("p_") && !present.contains(name)) lost_.push_back(name);
  constexpr std::string_view kVariance = ".running_var";
  for (const std::string& name : present)
    if (exporter_ != Exporter::PyTorchDynamo && name.ends_with(kVariance))  // which lists its buffers
      add_frozen_norm(name.substr(0, name.size() - kVariance.size()));
  // One of the two names of a tied weight is no tensor either.
  size_t tied = 0;
  for (const auto& [key, name] : signature)
    tied += present.contains(name) && is_embedding_and_matmul(uses.of(name));
  if (lost_.size() <= tied) lost_.clear();
}

// Running statistics that no BatchNormalization reads are buffers. FrozenBatchNorm2d of torchvision and of
// Transformers, which computes weight / sqrt(var) and bias - mean * weight / sqrt(var), has nothing else.
void CodeConstants::add_frozen_norm(const std::string& module) {
  const auto all = [&](const char* leaf, const auto& condition) {
    const std::vector<WeightUse> uses = uses_.of(module + leaf);
    return !uses.empty() && std::ranges::all_of(uses, condition);
  };
  const auto is_computed = [](const WeightUse& use) { return !use.role.is_statistic; };
  if (!all(".running_mean", is_computed) || !all(".running_var", is_computed)) return;
  frozen_.insert({module + ".running_mean", module + ".running_var"});
  const auto is_minuend = [](const WeightUse& use) { return use.node->op_type() == "Sub" && use.input == 0; };
  if (all(".bias", is_minuend)) frozen_.insert({module + ".weight", module + ".bias"});
}

bool CodeConstants::contains(const FloatTensor& tensor) {
  if (frozen_.contains(tensor.name)) return true;
  const std::vector<WeightUse> uses = uses_.of(tensor.name);
  if (uses.empty()) return false;
  const auto all = [&](const auto& condition) { return std::all_of(uses.begin(), uses.end(), condition); };
  if (all([](const WeightUse& use) { return use.node->op_type() == "OneHot" && use.input == 2; }))
    return true;
  if (all([](const WeightUse& use) { return use.role.is_neutral; })) return true;
  if (all(is_initial_state) && is_zero(*tensor.tensor)) return true;
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
  return looks_of(*tensor.tensor, reader_) != Looks::Other;
}

/// In a file that lists the parameters: the tensor is none of them, and the calls that read it read none.
bool CodeConstants::is_computed_by_pytorch(const std::string& name,
                                           const std::vector<WeightUse>& uses) const {
  for (const WeightUse& use : uses)
    if (!uses_.has_call(*use.node) || !uses_.parameters_of(*use.node).empty()) return false;
  const std::string_view function = function_of(name);
  if (applies_parameters(function)) return false;
  if (lost_.empty()) return true;
  // It may have been computed from a lost one: by its name a part of one, a layer's weight, or read by the
  // module of one.
  const auto reads_for_lost = [&](const WeightUse& use) {
    return use.module && std::any_of(lost_.begin(), lost_.end(), [&](const std::string& parameter) {
             return is_owned_by(*use.module, parameter);
           });
  };
  if (creates(function)) return true;
  return !gives_parts(function) && !name.starts_with("val_") &&
         std::none_of(uses.begin(), uses.end(), is_weight_of_layer) &&
         std::none_of(uses.begin(), uses.end(), reads_for_lost);
}

bool CodeConstants::is_zero(const rt_onnx::TensorProto& tensor) {
  const auto elements = reader_.view(tensor);
  return elements.ok() && std::all_of(elements->data, elements->data + elements->size,
                                      [](std::byte each) { return each == std::byte{}; });
}

}  // namespace

Looks looks_of(const rt_onnx::TensorProto& tensor, InitializerReader& reader) {
  const auto type = tools::element_type_of_onnx(tensor.data_type());
  const auto elements = reader.view(tensor);
  if (!elements.ok() || tensor.dims_size() < 2) return Looks::Other;  // reported by the import
  const Table table(elements->data, *type, tensor.dims().begin(), tensor.dims().end());
  return table.is_mask() ? Looks::Mask : table.is_wave() ? Looks::Waves : Looks::Other;
}

std::set<std::string> code_constants(rt_onnx::ModelProto& model, const std::string& external_folder) {
  std::set<std::string> names;
  if (!model.has_graph()) return names;
  const WeightUses uses(*model.mutable_graph());
  CodeConstants constants(model, uses, external_folder);
  for (const FloatTensor& tensor : float_tensors(*model.mutable_graph()))
    if (!is_single_float(*tensor.tensor) && constants.contains(tensor)) names.insert(tensor.name);
  return names;
}

std::set<std::string> unnamed_constants(rt_onnx::ModelProto& model, const std::string& external_folder) {
  std::set<std::string> names = code_constants(model, external_folder);
  const std::set<std::string> listed = listed_names(model.graph());
  for (const FloatTensor& tensor : float_tensors(*model.mutable_graph()))
    if (listed.empty() ? !tensor.is_node : listed.contains(tensor.name)) names.erase(tensor.name);
  return names;
}

}  // namespace librt::onnx
