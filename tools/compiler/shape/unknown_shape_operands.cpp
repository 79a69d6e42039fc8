#include "tools/compiler/shape/unknown_shape_operands.h"

#include <algorithm>
#include <limits>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"

namespace librt::compiler {
namespace {

using ops::kUnknownExtent;

/// Placeholder for unknown entries while the page's shape rule runs; extents that depend on them are ignored.
double sample(OpKind kind, size_t input) {
  switch (kind) {
    case OpKind::Slice: return input == 1 ? 0 : static_cast<double>(std::numeric_limits<int64_t>::max());
    case OpKind::Range: return input == 2 ? 1 : 0;
    case OpKind::Pad:
    case OpKind::TopK: return 0;
    default: return 1;
  }
}

/// Results of an operator with unknown shape operands, except Identity and Reshape.
class Unknown {
 public:
  Unknown(const NodeView& node, std::span<const Entries> entries, const Value& x,
          std::vector<TensorInfo>& outputs)
      : node_(node), entries_(entries), x_(x), outputs_(outputs) {}

  /// Marks the extents that depend on unknown entries; false for an operator without a rule.
  bool mark() {
    const int rank = outputs_.empty() ? 0 : outputs_[0].shape.rank();
    switch (node_.kind()) {
      case OpKind::Slice: {
        const auto& axes = node_.as<op::SliceAttributes>().axes;
        for (size_t i = 0; i < axes.size(); ++i)
          if (!known(1, i) || !known(2, i)) forget(*normalized_axis(axes[i], rank));
        return true;
      }
      case OpKind::Pad:
        for (int axis = 0; axis < rank; ++axis)
          if (!known(1, at(axis)) || !known(1, at(axis + rank))) forget(axis);
        return true;
      case OpKind::Expand: {
        const int first = rank - static_cast<int>(entries_[1].size());
        const int own = rank - x_.rank();
        for (int axis = first; axis < rank; ++axis) {
          const bool kept = axis >= own && x_.dims[at(axis - own)].is_known() && outputs_[0].shape[axis] != 1;
          if (!known(1, at(axis - first)) && !kept) forget(axis);
        }
        return true;
      }
      case OpKind::Tile: return forget_entries(1, 0);
      case OpKind::ConstantOfShape:
      case OpKind::RandomUniform:
      case OpKind::RandomNormal: return forget_entries(0, 0);
      case OpKind::Resize: return forget_entries(node_.has(1) ? 1 : 2, 1);
      case OpKind::Range: forget(0); return true;
      case OpKind::TopK: forget(*normalized_axis(node_.as<op::TopKAttributes>().axis, rank)); return true;
      default: return false;
    }
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }
  bool known(size_t input, size_t entry) const {
    return node_.inputs[input].value != nullptr || entries_[input][entry].has_value();
  }
  void forget(int axis) {
    for (TensorInfo& output : outputs_) output.shape[axis] = kUnknownExtent;
  }
  bool forget_entries(size_t input, int first_axis) {
    for (size_t i = 0; i < entries_[input].size(); ++i)
      if (!known(input, i)) forget(first_axis + static_cast<int>(i));
    return true;
  }

  const NodeView& node_;
  std::span<const Entries> entries_;
  const Value& x_;
  std::vector<TensorInfo>& outputs_;
};

/// Known entries stay; a single unknown one follows from the number of elements.
Status infer_reshape(const NodeView& node, const Entries& entries, std::vector<TensorInfo>& outputs) {
  if (entries.size() > kMaxRank) return unsupported("a result of more than ", kMaxRank, " axes");
  TensorInfo info{node.dtype(0), {}};
  Shape fixed;  // the entries that are known
  for (const auto& entry : entries) {
    const bool known = entry && *entry >= 0;
    info.shape.push_back(known ? *entry : kUnknownExtent);
    if (known) fixed.push_back(*entry);
  }
  const auto count = fixed.checked_elements();
  if (!count) return invalid_model(describe(node.node), ": a shape of too many elements, ", fixed);
  const int64_t elements = node.input(0).elements();
  if (fixed.rank() + 1 == info.shape.rank() && *count > 0 && elements % *count == 0)
    for (int axis = 0; axis < info.shape.rank(); ++axis)
      if (info.shape[axis] < 0) info.shape[axis] = elements / *count;
  outputs.push_back(info);
  return {};
}

/// The entries that are known, which x has in a run that goes on; else x's extents.
Status infer_identity(const NodeView& node, const Entries& entries, std::vector<TensorInfo>& outputs) {
  TensorInfo info = node.input(0);
  if (entries.size() != static_cast<size_t>(info.shape.rank()))
    return invalid_model(describe(node.node), ": expected x of rank ", entries.size(), ", found ", info);
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i] && *entries[i] >= 0) info.shape[static_cast<int>(i)] = *entries[i];
  outputs.push_back(info);
  return {};
}

}  // namespace

Status infer_with_unknown_operands(const NodeView& node, std::span<const Entries> entries, const Value& x,
                                   std::vector<TensorInfo>& outputs) {
  if (node.kind() == OpKind::Reshape) return infer_reshape(node, entries[1], outputs);
  if (node.kind() == OpKind::Identity) return infer_identity(node, entries[1], outputs);
  std::vector<Operand> operands(node.inputs.begin(), node.inputs.end());
  std::vector<ops::HostTensor> samples(operands.size());
  const uint32_t shape_operands = ops::page_of(node.kind())->shape_operands;
  for (size_t i = 0; i < operands.size() && i < 32; ++i) {
    if (!operands[i].present || operands[i].value != nullptr || (shape_operands >> i & 1u) == 0) continue;
    if (static_cast<int64_t>(entries[i].size()) != operands[i].info.elements())
      return unsupported(describe(node.node), ": the length of input ", i, " is unknown");
    samples[i] = ops::HostTensor(operands[i].info);
    const DType dtype = operands[i].info.dtype;
    for (size_t k = 0; k < entries[i].size(); ++k) {
      const auto index = static_cast<int64_t>(k);
      if (entries[i][k])
        store_integer(samples[i].bytes.data(), dtype, index, *entries[i][k]);
      else
        store_element(samples[i].bytes.data(), dtype, index, sample(node.kind(), i));
    }
    operands[i].value = samples[i].bytes.data();
  }
  RT_TRY(ops::infer_node({.node = node.node, .inputs = operands}, outputs));
  if (Unknown(node, entries, x, outputs).mark()) return {};
  return unsupported(describe(node.node),
                     ": an input that gives a shape must be known from shapes and constants alone, but it "
                     "depends on the data "
                     "of an input; make it a constant in the model");
}

}  // namespace librt::compiler
