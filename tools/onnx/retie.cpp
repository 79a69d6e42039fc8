#include "tools/onnx/retie.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/core/text.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/graph_edit.h"
#include "tools/onnx/initializer.h"
#include "tools/onnx/tensor_proto.h"
#include "tools/onnx/weight_uses.h"

namespace librt::onnx {
namespace {

bool is_on(const rt_onnx::NodeProto& node, std::string_view name) {
  const auto* const attribute = find_attribute(node, name);
  return attribute != nullptr && attribute->i() != 0;
}

/// As the second operand, not transposed by the node itself.
bool is_matmul_of(const WeightUse& use) {
  if (!use.path.empty() || use.input != 1) return false;
  if (use.node->op_type() == "MatMul") return true;
  return use.node->op_type() == "Gemm" && !is_on(*use.node, "transB");
}

bool is_embedding_of(const WeightUse& use) {
  return use.path.empty() && use.node->op_type() == "Gather" && use.input == 0;
}

/// Bit for bit, and not of equal elements, whose transpose says nothing.
bool are_transposes(const Blob& a, const Blob& b, int64_t rows, int64_t columns) {
  const auto count = static_cast<size_t>(rows * columns);
  if (count < 2 || a.size != b.size || a.size % count != 0) return false;
  const size_t element = a.size / count;
  bool varies = false;
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
    for (size_t column = 0; column < static_cast<size_t>(columns); ++column) {
      const std::byte* const here = a.data + (row * static_cast<size_t>(columns) + column) * element;
      const std::byte* const there = b.data + (column * static_cast<size_t>(rows) + row) * element;
      if (std::memcmp(here, there, element) != 0) return false;
      varies = varies || std::memcmp(here, a.data, element) != 0;
    }
  return varies;
}

void add_transpose(rt_onnx::GraphProto& graph, const std::string& from, const std::string& to) {
  auto& order = *add_node(graph, "Transpose", from, to).add_attribute();
  order.set_name("perm");
  order.set_type(kInts);
  order.add_ints(1);
  order.add_ints(0);
}

constexpr int64_t kPadTakesOperands = 11;  // the opset

int64_t opset_of(const rt_onnx::ModelProto& model) {
  for (const auto& entry : model.opset_import())
    if (entry.domain().empty() || entry.domain() == "ai.onnx") return entry.version();
  return 0;
}

class Retie {
 public:
  Retie(rt_onnx::ModelProto& model, const std::string& external_folder, const std::set<std::string>& kept)
      : graph_(*model.mutable_graph()), uses_(graph_), reader_(external_folder), named_(kept) {
    is_keras_ = model.producer_name() == "tf2onnx" && opset_of(model) >= kPadTakesOperands;
    std::set<std::string> listed = listed_names(graph_);
    is_listed_ = !listed.empty();
    named_.merge(listed);
  }

  void run() {
    std::vector<const rt_onnx::TensorProto*> embeddings, matmuls;
    std::vector<rt_onnx::TensorProto*> repeated, biases;
    for (const FloatTensor& tensor : float_tensors(graph_)) {
      if (tensor.is_node) continue;
      const std::vector<WeightUse> found = uses_.of(tensor.name);
      const bool may_go = !named_.contains(tensor.name) && !uses_.is_output(tensor.name) && !found.empty();
      if (may_go && is_joined(*tensor.tensor, found)) continue;
      if (may_go && is_listed_ && is_repeated(*tensor.tensor)) repeated.push_back(tensor.tensor);
      if (may_go && is_keras_ && found.size() == 1 && is_bias_of_one(found[0], *tensor.tensor))
        biases.push_back(tensor.tensor);
      if (std::any_of(found.begin(), found.end(), is_embedding_of)) embeddings.push_back(tensor.tensor);
      if (may_go && std::all_of(found.begin(), found.end(), is_matmul_of)) matmuls.push_back(tensor.tensor);
    }
    for (rt_onnx::TensorProto* const tensor : repeated) expand(*tensor);
    join_biases();
    for (rt_onnx::TensorProto* const tensor : biases) pad(*tensor);
    join_transposes(embeddings, matmuls);
    if (!joined_.empty()) remove_initializers(graph_, joined_);
  }

 private:
  /// What all calls read as one parameter is one tensor: the exporter folds a transpose for each call of a
  /// layer that is called several times. Whether the tensor is another one's copy, whose readers then read
  /// that.
  bool is_joined(const rt_onnx::TensorProto& tensor, const std::vector<WeightUse>& uses) {
    const std::string& parameter = uses[0].parameter;
    if (parameter.empty() || std::any_of(uses.begin(), uses.end(), [&](const WeightUse& use) {
          return use.parameter != parameter || !use.path.empty();
        }))
      return false;
    const auto [known, is_first] = of_parameter_.try_emplace(parameter, &tensor);
    const rt_onnx::TensorProto& first = *known->second;
    if (is_first || tensor.data_type() != first.data_type() ||
        !std::equal(tensor.dims().begin(), tensor.dims().end(), first.dims().begin(), first.dims().end()))
      return false;
    const auto a = reader_.view(first), b = reader_.view(tensor);
    if (!a.ok() || !b.ok() || a->size != b->size || std::memcmp(a->data, b->data, a->size) != 0) return false;
    for (const WeightUse& use : uses) use.node->set_input(use.input, first.name());
    joined_.insert(tensor.name());
    return true;
  }

