#include "tests/fuzz/model_mutator.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/core/element.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/verify.h"
#include "runtime/ops/page.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt::fuzz {
namespace {

constexpr int64_t kExtents[] = {0,  1,  2,  3,  4,  5,  7,  8,   9,   15,  16,
                                17, 31, 32, 33, 63, 64, 65, 127, 256, 1000};
constexpr double kReals[] = {0,
                             -0.0,
                             1,
                             -1,
                             0.5,
                             2,
                             1e-30,
                             1e30,
                             -1e30,
                             3.4e38,
                             1e-42,
                             100,
                             -100,
                             1e9,
                             0.999,
                             1.001,
                             1e-5,
                             65504,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
constexpr int64_t kMostConstantElements = 4096;

template <class T>
void change(std::vector<T>& list, Random& random, const T& fresh) {
  switch (list.empty() ? 0 : random.below(8)) {
    case 0: list.push_back(fresh); break;
    case 1: list.pop_back(); break;
    case 2: std::swap(random.pick(list), random.pick(list)); break;
    default: random.pick(list) = fresh;
  }
}

// --- attributes

bool change_attributes(OpKind owner, void* attributes, Random& random);

void change_field(const AttributeField& field, void* attributes, Random& random) {
  switch (field.type) {
    case FieldType::Bool: field.of<bool>(attributes) = !field.of<bool>(attributes); break;
    case FieldType::U8: {
      const size_t known = field.enumeration != 0 ? field.enum_names().size() : 13;
      field.of<uint8_t>(attributes) = static_cast<uint8_t>(random.below(known + (random.one_in(8) ? 2 : 0)));
      break;
    }
    case FieldType::I64: {
      auto& number = field.of<int64_t>(attributes);
      number = changed(number, random);
      break;
    }
    case FieldType::F32: field.of<float>(attributes) = static_cast<float>(random.pick(kReals)); break;
    case FieldType::F64: field.of<double>(attributes) = random.pick(kReals); break;
    case FieldType::I64List: {
      auto& list = field.of<std::vector<int64_t>>(attributes);
      change(list, random, changed(list.empty() ? 1 : random.pick(list), random));
      break;
    }
    case FieldType::F32List:
      change(field.of<std::vector<float>>(attributes), random, static_cast<float>(random.pick(kReals)));
      break;
    case FieldType::ActivationList:
      change(field.of<std::vector<op::RecurrentActivation>>(attributes), random,
             static_cast<op::RecurrentActivation>(random.below(field.enum_names().size())));
      break;
    case FieldType::Text: {
      constexpr std::string_view kWords[] = {"",      "x",    "axis:i1", "axis:i2 b:f1",           "a:s1",
                                             "a:i-1", "a:x1", "a:i1 a:", "a:i99999999999999999999"};
      auto& words = field.of<std::string>(attributes);
      if (words.empty() || random.one_in(2))
        words = random.pick(kWords);
      else
        random.pick(words) = static_cast<char>(random.below(256));
      break;
    }
    case FieldType::Epilogue: {
      auto& epilogue = field.of<std::unique_ptr<op::EpilogueAttributes>>(attributes);
      if (epilogue == nullptr) epilogue = std::make_unique<op::EpilogueAttributes>();
      change_attributes(kEpilogueFields, epilogue.get(), random);
    }
  }
}

bool change_attributes(OpKind owner, void* attributes, Random& random) {
  const auto fields = fields_of(owner);
  if (fields.empty()) return false;
  change_field(random.pick(fields), attributes, random);
  return true;
}

// --- values

int64_t elements_of(const std::vector<Dim>& dims) {
  int64_t count = 1;
  for (const Dim& dim : dims) {
    if (dim.extent < 0 || dim.extent > kMostConstantElements) return -1;
    count *= dim.extent;
    if (count > kMostConstantElements) return -1;
  }
  return count;
}

/// The value's elements, repeated as often as the new type and shape need them; false if these are too many.
bool set_constant(Value& value, DType dtype, std::vector<Dim> dims) {
  const int64_t count = elements_of(dims), had = elements_of(value.dims);
  if (count < 0 || had < 0) return false;
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size_of(dtype));
  for (int64_t i = 0; i < count && had > 0; ++i)
    if (is_float(dtype) || is_float(value.dtype))
      store_element(bytes.data(), dtype, i, load_element(value.data.data, value.dtype, i % had));
    else
      store_integer(bytes.data(), dtype, i, load_integer(value.data.data, value.dtype, i % had));
  value.dtype = dtype;
  value.dims = std::move(dims);
  value.data = Blob::own(std::move(bytes));
  return true;
}

std::vector<ValueId> values_of_role(const Graph& graph, std::initializer_list<Role> roles) {
  std::vector<ValueId> found;
  for (ValueId id = 0; id < graph.values.size(); ++id)
    if (std::find(roles.begin(), roles.end(), graph[id].role) != roles.end()) found.push_back(id);
  return found;
}

bool change_dims(Graph& graph, Random& random) {
  const auto sources = values_of_role(graph, {Role::Input, Role::Constant});
  if (sources.empty()) return false;
  Value& value = graph[random.pick(sources)];
  std::vector<Dim> dims = value.dims;
  const Dim fresh{.extent = random.pick(kExtents)};
  if (value.role == Role::Input && !dims.empty() && random.one_in(3))
    random.pick(dims) = {.symbol = graph.symbol(random.one_in(2) ? "n" : "m")};
  else
    change(dims, random, fresh);
  if (dims.size() > kMaxRank) return false;
  if (value.role == Role::Constant) return set_constant(value, value.dtype, std::move(dims));
  value.dims = std::move(dims);
  return true;
}

bool change_dtype(Graph& graph, Random& random) {
  const auto sources = values_of_role(graph, {Role::Input, Role::Constant});
  if (sources.empty()) return false;
  Value& value = graph[random.pick(sources)];
  const DType old = value.dtype, dtype{static_cast<uint8_t>(random.below(13))};
  if (!valid(dtype)) return false;
  if (random.one_in(2)) {  // all of this type, which operators often require
    for (const ValueId id : sources) {
      Value& other = graph[id];
      if (other.dtype != old) continue;
      if (other.role != Role::Constant)
        other.dtype = dtype;
      else if (!set_constant(other, dtype, other.dims))
        return false;
    }
    return true;
  }
  if (value.role == Role::Constant) return set_constant(value, dtype, value.dims);
  value.dtype = dtype;
  return true;
}

bool change_constant(Graph& graph, Random& random) {
  const auto constants = values_of_role(graph, {Role::Constant});
  if (constants.empty()) return false;
  Value& value = graph[random.pick(constants)];
  const int64_t count = elements_of(value.dims);
  if (count <= 0) return false;
  std::vector<std::byte> bytes(value.data.data, value.data.data + value.data.size);
  for (size_t times = 1 + random.below(4); times > 0; --times) {
    const auto at = static_cast<int64_t>(random.below(static_cast<size_t>(count)));
    if (is_float(value.dtype)) {
      store_element(bytes.data(), value.dtype, at, random.pick(kReals));
    } else {
      store_integer(bytes.data(), value.dtype, at,
                    changed(load_integer(bytes.data(), value.dtype, at), random));
    }
  }
  value.data = Blob::own(std::move(bytes));
  return true;
}

/// Constants become inputs, inputs become constants.
bool change_role(Graph& graph, Random& random) {
  const auto sources = values_of_role(graph, {Role::Input, Role::Constant});
  if (sources.empty()) return false;
  const ValueId id = random.pick(sources);
  Value& value = graph[id];
  if (value.role == Role::Constant) {
    value.role = Role::Input;
    value.data = {};
    value.name = text("c", id);
    graph.inputs.push_back(id);
    return true;
  }
  const int64_t count = elements_of(value.dims);
  if (count < 0 || graph.inputs.size() < 2) return false;
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size_of(value.dtype));
  for (int64_t i = 0; i < count; ++i)
    store_integer(bytes.data(), value.dtype, i, static_cast<int64_t>(random.below(4)));
  if (is_float(value.dtype))
    for (int64_t i = 0; i < count; ++i) store_element(bytes.data(), value.dtype, i, random.pick(kReals));
  value.role = Role::Constant;
  value.data = Blob::own(std::move(bytes));
  std::erase(graph.inputs, id);
  return true;
}

