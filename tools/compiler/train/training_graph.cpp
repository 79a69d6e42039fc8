#include "tools/compiler/train/training_graph.h"

#include <algorithm>
#include <numeric>

#include "runtime/graph/node_view.h"
#include "runtime/ops/page.h"
#include "tools/compiler/edit/control.h"
#include "tools/compiler/train/autodiff.h"

namespace librt::compiler {
namespace {

bool must_be_written_out(const Node& node) {
  const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
  return page != nullptr && page->gradient == nullptr && page->no_gradient == nullptr &&
         page->body != nullptr;
}

bool any_to_write_out(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (must_be_written_out(node)) return true;
  return false;
}

/// sum over outputs of the sum of output times gradient.
ValueId emit_product_sum(Builder& builder, std::span<const ValueId> outputs,
                         const std::vector<std::string>& names) {
  ValueId sum = kNoValue;
  for (ValueId output : outputs) {
    const Value value = builder.value(output);
    if (!is_float(value.dtype)) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), value.name) == names.end()) continue;
    std::vector<int> axes(value.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
    const ValueId gradient = input_like(builder, {.name = text("grad.", value.name),
                                                  .dtype = value.dtype,
                                                  .like = output,
                                                  .like_name = value.name,
                                                  .axes = std::move(axes),
                                                  .last = {}});
    ValueId part = builder.reduce_sum(builder.mul(output, gradient), {}, false);
    if (sum != kNoValue && builder.value(sum).dtype != value.dtype)
      part = builder.cast(part, builder.value(sum).dtype);
    sum = sum == kNoValue ? part : builder.add(sum, part);
  }
  return sum;
}

/// Whether an input has the symbol, or its definition refers to symbols of inputs alone.
bool follows_from_inputs(const Graph& graph, int32_t symbol) {
  const auto is_carried = [&](int64_t wanted) {
    return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId input) {
      const std::vector<Dim>& dims = graph[input].dims;
      return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) { return dim.symbol == wanted; });
    });
  };
  if (symbol < 0 || is_carried(symbol)) return symbol >= 0;
  const std::vector<ExtentTerm>& terms = graph.symbols[static_cast<size_t>(symbol)].definition;
  return !terms.empty() && std::all_of(terms.begin(), terms.end(), [&](const ExtentTerm& term) {
    return term.op != ExtentOp::Symbol || is_carried(term.value);
  });
}

}  // namespace

uint32_t StateTable::make(const std::string& name, const TensorInfo& info, StateKind kind, Blob initial) {
  if (const auto found = made_.find(name); found != made_.end()) return found->second;
  for (; named_ < states_.size(); ++named_) names_.insert(states_[named_].name);
  std::string unique = name;
  for (int copy = 2; names_.contains(unique); ++copy) unique = text(name, ".", copy);
  states_.push_back({.name = std::move(unique), .info = info, .kind = kind, .initial = std::move(initial)});
  return made_[name] = static_cast<uint32_t>(states_.size() - 1);
}

ValueId input_like(Builder& builder, const InputLike& wanted) {
  const std::vector<Dim> known = builder.value(wanted.like).dims;
  std::vector<Dim> dims;
  bool is_open = false;
  for (const int axis : wanted.axes) {
    Dim& dim = dims.emplace_back(known[static_cast<size_t>(axis)]);
    if (dim.is_known() || follows_from_inputs(builder.graph(), dim.symbol)) continue;
    dim = {};
    is_open = true;
  }
  if (wanted.last) dims.push_back(*wanted.last);
  const ValueId input = builder.input(wanted.name, wanted.dtype, std::move(dims));
  if (!is_open) return input;
  std::vector<ValueId> extents;
  const auto take = [&](ValueId value, int axis) {
    op::ShapeAttributes one;
    one.start = axis;
    one.end = axis + 1;
    extents.push_back(builder.emit(one, {value}));
  };
  for (const int axis : wanted.axes) take(wanted.like, axis);
  if (wanted.last) take(input, static_cast<int>(wanted.axes.size()));
  Node check;
  check.op = make_op(op::IdentityAttributes{});
  check.name = text(wanted.name, " in the shape of ", wanted.like_name);  // what an error says
  check.inputs = {input, builder.emit_many(make_op(op::ConcatAttributes{}), extents, 1)[0]};
  return builder.emit_node(std::move(check))[0];
}