  /// A linear layer of zeros, as the first step of an RNN has it, is its bias for each sample. Which bias is
  /// known only if no other has the same elements, and if these differ, as exporters keep one of several
  /// biases of zeros.
  void join_biases() {
    if (!is_listed_) return;
    std::map<std::string, std::string> names;  // by the elements
    std::vector<const rt_onnx::TensorProto*> folded;
    for (const FloatTensor& tensor : float_tensors(graph_)) {
      if (tensor.is_node || joined_.contains(tensor.name)) continue;
      const bool is_listed = named_.contains(tensor.name);
      if (is_listed && tensor.tensor->dims_size() == 1) {
        const auto elements = reader_.view(*tensor.tensor);
        if (!elements.ok() || elements->size == 0) continue;
        const auto [known, is_first] = names.try_emplace(
            std::string(reinterpret_cast<const char*>(elements->data), elements->size), tensor.name);
        if (!is_first) known->second.clear();
      } else if (!is_listed && function_of(tensor.name) == "linear" && tensor.tensor->dims_size() > 1 &&
                 !uses_.is_output(tensor.name)) {
        folded.push_back(tensor.tensor);
      }
    }
    for (const rt_onnx::TensorProto* const tensor : folded) {
      const auto elements = reader_.view(*tensor);
      const std::string extents = text(tensor->name(), ".extents");
      if (!elements.ok() || elements->size == 0 || uses_.is_taken(extents)) continue;
      const int64_t columns = tensor->dims(tensor->dims_size() - 1);
      int64_t rows = 1;
      for (int axis = 0; axis + 1 < tensor->dims_size(); ++axis) rows *= tensor->dims(axis);
      const size_t row = elements->size / static_cast<size_t>(rows);
      const std::string first(reinterpret_cast<const char*>(elements->data), row);
      const auto bias = names.find(first);
      const size_t element = row / static_cast<size_t>(std::max<int64_t>(columns, 1));
      if (columns < 2 || bias == names.end() || bias->second.empty() ||
          std::memcmp(first.data(), first.data() + element, row - element) == 0 ||
          std::memcmp(elements->data, elements->data + row, elements->size - row) != 0)
        continue;
      add_integers(graph_, extents, {tensor->dims().begin(), tensor->dims().end()});
      add_node(graph_, "Expand", bias->second, tensor->name()).add_input(extents);
      joined_.insert(tensor->name());
    }
  }

  /// Equal copies for each sample, by the name of a function that makes them, or of a lookup that is
  /// repeated.
  bool is_repeated(const rt_onnx::TensorProto& tensor) {
    const std::string_view function = function_of(tensor.name());
    const auto is_one_of = [&](std::initializer_list<std::string_view> functions) {
      return std::find(functions.begin(), functions.end(), function) != functions.end();
    };
    const bool copies_it = is_one_of({"expand", "repeat", "tile"});
    if (!copies_it && !is_one_of({"embedding", "gather", "index", "index_select"})) return false;
    if (tensor.dims_size() < 2 || tensor.dims(0) < 2) return false;
    const auto elements = reader_.view(tensor);  // its extents are checked
    const auto copies = static_cast<size_t>(tensor.dims(0));
    if (!elements.ok() || elements->size == 0) return false;
    int64_t count = 1;
    for (const int64_t extent : tensor.dims()) count *= extent;
    const size_t bytes = elements->size / copies;
    if (std::memcmp(elements->data, elements->data + bytes, elements->size - bytes) != 0) return false;
    const size_t element = elements->size / static_cast<size_t>(count);
    return copies_it || std::memcmp(elements->data, elements->data + element, bytes - element) != 0;
  }

  /// One copy remains, under a name of its own, and an Expand.
  void expand(rt_onnx::TensorProto& tensor) {
    const std::string name = tensor.name(), one = text(name, ".one"), extents = text(name, ".extents");
    if (uses_.is_taken(one) || uses_.is_taken(extents)) return;
    const auto elements = reader_.view(tensor);
    if (!elements.ok()) return;
    const std::string first(reinterpret_cast<const char*>(elements->data),
                            elements->size / static_cast<size_t>(tensor.dims(0)));
    const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    tensor.set_name(one);
    tensor.set_dims(0, 1);
    tools::clear_elements(tensor);
    tensor.set_raw_data(first);
    add_integers(graph_, extents, dims);
    add_node(graph_, "Expand", one, name).add_input(extents);
  }

