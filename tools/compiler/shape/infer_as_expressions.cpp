// ShapeInference: what is proven of a node's results, as expressions of the graph's symbols.
#include <algorithm>
#include <cstring>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "tools/compiler/shape/distinct_extents.h"
#include "tools/compiler/shape/shape_inference.h"

namespace librt::compiler {
namespace {

/// The elements of a small integer value whose bytes are known.
void take_elements(Known& known, const TensorInfo& info) {
  const int64_t count = info.elements();
  if (is_float(info.dtype) || count > kMostElements) return;
  for (int64_t i = 0; i < count; ++i)
    known.elements.push_back(number(load_integer(known.bytes, info.dtype, i)));
  known.has_elements = true;
}

}  // namespace

// --- extents and the graph's dims

Extent ShapeInference::symbol_extent(int32_t symbol) {
  const auto index = static_cast<size_t>(symbol);
  if (symbol_extents_.size() < graph_.symbols.size()) symbol_extents_.resize(graph_.symbols.size());
  if (symbol_extents_[index]) return *symbol_extents_[index];
  const Symbol& own = graph_.symbols[index];
  Extent extent = Extent::unknown();
  if (!own.definition.empty()) {
    extent = extents_.from_terms(own.definition, [&](int32_t inner) { return symbol_extent(inner); });
    if (extent.polynomial >= 0) derived_.try_emplace(extent.polynomial, symbol);
  }
  if (extent.is_unknown()) extent = extents_.symbol(symbol, own.bound);
  symbol_extents_[index] = extent;
  extents_.assume_nonnegative(extent);
  return extent;
}

Extent ShapeInference::extent_of(const Dim& dim) {
  if (dim.is_known()) return number(dim.extent);
  return dim.symbol >= 0 ? symbol_extent(dim.symbol) : Extent::unknown();
}

Dim ShapeInference::dim_of(Extent extent) {
  if (extent.is_constant()) return extent.constant >= 0 ? Dim{.extent = extent.constant} : Dim{};
  if (extent.is_unknown()) return {};
  if (const auto symbol = extents_.as_symbol(extent)) return {.symbol = *symbol};
  // Symbols with a definition are registered only once they have been queried.
  for (; registered_ < graph_.symbols.size(); ++registered_)
    if (!graph_.symbols[registered_].definition.empty()) symbol_extent(static_cast<int32_t>(registered_));
  if (const auto found = derived_.find(extent.polynomial); found != derived_.end())
    return {.symbol = found->second};
  std::vector<ExtentTerm> terms = extents_.terms(extent);
  if (terms.empty()) return {};
  std::string name = names_.unused_of_definition(extents_.text_of(extent, graph_.symbols));
  const auto symbol = static_cast<int32_t>(graph_.symbols.size());
  graph_.symbols.push_back({.name = std::move(name), .bound = 0, .definition = std::move(terms)});
  symbol_extents_.resize(graph_.symbols.size());
  symbol_extents_.back() = extent;
  derived_.emplace(extent.polynomial, symbol);
  add_symbol_probes();
  return {.symbol = symbol};
}

bool ShapeInference::same_info(ValueId a, ValueId b) const {
  return graph_.values[a].dtype == graph_.values[b].dtype && known_[a].dims == known_[b].dims;
}

bool ShapeInference::may_have_same_info(ValueId a, ValueId b) const {
  if (same_info(a, b)) return true;
  const Value &x = graph_[a], &y = graph_[b];
  if (x.dtype != y.dtype || x.rank() != y.rank()) return false;
  for (size_t axis = 0; axis < x.dims.size(); ++axis)
    if (x.dims[axis].is_known() && y.dims[axis].is_known() && x.dims[axis] != y.dims[axis]) return false;
  for (int i = 0; i < kProbes && !depends_on_data(); ++i)
    if (probe(a, i).info.shape != probe(b, i).info.shape) return false;
  return true;
}

Shape ShapeInference::comparable_shape(ValueId id) const {
  Shape shape;
  for (const Extent& extent : known_[id].dims)
    shape.push_back(extent.is_constant() ? extent.constant : (int64_t{1} << 31) + extent.polynomial);
  return shape;
}

bool ShapeInference::same_elements(ValueId a, ValueId b) {
  const Extent first = product_of(extents_, known_[a].dims);
  return !first.is_unknown() && first == product_of(extents_, known_[b].dims);
}

Known ShapeInference::known_source(ValueId id) {
  Known known;
  for (size_t axis = 0; axis < graph_.values[id].dims.size(); ++axis) {
    const Dim& dim = graph_.values[id].dims[axis];
    if (!dim.is_known() && dim.symbol < 0) {
      const int32_t added = symbol(text(graph_.values[id].name, '#', axis));
      graph_.values[id].dims[axis].symbol = added;
      if (graph_.values[id].role == Role::Input) names_.carry(graph_.values[id]);
      add_symbol_probes();
    }
    known.dims.push_back(extent_of(graph_.values[id].dims[axis]));
  }
  const Value& value = graph_.values[id];
  if (value.role != Role::Constant) return known;
  known.bytes = value.data.data != nullptr ? value.data.data : reinterpret_cast<const std::byte*>("");
  known.dtype = value.dtype;
  take_elements(known, value.info());
  return known;
}

std::vector<const Known*> ShapeInference::known_inputs(const Node& node) const {
  std::vector<const Known*> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(input == kNoValue ? nullptr : &known_[input]);
  return inputs;
}

// --- results of a node

bool ShapeInference::refutes(Extent extent, const Probes& output, int axis) const {
  for (int probe = 0; probe < kProbes; ++probe) {
    const int64_t found = output[static_cast<size_t>(probe)].info.shape[axis];
    const auto claimed = extents_.evaluate(extent, symbol_probes_[static_cast<size_t>(probe)]);
    if (found != ops::kUnknownExtent && claimed != found) return true;
    if (found == ops::kUnknownExtent && (!claimed || *claimed < 0)) return true;
  }
  return false;
}

void ShapeInference::conclude_extents(const Node& node, const std::vector<Probes>& outputs,
                                      std::vector<std::vector<Extent>>& dims, std::vector<Demand>& demands) {
  const std::vector<const Known*> inputs = known_inputs(node);
  const uint32_t shape_operands = ops::page_of(node.kind())->shape_operands;
  bool is_static = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    is_static = is_static && inputs[i]->is_static();
    const bool decides = i < 32 && (shape_operands >> i & 1u) != 0;
    const bool counts = node.kind() == OpKind::Loop && i < ops::kLoopHead;  // iterations
    if (decides || counts) is_static = is_static && inputs[i]->bytes != nullptr;
  }
  if (is_static) {
    // The page's rule ran on extents and shape operands that are the same in every run.
    for (size_t i = 0; i < outputs.size(); ++i)
      for (size_t axis = 0; axis < dims[i].size(); ++axis)
        if (const int64_t extent = outputs[i][0].info.shape[static_cast<int>(axis)];
            extent != ops::kUnknownExtent)
          dims[i][axis] = number(extent);
  }
  switch (ops::extent_rule(node.kind())) {
    case ExtentRule::Body: return conclude_from_bodies(node, dims);
    case ExtentRule::Unknown: return;
    case ExtentRule::Copied:
      if (!is_static) conclude_copied(node, dims, demands);
      return;
    default:
      if (!is_static) infer_extents(extents_, node, inputs, dims, demands);
  }
}