Dropped emit_dropout(Emitter& emit, ValueId x, ValueId ratio, ValueId shape, int64_t seed, ValueId counter) {
  const DType dtype = emit.value(x).dtype;
  op::RandomUniformAttributes uniform;
  uniform.to = static_cast<uint8_t>(dtype);
  uniform.seed = seed;
  const ValueId number =
      counter == kNoValue ? emit.emit(uniform, {shape}) : emit.emit(uniform, {shape, counter});
  const ValueId mask = emit.emit(op::GreaterOrEqualAttributes{}, {number, ratio});
  const ValueId one = emit.scalar(1, dtype);
  const ValueId scale = emit.div(one, emit.sub(one, ratio));
  return {emit.emit(op::WhereAttributes{}, {mask, emit.mul(x, scale), emit.scalar(0, dtype)}), mask};
}

Status copy_graph(const Graph& from, Builder& builder, std::vector<ValueId>& map,
                  const ReplaceNode& replace) {
  map.assign(from.values.size(), kNoValue);
  Graph& to = builder.graph();
  to.name = from.name;
  to.refusal = from.refusal;
  to.symbols = from.symbols;
  for (ValueId id : from.inputs)
    map[id] = builder.input(from.values[id].name, from.values[id].dtype, from.values[id].dims);
  for (ValueId id = 0; id < from.values.size(); ++id) {
    const Value& value = from.values[id];
    if (value.role == Role::Constant) {
      map[id] = builder.constant(value.info(), value.data);
      if (map[id] != kNoValue) to.values[map[id]].name = value.name;
    } else if (value.role == Role::State) {
      map[id] = builder.state(value.name, value.state, value.info());
    }
  }
  for (const Node& node : from.nodes) {
    RT_TRY(Status(builder.status()));
    Node copy = node;
    for (ValueId& input : copy.inputs)
      if (input != kNoValue) input = map[input];
    builder.set_scope(node.name);
    std::vector<ValueId> outputs = replace(copy);
    if (outputs.empty()) outputs = builder.emit_node(copy);
    RT_TRY(Status(builder.status()).in(describe(node)));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      map[node.outputs[i]] = outputs[i];
      Value& made = to.values[outputs[i]];
      // The node's replacement may be an input or a state, which keep their names.
      if (made.role == Role::Intermediate && !from.values[node.outputs[i]].name.empty())
        made.name = from.values[node.outputs[i]].name;
    }
  }
  return {};
}

Status write_out_composites(Graph& graph, const std::vector<State>& states) {
  while (any_to_write_out(graph)) {
    Graph written;
    Builder builder(written, &states);
    std::vector<ValueId> map;
    RT_TRY(copy_graph(graph, builder, map, [&](const Node& node) -> std::vector<ValueId> {
      if (!must_be_written_out(node)) return {};
      return ops::compiler_page_of(node.kind())->body(builder, node, node.inputs);
    }));
    for (ValueId id : graph.outputs) builder.output(map[id]);
    for (const StateUpdate& update : graph.state_updates)
      written.state_updates.push_back({.state = map[update.state], .value = map[update.value]});
    RT_TRY(Status(builder.status()));
    graph = std::move(written);
  }
  return {};
}

Status add_gradient_entry(ModelGraph& model, const std::vector<std::string>& outputs_with_gradient) {
  const auto* infer = model.entry("infer");
  if (infer == nullptr) return invalid_argument("gradients: the model has no entry 'infer'");
  if (model.entry("gradients") != nullptr)
    return invalid_argument("gradients: the model already has an entry 'gradients'");
  Graph graph = *infer;
  RT_TRY(write_out_control(graph, model.states));
  RT_TRY(write_out_composites(graph, model.states));
  Builder builder(graph, &model.states);
  RT_TRY(Status(builder.status()));
  builder.set_scope("gradients");
  const std::vector<ValueId> inputs = graph.inputs, outputs = graph.outputs;
  const ValueId sum = emit_product_sum(builder, outputs, outputs_with_gradient);
  if (sum == kNoValue) return invalid_argument("gradients: the model has no float output to begin with");
  std::vector<ValueId> wanted;
  for (ValueId id : inputs)
    if (is_float(builder.value(id).dtype)) wanted.push_back(id);
  RT_ASSIGN(const std::vector<ValueId> gradients, differentiate(builder, sum, wanted));
  for (size_t i = 0; i < wanted.size(); ++i) {
    ValueId gradient = gradients[i];
    if (gradient == kNoValue)
      gradient = builder.emit(op::ExpandAttributes{},  // no output depends on it
                              {builder.scalar_like(0, wanted[i]), builder.shape_of(wanted[i])});
    // Each gradient gets its own name, even where two are one value.
    gradient = builder.emit(op::IdentityAttributes{}, {gradient});
    RT_TRY(Status(builder.status()));
    graph.values[gradient].name = text("grad.", graph.values[wanted[i]].name);
    builder.output(gradient);
  }
  graph.name = "gradients";
  model.entries.push_back({.name = "gradients", .graph = std::move(graph)});
  return {};
}

}  // namespace librt::compiler