  /// ONNX has two biases in a row, of the input and of the recurrence; a layer of Keras has one, and zeros
  /// follow it. A GRU that resets after the matmul has two.
  bool is_bias_of_one(const WeightUse& use, const rt_onnx::TensorProto& tensor) {
    const std::string& op = use.node->op_type();
    const bool is_recurrent =
        op == "LSTM" || op == "RNN" || (op == "GRU" && !is_on(*use.node, "linear_before_reset"));
    if (!is_recurrent || use.input != 3 || !use.path.empty() || tensor.dims_size() != 2) return false;
    const auto elements = reader_.view(tensor);  // its extents are checked
    if (!elements.ok() || elements->size == 0 || tensor.dims(1) % 2 != 0) return false;
    const size_t row = elements->size / static_cast<size_t>(tensor.dims(0));
    for (size_t at = 0; at < elements->size; at += row)
      if (std::any_of(elements->data + at + row / 2, elements->data + at + row,
                      [](std::byte each) { return each != std::byte{}; }))
        return false;
    return true;
  }

  /// The first half of each row remains, under a name of its own, and a Pad by zeros.
  void pad(rt_onnx::TensorProto& tensor) {
    const std::string name = tensor.name(), half = text(name, ".input"), pads = text(name, ".pads");
    if (uses_.is_taken(half) || uses_.is_taken(pads)) return;
    const auto elements = reader_.view(tensor);
    if (!elements.ok()) return;
    const size_t row = elements->size / static_cast<size_t>(tensor.dims(0));
    std::string kept;
    for (size_t at = 0; at < elements->size; at += row)
      kept.append(reinterpret_cast<const char*>(elements->data) + at, row / 2);
    const int64_t columns = tensor.dims(1) / 2;
    tensor.set_name(half);
    tensor.set_dims(1, columns);
    tools::clear_elements(tensor);
    tensor.set_raw_data(kept);
    add_integers(graph_, pads, {0, 0, 0, columns});
    add_node(graph_, "Pad", half, name).add_input(pads);
  }

  void join_transposes(const std::vector<const rt_onnx::TensorProto*>& embeddings,
                       const std::vector<const rt_onnx::TensorProto*>& matmuls) {
    std::multimap<Corners, const rt_onnx::TensorProto*> by_corners;
    for (const rt_onnx::TensorProto* const matmul : matmuls)
      if (auto corners = corners_of(*matmul, true)) by_corners.emplace(std::move(*corners), matmul);
    std::vector<std::pair<std::string, std::string>> ties;
    for (const rt_onnx::TensorProto* const embedding : embeddings) {
      const auto corners = corners_of(*embedding, false);
      if (!corners) continue;
      const auto [first, last] = by_corners.equal_range(*corners);
      for (auto each = first; each != last;) {
        const rt_onnx::TensorProto& matmul = *each->second;
        const auto a = reader_.view(*embedding), b = reader_.view(matmul);
        if (!a.ok() || !b.ok() || !are_transposes(*a, *b, embedding->dims(0), embedding->dims(1))) {
          ++each;
          continue;
        }
        joined_.insert(matmul.name());
        ties.emplace_back(embedding->name(), matmul.name());
        each = by_corners.erase(each);
      }
    }
    for (const auto& [embedding, matmul] : ties) add_transpose(graph_, embedding, matmul);
  }

  /// What a matrix and its transpose have in common: type, extents, the first and the last element.
  using Corners = std::tuple<int, int64_t, int64_t, std::string>;
  std::optional<Corners> corners_of(const rt_onnx::TensorProto& tensor, bool is_transposed) {
    if (tensor.dims_size() != 2 || tensor.dims(0) < 1 || tensor.dims(1) < 1) return std::nullopt;
    const auto elements = reader_.view(tensor);
    if (!elements.ok()) return std::nullopt;
    const size_t element = elements->size / static_cast<size_t>(tensor.dims(0) * tensor.dims(1));
    const auto* const data = reinterpret_cast<const char*>(elements->data);
    std::string ends(data, element);
    ends.append(data + elements->size - element, element);
    return Corners{tensor.data_type(), tensor.dims(is_transposed ? 1 : 0), tensor.dims(is_transposed ? 0 : 1),
                   std::move(ends)};
  }

  rt_onnx::GraphProto& graph_;
  WeightUses uses_;
  InitializerReader reader_;
  std::set<std::string> named_;  ///< parameters and buffers of PyTorch, and what the caller keeps
  bool is_listed_ = false;       ///< the file lists the parameters
  bool is_keras_ = false;
  std::map<std::string, const rt_onnx::TensorProto*> of_parameter_;
  std::set<std::string> joined_;  ///< initializers without any use left
};

}  // namespace

void retie(rt_onnx::ModelProto& model, const std::string& external_folder,
           const std::set<std::string>& kept) {
  if (model.has_graph()) Retie(model, external_folder, kept).run();
}

}  // namespace librt::onnx