void ShapeInference::conclude_copied(const Node& node, std::vector<std::vector<Extent>>& dims,
                                     std::vector<Demand>& demands) {
  std::vector<Probes> given(node.inputs.size());
  std::vector<const Known*> inputs = known_inputs(node);
  for (size_t i = 0; i < given.size(); ++i)
    if (inputs[i] != nullptr) given[i] = probes_[node.inputs[i]];
  DistinctExtents distinct(inputs, std::move(given),
                           [&](const std::vector<Probes>& assumed, std::vector<Probes>& found) {
                             return infer_with(node, &assumed, found).ok();
                           });
  distinct.run(dims, demands);
}

Extent ShapeInference::from_body(const Graph& body, const Dim& dim) {
  if (dim.is_known()) return number(dim.extent);
  if (dim.symbol < 0) return Extent::unknown();
  // Only symbols that the body's inputs brought in from this graph are known here by the same name.
  std::vector<bool> carried(body.symbols.size());
  for (const ValueId input : body.inputs)
    for (const Dim& own : body.values[input].dims)
      if (!own.is_known() && own.symbol >= 0) {
        carried[static_cast<size_t>(own.symbol)] = true;
        for (const ExtentTerm& term : body.symbols[static_cast<size_t>(own.symbol)].definition)
          if (term.op == ExtentOp::Symbol) carried[static_cast<size_t>(term.value)] = true;
      }
  const auto outside = [&](int32_t symbol) {
    const Symbol& own = body.symbols[static_cast<size_t>(symbol)];
    if (!carried[static_cast<size_t>(symbol)]) return Extent::unknown();
    const int32_t same = names_.find(own.name);
    return same < 0 ? Extent::unknown() : symbol_extent(same);
  };
  const Symbol& symbol = body.symbols[static_cast<size_t>(dim.symbol)];
  return symbol.definition.empty() ? outside(dim.symbol) : extents_.from_terms(symbol.definition, outside);
}