bool change_quantization(Graph& graph, Random& random) {
  Value& value = random.pick(graph.values);
  if (value.quantization) {
    value.quantization.reset();
    return true;
  }
  const auto count = random.one_in(2) || value.dims.empty() ? int64_t{1} : value.dims.back().extent;
  if (count < 1 || count > kMostConstantElements) return false;
  value.quantization = {.scale = std::vector<float>(static_cast<size_t>(count), 0.125f),
                        .zero_point = std::vector<int64_t>(static_cast<size_t>(count)),
                        .axis = count == 1 ? -1 : value.rank() - 1};
  return true;
}

// --- nodes

/// A value that node `before` may read; of this type if there is one, mostly.
ValueId earlier_value(const Graph& graph, size_t before, DType dtype, Random& random) {
  const auto made_by = producers(graph);
  std::vector<ValueId> any, same;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (made_by[id] ? *made_by[id] >= before : graph[id].role == Role::Intermediate) continue;
    any.push_back(id);
    if (graph[id].dtype == dtype) same.push_back(id);
  }
  if (!same.empty() && !random.one_in(4)) return random.pick(same);
  return any.empty() ? kNoValue : random.pick(any);
}

bool change_attribute(Graph& graph, Random& random) {
  Node& node = random.pick(graph.nodes);
  return node.kind() != OpKind::NONE && change_attributes(node.kind(), node.op.value, random);
}

