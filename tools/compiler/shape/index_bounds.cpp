#include "tools/compiler/shape/index_bounds.h"

#include <algorithm>
#include <vector>

#include "runtime/ops/page_support.h"

namespace librt::compiler {
namespace {

// A Cast of indices keeps their values.
bool keeps_indices(OpKind kind) {
  return ops::moves_elements(kind) || kind == OpKind::Cast;
}

void lower(std::map<std::string, int64_t>& bounds, const std::string& name, const Dim& dim) {
  if (!dim.is_known() || dim.extent < 1) return;
  const auto [at, is_new] = bounds.emplace(name, dim.extent);
  if (!is_new) at->second = std::min(at->second, dim.extent);
}

// The axis of `scores` that `labels` lacks.
const Dim* class_dim(const Graph& graph, const Value& labels) {
  if (graph.outputs.size() < 2) return nullptr;
  const Value& scores = graph[graph.outputs[1]];
  if (scores.rank() != labels.rank() + 1) return nullptr;
  for (int axis = scores.rank() - 1; axis >= 0; --axis) {
    std::vector<Dim> rest = scores.dims;
    rest.erase(rest.begin() + axis);
    if (rest == labels.dims) return &scores.dims[static_cast<size_t>(axis)];
  }
  return nullptr;
}

}  // namespace

std::map<std::string, int64_t> index_bounds(const Graph& graph) {
  std::map<std::string, int64_t> bounds;
  std::vector<ValueId> origin(graph.values.size(), kNoValue);
  for (const ValueId input : graph.inputs) {
    const Value& value = graph[input];
    if (is_float(value.dtype) || value.dtype == DType::Bool) continue;
    origin[input] = input;
    if (value.name != "labels") continue;
    if (const Dim* classes = class_dim(graph, value)) lower(bounds, value.name, *classes);
  }
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty()) continue;
    if (keeps_indices(node.kind()) && node.inputs[0] != kNoValue)
      origin[node.outputs[0]] = origin[node.inputs[0]];
    int64_t axis = 0;
    if (node.kind() == OpKind::Gather)
      axis = node.as<op::GatherAttributes>().axis;
    else if (node.kind() == OpKind::GatherElements)
      axis = node.as<op::GatherElementsAttributes>().axis;
    else
      continue;
    const ValueId input = origin[node.inputs[1]];
    const Value& table = graph[node.inputs[0]];
    const auto resolved = ops::resolve_axis(axis, table.rank());
    if (input != kNoValue && resolved.ok())
      lower(bounds, graph[input].name, table.dims[static_cast<size_t>(*resolved)]);
  }
  return bounds;
}

}  // namespace librt::compiler