void ShapeInference::conclude_from_bodies(const Node& node, std::vector<std::vector<Extent>>& dims) {
  const bool loop = node.kind() == OpKind::Loop;
  const size_t carried = loop ? static_cast<size_t>(node.as<op::LoopAttributes>().carried) : 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    for (size_t axis = 0; axis < dims[i].size(); ++axis) {
      if (!dims[i][axis].is_unknown()) continue;
      const bool scanned = loop && i >= carried;
      if (scanned && axis == 0) {
        // The trip count, if nothing else ends the loop.
        const auto& trips = node.inputs[0] != kNoValue ? known_[node.inputs[0]] : Known{};
        const bool always = node.inputs[1] == kNoValue || (known_[node.inputs[1]].has_elements &&
                                                           known_[node.inputs[1]].elements[0].is_constant(1));
        if (trips.has_elements && always && ops::never_breaks(node.bodies[0]))
          dims[i][0] = extents_.maximum(trips.elements[0], number(0));
        continue;
      }
      std::optional<Extent> common;
      if (loop && !scanned) common = known_[node.inputs[ops::kLoopHead + i]].dims[axis];
      for (const Graph& body : node.bodies) {
        const Value& value = body[body.outputs[loop ? i + 1 : i]];
        const size_t own = scanned ? axis - 1 : axis;
        const Extent extent = own < value.dims.size() ? from_body(body, value.dims[own]) : Extent::unknown();
        if (common && !(*common == extent)) common = Extent::unknown();
        if (!common) common = extent;
      }
      dims[i][axis] = common.value_or(Extent::unknown());
    }
  }
}

void ShapeInference::conclude_values(const Node& node, const std::vector<Probes>& outputs,
                                     std::vector<Known>& results) {
  const std::vector<const Known*> inputs = known_inputs(node);
  const bool constant = std::all_of(inputs.begin(), inputs.end(), [&](const Known* input) {
    return input == nullptr || input->bytes != nullptr ||
           (node.kind() == OpKind::Shape && input->is_static());
  });
  std::vector<TensorInfo> infos;
  bool is_static = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    infos.push_back(outputs[i][0].info);
    is_static = is_static && results[i].is_static();
    const Blob& value = outputs[i][0].value;
    if (!constant || value.data == nullptr || !results[i].is_static()) continue;
    results[i].bytes = value.data;
    results[i].dtype = infos[i].dtype;
    take_elements(results[i], infos[i]);
  }
  if (constant || !is_static) return;
  std::vector<DType> types;
  for (const ValueId input : node.inputs)
    types.push_back(input == kNoValue ? DType::I64 : graph_.values[input].dtype);
  infer_elements(extents_, node, inputs, types, infos, results);
  // All elements may turn out to be constants: the second entry of the shape of x[n,3].
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].has_elements || outputs[i][0].value.data == nullptr) continue;
    const bool numbers = std::all_of(results[i].elements.begin(), results[i].elements.end(),
                                     [](Extent e) { return e.is_constant(); });
    if (!numbers) continue;
    results[i].bytes = outputs[i][0].value.data;
    results[i].dtype = infos[i].dtype;
  }
}

Dim ShapeInference::name_extent(const Node& node, size_t output, int axis, const Probes& probes) {
  const std::array<int64_t, kProbes> extents = {probes[0].info.shape[axis], probes[1].info.shape[axis]};
  const bool from_data = extents[0] == ops::kUnknownExtent || extents[1] == ops::kUnknownExtent;
  int32_t symbol = -1;
  // Keep the name that it had before.
  if (const ValueId id = output < node.outputs.size() ? node.outputs[output] : kNoValue; id != kNoValue)
    if (const Value& value = graph_[id]; axis < value.rank())
      if (const int32_t before = value.dims[static_cast<size_t>(axis)].symbol; before >= 0)
        if (graph_.symbols[static_cast<size_t>(before)].definition.empty() && !names_.is_free_input(before))
          symbol = before;
  if (symbol < 0) {
    symbol = this->symbol(names_.unused(node.name));
    add_symbol_probes();
  }
  const auto index = static_cast<size_t>(symbol);
  from_data_.resize(graph_.symbols.size());
  if (from_data && !from_data_[index]) ++data_symbols_;
  if (!from_data && from_data_[index]) --data_symbols_;
  from_data_[index] = from_data;
  for (size_t probe = 0; probe < kProbes && !from_data; ++probe)
    symbol_probes_[probe][index] = extents[probe];
  return {.symbol = symbol};
}

std::vector<Known> ShapeInference::conclude(const Node& node, std::vector<Probes>& outputs,
                                            std::vector<Demand>& demands) {
  std::vector<std::vector<Extent>> dims;
  for (const Probes& output : outputs)
    dims.emplace_back(static_cast<size_t>(output[0].info.shape.rank()), Extent::unknown());
  conclude_extents(node, outputs, dims, demands);
  std::vector<Known> results(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t axis = 0; axis < dims[i].size(); ++axis) {
      const auto at = static_cast<int>(axis);
      Extent extent = dims[i][axis];
      if (extent.is_unknown() || refutes(extent, outputs[i], at) || dim_of(extent) == Dim{})
        extent = symbol_extent(name_extent(node, i, at, outputs[i]).symbol);
      extents_.assume_nonnegative(extent);
      results[i].dims.push_back(extent);
      for (size_t probe = 0; probe < kProbes; ++probe)
        if (int64_t& number = outputs[i][probe].info.shape[at]; number == ops::kUnknownExtent)
          number = extents_.evaluate(extent, symbol_probes_[probe]).value_or(1);
    }
  }
  conclude_values(node, outputs, results);
  return results;
}

}  // namespace librt::compiler