bool change_operand(Graph& graph, Random& random) {
  const size_t at = random.below(graph.nodes.size());
  auto& inputs = graph.nodes[at].inputs;
  const size_t i = random.below(inputs.size());
  const DType dtype = inputs.empty() || inputs[i] == kNoValue ? DType::F32 : graph[inputs[i]].dtype;
  const ValueId other = random.one_in(8) ? kNoValue : earlier_value(graph, at, dtype, random);
  change(inputs, random, other);
  return true;
}

bool change_operator(Graph& graph, Random& random) {
  Node& node = random.pick(graph.nodes);
  const auto kind = static_cast<OpKind>(1 + random.below(kOpCount - 1));
  const ops::Page* page = ops::page_of(kind);
  if (page == nullptr || !node.bodies.empty() || kind == OpKind::If || kind == OpKind::Loop) return false;
  if (node.inputs.size() < page->inputs.least || node.inputs.size() > page->inputs.most) return false;
  node.op = default_attributes(kind);
  return true;
}

/// A copy of a node, which reads the node's result where it read its first input.
bool repeat_node(Graph& graph, Random& random) {
  const size_t at = random.below(graph.nodes.size());
  Node node = graph.nodes[at];
  if (!node.inputs.empty() && !node.outputs.empty() && random.one_in(2))
    node.inputs[0] = random.pick(node.outputs);
  for (ValueId& output : node.outputs) {
    output = graph.add_value(graph[output]);
    graph.outputs.push_back(output);
  }
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(node));
  return true;
}

/// The node's readers read something else.
bool remove_node(Graph& graph, Random& random) {
  if (graph.nodes.size() < 2) return false;
  const size_t at = random.below(graph.nodes.size());
  for (const ValueId output : graph.nodes[at].outputs) {
    if (output == kNoValue) continue;
    const ValueId other = earlier_value(graph, at, graph[output].dtype, random);
    for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), output, other);
    std::erase(graph.outputs, output);
  }
  graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(at));
  return !graph.outputs.empty();
}

bool permute_nodes(Graph& graph, Random& random) {
  if (graph.nodes.size() < 2) return false;
  const size_t at = random.below(graph.nodes.size() - 1);
  std::swap(graph.nodes[at], graph.nodes[at + 1]);
  return true;
}

