// Builder: appending nodes. See builder.h for the idea.
#include "tools/compiler/builder.h"

#include <algorithm>
#include <cstring>

#include "tools/compiler/shape/shape_inference.h"

namespace librt::compiler {

InferenceCache::InferenceCache() = default;
InferenceCache::~InferenceCache() = default;

void InferenceCache::clear() {
  inference_.reset();
}

Builder::Builder(Graph& graph, const std::vector<State>* states, InferenceCache* cache) : graph_(graph) {
  if (cache != nullptr) inference_ = std::move(cache->inference_);
  if (inference_ != nullptr) return;
  inference_ = std::make_unique<ShapeInference>(graph, states);
  fail(inference_->infer_graph());
}

void Builder::give_back(InferenceCache& cache) {
  cache.inference_ = std::move(inference_);
  ++cache.given_;
}

Builder::~Builder() = default;

void Builder::fail(Status status) {
  if (status_.ok() && !status.ok()) status_ = std::move(status);
}

std::string Builder::unique_name(std::string_view wanted) {
  if (!std::exchange(has_names_, true))
    for (const Node& node : graph_.nodes) names_.emplace(node.name, 0);
  auto [entry, fresh] = names_.try_emplace(std::string(wanted), 0);
  if (fresh) return entry->first;
  std::string name;
  do name = text(wanted, '_', ++entry->second);
  while (names_.contains(name));
  names_.emplace(name, 0);
  return name;
}

std::vector<ValueId> Builder::emit_node(Node node) {
  std::vector<ValueId> failed(std::max<size_t>(node.outputs.size(), 1), kNoValue);
  if (!status_.ok()) return failed;
  node.name = unique_name(!node.name.empty() ? std::string_view(node.name)
                          : !scope_.empty()  ? std::string_view(scope_)
                                             : name_of(node.kind()));
  std::fill(node.outputs.begin(), node.outputs.end(), kNoValue);
  std::vector<Inferred> results;
  if (Status status = inference_->infer(node, results); !status.ok()) {
    fail(std::move(status));
    return failed;
  }
  node.outputs.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    Value value;
    value.name = results.size() == 1 ? node.name : text(node.name, '.', i);
    node.outputs.push_back(graph_.add_value(std::move(value)));
    inference_->add_result(node.outputs.back(), std::move(results[i]));
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

std::vector<ValueId> Builder::emit_many(OpAttributes op, std::span<const ValueId> inputs, size_t outputs) {
  Node node;
  node.op = std::move(op);
  node.inputs.assign(inputs.begin(), inputs.end());
  node.outputs.assign(outputs, kNoValue);
  return emit_node(std::move(node));
}

ValueId Builder::constant(const TensorInfo& info, Blob data) {
  if (!status_.ok()) return kNoValue;
  if (!info.shape.checked_elements() || data.size != info.bytes()) {
    fail(internal_error("constant: expected ", info.bytes(), " bytes for ", info, ", found ", data.size));
    return kNoValue;
  }
  const ValueId id = graph_.add_constant("", info, std::move(data));
  inference_->add_source(id);
  return id;
}

ValueId Builder::find_constant(const std::string& name, const TensorInfo& info, const Blob& data) {
  for (; indexed_ < graph_.values.size(); ++indexed_)
    if (const Value& value = graph_.values[indexed_]; value.role == Role::Constant && !value.name.empty())
      constants_[value.name].push_back(static_cast<ValueId>(indexed_));
  for (const ValueId id : constants_[name])
    if (const Value& value = graph_.values[id];
        value.info() == info && std::memcmp(value.data.data, data.data, data.size) == 0)
      return id;
  return kNoValue;
}

ValueId Builder::input(std::string name, DType dtype, std::vector<Dim> dims) {
  if (!status_.ok()) return kNoValue;
  if (dims.size() > kMaxRank) {
    fail(unsupported("input '", name, "': expected at most ", kMaxRank, " dimensions, found ", dims.size()));
    return kNoValue;
  }
  Value value{.name = std::move(name), .dtype = dtype, .role = Role::Input, .dims = std::move(dims)};
  const ValueId id = graph_.add_value(std::move(value));
  graph_.inputs.push_back(id);
  fail(inference_->add_input(id));
  return id;
}

ValueId Builder::state(std::string name, uint32_t state, const TensorInfo& info) {
  if (!status_.ok()) return kNoValue;
  Value value{.name = std::move(name), .dtype = info.dtype, .role = Role::State};
  for (int64_t extent : info.shape) value.dims.push_back({.extent = extent});
  value.state = state;
  const ValueId id = graph_.add_value(std::move(value));
  inference_->add_source(id);
  return id;
}

// --- what is known: see shape_inference.h

void Builder::fit_symbols(std::vector<std::string>& fitted) {
  inference_->fit_symbols(fitted);
}
const std::vector<std::string>& Builder::demands() const noexcept {
  return inference_->demands();
}
std::optional<ConstTensorView> Builder::known_value(ValueId id) const {
  return inference_->known_value(id);
}
Entries Builder::known_entries(ValueId id) const {
  return inference_->known_entries(id);
}
const Known& Builder::known(ValueId id) const {
  return inference_->known(id);
}
ExtentTable& Builder::extents() noexcept {
  return inference_->extents();
}
bool Builder::same_info(ValueId a, ValueId b) const {
  return inference_->same_info(a, b);
}
Shape Builder::comparable_shape(ValueId id) const {
  return inference_->comparable_shape(id);
}
bool Builder::same_elements(ValueId a, ValueId b) {
  return inference_->same_elements(a, b);
}
int32_t Builder::symbol(std::string_view name) {
  return inference_->symbol(name);
}
void Builder::within(Builder& outer) {
  inference_->within(*outer.inference_);
}
int32_t Builder::copy_symbol(const Graph& outer, int32_t symbol) {
  return inference_->copy_symbol(outer, symbol);
}
bool Builder::depends_on_data() const {
  return inference_->depends_on_data();
}
bool Builder::may_have_same_info(ValueId a, ValueId b) const {
  return inference_->may_have_same_info(a, b);
}
int64_t Builder::example_extent(int32_t symbol) const {
  return inference_->symbol_probe(symbol, 0);
}
const TensorInfo& Builder::example_info(ValueId id) const {
  return inference_->probe(id, 0).info;
}

std::optional<ConstTensorView> Builder::example_value(ValueId id) const {
  if (inference_->has_made_up_extents()) return std::nullopt;
  const ProbeValue& first = inference_->probe(id, 0);
  for (int i = 0; i < kProbes; ++i) {
    const ProbeValue& other = inference_->probe(id, i);
    if (other.value.size == 0 || other.info != first.info ||
        std::memcmp(other.value.data, first.value.data, first.value.size) != 0)
      return std::nullopt;
  }
  return ConstTensorView{first.value.data, first.info};
}

ops::Cost Builder::example_cost(const Node& node) const {
  std::vector<Operand> inputs(node.inputs.size());
  std::vector<TensorInfo> outputs(node.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const ProbeValue& input = inference_->probe(node.inputs[i], 0);
    inputs[i] = {.present = true, .info = input.info, .value = input.value.data};
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (node.outputs[i] != kNoValue) outputs[i] = example_info(node.outputs[i]);
  return ops::cost_of({.node = node, .inputs = inputs, .outputs = outputs});
}

}  // namespace librt::compiler
