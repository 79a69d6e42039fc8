#include "runtime/session/prepare/shapes.h"

#include "runtime/graph/symbol_extents.h"
#include "runtime/ops/page.h"

namespace librt {

std::string declared_text(const Graph& graph, const Value& value) {
  std::string out = text(name_of(value.dtype), "[");
  for (size_t i = 0; i < value.dims.size(); ++i) {
    const Dim& dim = value.dims[i];
    if (i > 0) out += ',';
    if (dim.is_known())
      append(out, dim.extent);
    else if (dim.symbol >= 0 && static_cast<size_t>(dim.symbol) < graph.symbols.size())
      append(out, graph.symbols[static_cast<size_t>(dim.symbol)].name);
    else
      out += '?';
  }
  return out + "]";
}

namespace {

struct SymbolUse {
  int64_t extent = -1;
  std::string input;
};

/// Why `found` does not match the declared value; empty if it does.
std::string mismatch(const Graph& graph, const Value& value, const TensorInfo& found,
                     std::vector<SymbolUse>& symbols) {
  if (found.dtype != value.dtype) return "another dtype";
  if (found.shape.rank() != value.rank()) return "another rank";
  if (!found.shape.checked_elements()) return "invalid extents" RT_FEW_ELEMENTS;
  for (int axis = 0; axis < value.rank(); ++axis) {
    const Dim& dim = value.dims[static_cast<size_t>(axis)];
    const int64_t extent = found.shape[axis];
    if (dim.is_known() && dim.extent != extent) return text("axis ", axis, " must be ", dim.extent);
    if (dim.is_known() || dim.symbol < 0 || static_cast<size_t>(dim.symbol) >= symbols.size()) continue;
    const Symbol& symbol = graph.symbols[static_cast<size_t>(dim.symbol)];
    SymbolUse& use = symbols[static_cast<size_t>(dim.symbol)];
    if (symbol.bound > 0 && extent > symbol.bound)
      return text(symbol.name, " = ", extent, " is above its bound ", symbol.bound);
    if (use.extent >= 0 && use.extent != extent)
      return text(symbol.name, " = ", extent, " here but ", use.extent,
                  use.input.empty() ? " by the other inputs" : text(" in input '", use.input, "'"));
    if (use.extent < 0) use = {extent, value.name};
  }
  return {};
}

}  // namespace

std::vector<uint8_t> shape_deciding(const Graph& graph) {
  std::vector<uint8_t> needed(graph.values.size());  // from the last node to the first
  const auto need = [&](ValueId id) {
    if (id != kNoValue) needed[id] = true;
  };
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const ops::Page* page = ops::page_of(node.kind());
    if (page != nullptr)
      for (size_t k = 0; k < node.inputs.size() && k < 32; ++k)
        if ((page->shape_operands >> k) & 1u) need(node.inputs[k]);
    std::vector<ValueId> present;
    for (const ValueId input : node.inputs)
      if (input != kNoValue) present.push_back(input);
    for (const Graph& body : node.bodies) {
      const std::vector<uint8_t> inner = shape_inputs(body);
      for (size_t k = 0; k < inner.size() && k < present.size(); ++k)
        if (inner[k]) need(present[k]);
    }
    if (node.kind() == OpKind::Shape) continue;
    for (const ValueId output : node.outputs)
      if (output != kNoValue && needed[output]) {
        for (const ValueId input : node.inputs) need(input);
        break;
      }
  }
  return needed;
}

Status check_inputs(const Graph& graph, std::span<const TensorInfo> inputs) {
  std::vector<SymbolUse> symbols(graph.symbols.size());
  SymbolExtents extents(graph);
  for (size_t i = 0; i < graph.inputs.size(); ++i) extents.bind(graph[graph.inputs[i]], inputs[i].shape);
  // Extents of derived symbols, computed from those of other inputs.
  for (size_t i = 0; i < symbols.size(); ++i)
    if (const auto extent = extents.defined_extent(i)) symbols[i] = {*extent, ""};
  std::string problems;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    const std::string why = mismatch(graph, value, inputs[i], symbols);
    if (why.empty()) continue;
    append(problems, problems.empty() ? "" : "; ", "input '", value.name, "': expected ",
           declared_text(graph, value), ", found ", inputs[i], " (", why, ")");
  }
  return problems.empty() ? Status() : Status(Code::InvalidArgument, problems);
}

std::vector<uint8_t> shape_inputs(const Graph& graph) {
  const std::vector<uint8_t> needed = shape_deciding(graph);
  std::vector<uint8_t> inputs;
  for (const ValueId input : graph.inputs) inputs.push_back(needed[input]);
  return inputs;
}

std::vector<TensorInfo> assumed_inputs(const Graph& graph) {
  std::vector<TensorInfo> infos;
  for (const ValueId input : graph.inputs) {
    TensorInfo info{.dtype = graph[input].dtype, .shape = {}};
    for (const Dim& dim : graph[input].dims) {
      int64_t extent = dim.extent;
      if (!dim.is_known()) {
        const bool named = dim.symbol >= 0 && static_cast<size_t>(dim.symbol) < graph.symbols.size();
        const int64_t bound = named ? graph.symbols[static_cast<size_t>(dim.symbol)].bound : 0;
        extent = bound > 0 ? bound : 1;
      }
      info.shape.push_back(extent);
    }
    infos.push_back(info);
  }
  return infos;
}

}  // namespace librt