/// A Loop around a copy of a node, whose results it stacks.
bool wrap_in_loop(Graph& graph, Random& random) {
  const size_t at = random.below(graph.nodes.size());
  Node inner = graph.nodes[at];
  if (!inner.bodies.empty()) return false;
  Graph body;
  const ValueId iteration =
      body.add_value({.name = "iteration", .dtype = DType::I64, .role = Role::Input, .dims = {}});
  const ValueId condition =
      body.add_value({.name = "condition", .dtype = DType::Bool, .role = Role::Input, .dims = {}});
  body.inputs = {iteration, condition};
  const int64_t trips = random.one_in(2) ? static_cast<int64_t>(random.below(5)) : random.pick(kNumbers);
  Node loop{.op = make_op(op::LoopAttributes{}), .name = "loop"};
  loop.inputs = {graph.add_constant("trips", {DType::I64, {}}, Blob::copy_of(&trips, sizeof trips)),
                 kNoValue};
  for (ValueId& input : inner.inputs) {
    if (input == kNoValue) continue;
    loop.inputs.push_back(input);
    Value captured{.name = text("x", body.values.size()), .dtype = graph[input].dtype, .role = Role::Input};
    for (Dim dim : graph[input].dims) {
      if (dim.symbol >= 0) dim.symbol = body.symbol(graph.symbols[static_cast<size_t>(dim.symbol)].name);
      captured.dims.push_back(dim);
    }
    input = body.add_value(std::move(captured));
    body.inputs.push_back(input);
  }
  const ValueId go_on = body.add_value({.name = "go_on", .dtype = DType::Bool, .dims = {}});
  body.nodes.push_back({.op = make_op(op::IdentityAttributes{}), .inputs = {condition}, .outputs = {go_on}});
  body.outputs = {go_on};
  for (ValueId& output : inner.outputs) {
    output = body.add_value({.name = text("y", body.values.size()), .dims = {}});
    body.outputs.push_back(output);
    loop.outputs.push_back(graph.add_value({.name = "stacked", .dims = {}}));
    graph.outputs.push_back(loop.outputs.back());
  }
  body.nodes.push_back(std::move(inner));
  loop.bodies.push_back(std::move(body));
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(at), std::move(loop));
  return true;
}

bool change_outputs(Graph& graph, Random& random) {
  if (graph.outputs.size() > 1 && random.one_in(2)) {
    graph.outputs.erase(graph.outputs.begin() +
                        static_cast<std::ptrdiff_t>(random.below(graph.outputs.size())));
    return true;
  }
  const ValueId id = earlier_value(graph, graph.nodes.size(), DType::F32, random);
  if (id == kNoValue || std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0) return false;
  graph.outputs.push_back(id);
  return true;
}

// --- the graph again, with everything that follows from its sources and attributes

/// Infers all results. keep_states: the model's.
Result<Graph> rebuilt(const Graph& old, const std::vector<State>& states) {
  Graph made;
  made.name = old.name;
  made.symbols = old.symbols;
  made.refusal = old.refusal;
  std::vector<ValueId> now(old.values.size(), kNoValue);
  compiler::Builder build(made, &states);
  for (const ValueId id : old.inputs) now[id] = build.input(old[id].name, old[id].dtype, old[id].dims);
  for (ValueId id = 0; id < old.values.size(); ++id) {
    const Value& value = old[id];
    if (value.role == Role::Constant) now[id] = build.constant(value.info(), value.data);
    if (value.role == Role::State) now[id] = build.state(value.name, value.state, value.info());
  }
  for (const Node& node : old.nodes) {
    Node copy = node;
    for (ValueId& input : copy.inputs) {
      if (input == kNoValue) continue;
      input = now[input];
      if (input == kNoValue) return invalid_argument("node '", node.name, "' is not in order");
    }
    const ops::Page* page = ops::page_of(node.kind());
    if (page != nullptr && page->composite) copy.bodies.clear();
    for (Graph& body : copy.bodies) {
      RT_ASSIGN(body, rebuilt(body, states));
    }
    const std::vector<ValueId> results = build.emit_node(std::move(copy));
    RT_TRY(Status(build.status()));
    for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i)
      if (node.outputs[i] != kNoValue) now[node.outputs[i]] = results[i];
  }
  for (ValueId id = 0; id < old.values.size(); ++id)
    if (now[id] != kNoValue) made[now[id]].quantization = old[id].quantization;
  for (const ValueId id : old.outputs)
    if (now[id] != kNoValue) made.outputs.push_back(now[id]);
  for (const StateUpdate& update : old.state_updates)
    if (now[update.state] != kNoValue && now[update.value] != kNoValue)
      made.state_updates.push_back({now[update.state], now[update.value]});
  RT_TRY(Status(build.status()));
  return made;
}

