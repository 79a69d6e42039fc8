#include "tools/onnx/retie.h"

#include <algorithm>
#include <cstring>

#include "tools/onnx/attribute.h"
#include "tools/onnx/initializer.h"
#include "tools/onnx/weight_uses.h"

namespace librt::onnx {
namespace {

/// As the second operand, not transposed by the node itself.
bool is_matmul_of(const WeightUse& use) {
  if (!use.path.empty() || use.input != 1) return false;
  if (use.node->op_type() == "MatMul") return true;
  return use.node->op_type() == "Gemm" &&
         std::none_of(use.node->attribute().begin(), use.node->attribute().end(), [](const auto& attribute) {
           return attribute.name() == "transB" && attribute.i() != 0;
         });
}

bool is_embedding_of(const WeightUse& use) {
  return use.path.empty() && use.node->op_type() == "Gather" && use.input == 0;
}

bool have_transposed_extents(const rt_onnx::TensorProto& a, const rt_onnx::TensorProto& b) {
  return a.data_type() == b.data_type() && a.dims_size() == 2 && b.dims_size() == 2 &&
         a.dims(0) == b.dims(1) && a.dims(1) == b.dims(0);
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
  auto& node = *graph.add_node();
  node.set_op_type("Transpose");
  node.set_name(to);
  node.add_input(from);
  node.add_output(to);
  auto& order = *node.add_attribute();
  order.set_name("perm");
  order.set_type(7);  // a list of integers
  order.add_ints(1);
  order.add_ints(0);
}

}  // namespace

void retie(rt_onnx::ModelProto& model, const std::string& external_folder,
           const std::set<std::string>& kept) {
  if (!model.has_graph()) return;
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  std::set<std::string> listed, joined;
  for (const auto& [key, name] : signature_of(graph)) listed.insert(name);
  const WeightUses uses(graph);
  std::vector<const rt_onnx::TensorProto*> embeddings, matmuls;
  for (const FloatTensor& tensor : float_tensors(graph)) {
    if (tensor.is_node || tensor.tensor->dims_size() != 2) continue;
    const std::vector<WeightUse> found = uses.of(tensor.name);
    if (std::any_of(found.begin(), found.end(), is_embedding_of)) embeddings.push_back(tensor.tensor);
    if (!found.empty() && std::all_of(found.begin(), found.end(), is_matmul_of) &&
        !uses.is_output(tensor.name) && !kept.contains(tensor.name) && !listed.contains(tensor.name))
      matmuls.push_back(tensor.tensor);
  }
  InitializerReader reader(external_folder);
  std::vector<std::pair<std::string, std::string>> ties;
  for (const rt_onnx::TensorProto* const embedding : embeddings)
    for (const rt_onnx::TensorProto* const matmul : matmuls) {
      if (joined.contains(matmul->name()) || !have_transposed_extents(*embedding, *matmul)) continue;
      const auto a = reader.view(*embedding), b = reader.view(*matmul);
      if (!a.ok() || !b.ok() || !are_transposes(*a, *b, embedding->dims(0), embedding->dims(1))) continue;
      joined.insert(matmul->name());
      ties.emplace_back(embedding->name(), matmul->name());
    }
  if (ties.empty()) return;
  auto& tensors = *graph.mutable_initializer();
  int left = 0;
  for (int i = 0; i < tensors.size(); ++i)
    if (!joined.contains(tensors[i].name())) tensors.SwapElements(left++, i);
  tensors.DeleteSubrange(left, tensors.size() - left);
  for (const auto& [embedding, matmul] : ties) add_transpose(graph, embedding, matmul);
}

}  // namespace librt::onnx