/// Replaces the entry's graph by one that is right again; false if there is none.
bool finish(ModelGraph& model, size_t entry, const Graph& changed) {
  auto graph = rebuilt(changed, model.states);
  if (!graph.ok() || !compiler::expand_composites(*graph, model.states).ok()) return false;
  std::swap(model.entries[entry].graph, *graph);
  if (verify(model).ok()) return true;
  std::swap(model.entries[entry].graph, *graph);
  return false;
}

}  // namespace

bool mutate(ModelGraph& model, Random& random) {
  using Change = bool (*)(Graph&, Random&);
  static constexpr Change kChanges[] = {
      change_attribute,    change_attribute, change_attribute, change_dims,     change_dims,
      change_dims,         change_dtype,     change_constant,  change_constant, change_role,
      change_quantization, change_operand,   change_operand,   change_operator, repeat_node,
      remove_node,         permute_nodes,    wrap_in_loop,     change_outputs};
  const size_t entry = random.below(model.entries.size());
  for (int attempt = 0; attempt < 20; ++attempt) {
    Graph graph = model.entries[entry].graph;
    if (graph.nodes.empty() || graph.nodes.size() > 200) return false;
    // In the body of a Loop or an If as well.
    Graph* at = &graph;
    for (Node& node : graph.nodes)
      if (const ops::Page* page = ops::page_of(node.kind());
          !node.bodies.empty() && page != nullptr && !page->composite && random.one_in(2))
        at = &random.pick(node.bodies);
    if (at->nodes.empty()) at = &graph;
    bool changed = false;
    for (size_t count = 1 + random.below(3); count > 0 && !at->nodes.empty(); --count)
      changed = random.pick(kChanges)(*at, random) || changed;
    if (changed && finish(model, entry, graph)) return true;
  }
  return false;
}

bool splice(ModelGraph& into, const ModelGraph& from, Random& random) {
  if (into.entries.empty() || from.entries.empty()) return false;
  const size_t entry = random.below(into.entries.size());
  const Graph& other = from.entries[random.below(from.entries.size())].graph;
  if (into.entries[entry].graph.nodes.size() + other.nodes.size() > 200) return false;
  for (const bool joined : {true, false}) {
    Graph graph = into.entries[entry].graph;
    const size_t before = graph.nodes.size();
    std::vector<ValueId> now(other.values.size(), kNoValue);
    for (ValueId id = 0; id < other.values.size(); ++id) {
      Value value = other[id];
      if (value.role == Role::State) return false;
      if (value.role == Role::Input) {
        if (joined && random.one_in(2)) now[id] = earlier_value(graph, before, value.dtype, random);
        if (now[id] != kNoValue) continue;
        value.name += text(".", graph.values.size());
        for (Dim& dim : value.dims)
          if (dim.symbol >= 0) dim.symbol = graph.symbol(other.symbols[static_cast<size_t>(dim.symbol)].name);
        graph.inputs.push_back(static_cast<ValueId>(graph.values.size()));
      } else {
        for (Dim& dim : value.dims) dim.symbol = -1;
      }
      now[id] = graph.add_value(std::move(value));
    }
    const auto renumber = [&](std::vector<ValueId>& ids) {
      for (ValueId& id : ids)
        if (id != kNoValue) id = now[id];
    };
    for (Node node : other.nodes) {
      renumber(node.inputs);
      renumber(node.outputs);
      graph.nodes.push_back(std::move(node));
    }
    std::vector<ValueId> outputs = other.outputs;
    renumber(outputs);
    for (const ValueId id : outputs)
      if (std::find(graph.outputs.begin(), graph.outputs.end(), id) == graph.outputs.end())
        graph.outputs.push_back(id);
    if (finish(into, entry, graph)) return true;
  }
  return false;
}

}  // namespace librt::fuzz
