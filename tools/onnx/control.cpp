// If, Loop and Scan: graphs inside nodes.
//
// A branch with a known condition is inlined. Other branches become bodies (Importer::Frame). A carried value
// of a Loop whose extent changes between iterations gets a symbol for it, and the body is imported again; so
// it is where no iteration changes a carried value, which is captured then.
// Scan is a Loop that gathers one slice of each scanned input.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "runtime/core/convert_floats.h"
#include "runtime/core/element.h"
#include "runtime/graph/verify.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/importer.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {

namespace {

int64_t entry(const std::vector<int64_t>& list, size_t i) {
  return i < list.size() ? list[i] : 0;
}

ValueId extent_of(Emitter& emit, ValueId x, int axis) {
  return reshape_to(emit, dims_product(emit, x, axis, axis + 1), {});
}

ValueId reversed(Emitter& emit, ValueId x) {
  op::SliceAttributes attributes;
  attributes.axes = {0};
  attributes.steps = {-1};
  const int64_t start = -1, end = std::numeric_limits<int64_t>::min();
  return emit.emit(std::move(attributes), {x, emit.ints({&start, 1}), emit.ints({&end, 1})});
}

}  // namespace

// --- frames

std::vector<Dim> Importer::Frame::dims_of(ValueId outer) {
  const Graph& graph = parent->builder.graph();
  std::vector<Dim> dims = graph[outer].dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    Dim& dim = dims[axis];
    if (dim.is_known()) continue;
    dim.symbol = builder.copy_symbol(graph, dim.symbol);
  }
  return dims;
}

ValueId Importer::Frame::capture(ValueId outer) {
  if (outer == kNoValue) return kNoValue;
  if (const auto found = known.find(outer); found != known.end()) return found->second;
  const Value& value = parent->builder.value(outer);
  ValueId id = kNoValue;
  if (value.role == Role::Constant) {
    id = builder.constant(value.info(), value.data);
  } else if (parent->builder.known_value(outer)) {
    if (for_training) id = copy_computation(outer);
    if (id == kNoValue) id = known_constant(outer);
  } else {
    id = builder.input(value.name, value.dtype, dims_of(outer));
    captured.push_back(outer);
  }
  if (id != kNoValue) builder.graph()[id].name = value.name;
  known[outer] = id;
  if (const auto narrow = parent->narrow_types.find(outer); narrow != parent->narrow_types.end())
    narrow_types[id] = narrow->second;
  if (const auto list = parent->strings.find(outer); list != parent->strings.end())
    strings[id] = list->second;
  return id;
}

ValueId Importer::Frame::known_constant(ValueId outer) {
  const auto bytes = parent->builder.known_value(outer);
  if (!bytes) return kNoValue;
  return builder.constant(bytes->info, Blob::copy_of(bytes->data, bytes->info.bytes()));
}

ValueId Importer::Frame::copy_computation(ValueId outer) {
  const Graph& from = parent->builder.graph();
  std::unordered_set<ValueId> wanted{outer};
  std::vector<NodeId> nodes;  // last first
  bool has_weight = false;
  for (auto id = static_cast<NodeId>(from.nodes.size()); id-- > 0 && !wanted.empty();) {
    const Node& node = from.nodes[id];
    bool is_wanted = false;
    for (const ValueId output : node.outputs) is_wanted |= wanted.erase(output) > 0;
    if (!is_wanted) continue;
    if (!node.bodies.empty()) return kNoValue;
    nodes.push_back(id);
    if (node.kind() == OpKind::Shape) continue;  // extents do not depend on weights
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const Value& value = from[input];
      if (value.role != Role::Constant)
        wanted.insert(input);
      else
        has_weight |= is_exchangeable(value.dtype) && !value.name.empty();
    }
  }
  if (!has_weight || !wanted.empty()) return kNoValue;
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    Node node = from.nodes[*id];
    const std::vector<ValueId> outputs = node.outputs;
    std::vector<ValueId> made;
    if (node.kind() == OpKind::Shape) {
      made = {known_constant(outputs[0])};
    } else {
      for (ValueId& input : node.inputs) input = capture(input);  // a constant, or copied before
      node.outputs.assign(outputs.size(), kNoValue);
      made = builder.emit_node(std::move(node));
    }
    if (made.size() != outputs.size()) return kNoValue;
    for (size_t i = 0; i < made.size(); ++i) {
      if (outputs[i] == kNoValue || made[i] == kNoValue) continue;
      builder.graph()[made[i]].name = from[outputs[i]].name;
      known[outputs[i]] = made[i];
    }
  }
  return known.at(outer);
}

ValueId Importer::within(Frame& frame, const Frame* from, ValueId id) {
  if (id == kNoValue || is_sequence(id) || &frame == from || frame.parent == nullptr) return id;
  return frame.capture(within(*frame.parent, from, id));
}

// --- shared by the three

int64_t Importer::opset_of(const Scope& scope) {
  const auto version = scope.opsets->find("");
  return version != scope.opsets->end() ? version->second : 0;
}

std::vector<SupportedOp> Importer::walked_ops() {
  std::vector<SupportedOp> ops;
  const auto add = [&](std::string_view domain, std::string_view op, int first) {
    ops.push_back({.domain = domain, .op = op, .first_opset = first, .last_opset = kNewestOpset});
  };
  add("ai.onnx", "If", 1);
  add("ai.onnx", "Loop", 1);
  add("ai.onnx", "Scan", 8);
  add("ai.onnx", "SequenceMap", 17);
  add("ai.onnx.preview", "FlexAttention", 1);
  for (const SequenceRow& row : sequence_rows()) add("ai.onnx", row.op, row.first_opset);
  return ops;
}

Importer::AddControl Importer::control_importer(const std::string& domain, const std::string& op) {
  if (domain == "ai.onnx.preview" && op == "FlexAttention") return &Importer::add_flex_attention;
  if (!domain.empty()) return nullptr;
  if (op == "If") return &Importer::add_if;
  if (op == "Loop") return &Importer::add_loop;
  if (op == "Scan") return &Importer::add_scan;
  if (op == "SequenceMap") return &Importer::add_sequence_map;
  return sequence_row(op) != nullptr ? &Importer::add_sequence_node : nullptr;
}

/// Resolves the inputs and checks that the graphs exist; problems have been reported when it returns false.
bool Importer::check_control(const rt_onnx::NodeProto& node, const std::string& name, const Scope& scope,
                             std::initializer_list<std::string_view> graphs, std::vector<ValueId>& inputs) {
  bool complete = true;
  for (const std::string& input : node.input()) {
    const bool absent = input.empty() || scope.is_absent(input);
    const auto found = absent ? std::optional<ValueId>(kNoValue) : lookup(scope, input);
    if (!found)
      problem(text("node '", name, "' (", node.op_type(), ") reads '", input, "', which nothing produces"));
    complete = complete && found && (absent || *found != kNoValue);
    inputs.push_back(found.value_or(kNoValue));
  }
  for (const std::string_view graph : graphs)
    if (const auto* found = find_attribute(node, graph); found == nullptr || !found->has_g()) {
      problem(text("node '", name, "' (", node.op_type(), "): it has no ", graph));
      complete = false;
    }
  if (complete && (scope.depth >= kMaxDepth || frame_->depth >= kMaxBodyDepth)) {
    report_unsupported(node, name, opset_of(scope), inputs,
                       "graphs are nested too deeply; flatten the model");
    complete = false;
  }
  return complete;
}

void Importer::finish_control(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope,
                              std::vector<ValueId> outputs, size_t first_new) {
  const Status failure = builder().take_failure();
  if (!failure.ok()) {
    outputs.clear();
    if (failure.code() == Code::Unsupported || failure.code() == Code::InvalidArgument)
      report_unsupported(node, name, opset_of(scope), {}, failure.message());
    else
      problem(text("node '", name, "' (", node.op_type(), "): ", failure.message()));
  } else if (!outputs.empty() && outputs.size() < static_cast<size_t>(node.output_size())) {
    problem(text("node '", name, "' (", node.op_type(), "): has ", node.output_size(),
                 " outputs, its graph gives ", outputs.size()));
  }
  bind_outputs(node, scope, outputs, first_new);
}

std::vector<ValueId> Importer::add_graph(const rt_onnx::GraphProto& graph, const std::string& name,
                                         const Scope& scope, std::span<const ValueId> inputs) {
  rt_onnx::GraphProto copy = graph;  // its initializers are taken out
  Scope inner{.parent = &scope,
              .frame = frame_,
              .opsets = scope.opsets,
              .attributes = scope.attributes,
              .depth = scope.depth + 1,
              .prefix = name + "/"};
  const size_t before = troubles();
  if (copy.sparse_initializer_size() > 0)
    problem(text("'", name, "': a graph has sparse initializers; store them as dense ones"));
  if (static_cast<size_t>(copy.input_size()) != inputs.size()) {
    problem(text("'", name, "': its graph has ", copy.input_size(), " inputs, expected ", inputs.size()));
    return {};
  }
  for (int i = 0; i < copy.input_size(); ++i)
    bind(inner, copy.input(i).name(), inputs[static_cast<size_t>(i)]);
  add_initializers(copy, inner);
  add_nodes(copy.node(), inner);
  std::vector<ValueId> outputs;
  for (const auto& output : copy.output()) {
    const auto found = lookup(inner, output.name());
    if (!found && troubles() == before)
      problem(text("'", name, "': nothing produces its graph's output '", output.name(), "'"));
    outputs.push_back(found.value_or(kNoValue));
  }
  if (troubles() != before) return {};
  if (std::count(outputs.begin(), outputs.end(), kNoValue) > 0) return {};
  return outputs;
}

namespace {

/// Sets the outputs of a body: distinct values, each produced by a node.
void set_outputs(compiler::Builder& builder, std::span<const ValueId> outputs) {
  std::unordered_set<ValueId> taken;
  for (ValueId id : outputs) {
    if (id == kNoValue) continue;
    if (builder.value(id).role != Role::Intermediate || !taken.insert(id).second)
      id = builder.emit(op::IdentityAttributes{}, {id});
    if (id != kNoValue) builder.output(id);
  }
}

}  // namespace

// --- If

bool Importer::add_branch(const rt_onnx::GraphProto& graph, const std::string& name, Scope& scope,
                          Branch& branch) {
  Frame& outer = *frame_;
  branch.frame = std::make_unique<Frame>(&outer);
  branch.frame->is_optional = true;
  frame_ = branch.frame.get();
  // Extent constraints of one branch do not apply to the other: they are checked by a run that takes it.
  branch.frame->builder.fit_symbols(branch.frame->fitted);
  const size_t problems = problem_count_, entries = report_.unsupported.size();
  branch.outputs = add_graph(graph, name, scope, {});
  const bool failed = branch.outputs.empty() && graph.output_size() > 0;
  branch.packing = unpack(branch.outputs);
  frame_ = &outer;
  if (!failed) return true;
  const auto first = report_.unsupported.begin() + static_cast<std::ptrdiff_t>(entries);
  branch.refused.assign(first, report_.unsupported.end());
  if (problem_count_ != problems || branch.refused.empty() ||
      !std::all_of(first, report_.unsupported.end(), [](const UnsupportedNode& n) { return n.refused; }))
    return false;
  report_.unsupported.erase(first, report_.unsupported.end());
  return true;
}

bool Importer::drop_refused(std::array<Branch, 2>& branches, const std::string& name, std::string& refusal) {
  for (size_t i = 0; i < 2; ++i) {
    if (branches[i].refused.empty()) continue;
    if (!branches[1 - i].refused.empty()) {
      for (const Branch& branch : branches)
        report_.unsupported.insert(report_.unsupported.end(), branch.refused.begin(), branch.refused.end());
      return false;
    }
    const UnsupportedNode& cause = branches[i].refused[0];
    refusal = cause.reason.starts_with("node '")
                  ? cause.reason
                  : text("node '", cause.name, "' (", cause.op, "): ", cause.reason);
    report_.warnings.push_back(
        text("the ", i == 0 ? "then" : "else", " branch of '", name,
             "' does not fit its inputs, and a run that takes it ends with an error: ", refusal));
    branches[i].frame = nullptr;
  }
  return true;
}

namespace {

bool has_one_element(const Value& value) {
  return std::ranges::all_of(value.dims, [](const Dim& dim) { return dim.is_known() && dim.extent == 1; });
}

/// The only element of x with `rank` axes.
ValueId with_rank(Emitter& emit, ValueId x, int rank) {
  return reshape_to(emit, x, std::vector<Extent>(static_cast<size_t>(rank), Extent::of(1)));
}

/// The node that produces the graph's only output; null where there are several outputs or no such node.
const rt_onnx::NodeProto* only_result(const rt_onnx::GraphProto& graph) {
  if (graph.output_size() != 1) return nullptr;
  for (const rt_onnx::NodeProto& node : graph.node())
    if (node.output_size() == 1 && node.output(0) == graph.output(0).name() && node.input_size() > 0)
      return &node;
  return nullptr;
}

}  // namespace

void Importer::drop_unsqueezed(BranchGraphs graphs, std::array<Branch, 2>& branches, const std::string& name,
                               std::string& refusal) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Branch &squeezing = branches[i], &other = branches[1 - i];
    if (squeezing.frame == nullptr || other.frame == nullptr) return;
    if (squeezing.outputs.size() != 1 || other.outputs.size() != 1) return;
    if (squeezing.outputs[0] == kNoValue || other.outputs[0] == kNoValue) return;
    const rt_onnx::NodeProto *squeeze = only_result(*graphs[i]), *same = only_result(*graphs[1 - i]);
    if (squeeze == nullptr || squeeze->op_type() != "Squeeze") continue;
    const std::string& passed_on = same == nullptr                 ? graphs[1 - i]->output(0).name()
                                   : same->op_type() == "Identity" ? same->input(0)
                                                                   : std::string();
    const int rank = squeezing.frame->builder.value(squeezing.outputs[0]).rank();
    const int other_rank = other.frame->builder.value(other.outputs[0]).rank();
    if (squeeze->input(0) != passed_on || rank == other_rank) continue;
    refusal = text("'", passed_on, "' has another extent than 1 on the axis that the other branch removes");
    report_.warnings.push_back(text("the ", i == 0 ? "else" : "then", " branch of '", name, "' passes on '",
                                    passed_on, "' of rank ", other_rank,
                                    ", from which the other removes an axis of extent 1: the rank is ", rank,
                                    ", and a run in which that extent is not 1 ends with an error"));
    branches[1 - i].frame = nullptr;
    return;
  }
}

Node Importer::make_if(std::array<Branch, 2>& branches, const std::string& name, ValueId condition,
                       const std::string& refusal) {
  std::vector<ValueId> captured;
  std::unordered_set<ValueId> seen;
  for (const Branch& branch : branches)
    if (branch.frame != nullptr)
      for (const ValueId id : branch.frame->captured)
        if (seen.insert(id).second) captured.push_back(id);
  Node made;
  made.op = make_op(op::IfAttributes{});
  made.name = name;
  made.inputs = {condition};
  made.inputs.insert(made.inputs.end(), captured.begin(), captured.end());
  for (size_t i = 0; i < 2; ++i) {
    if (branches[i].frame == nullptr) continue;
    Frame& frame = *branches[i].frame;
    std::vector<ValueId> own;
    for (const ValueId id : captured) own.push_back(frame.capture(id));
    frame.builder.graph().inputs = std::move(own);
    frame.builder.set_scope(name + "/output");
    set_outputs(frame.builder, branches[i].outputs);
    builder().fail(frame.builder.take_failure());
    frame.own.name = text(name, i == 0 ? "/then" : "/else");
    for (const std::string& sentence : frame.fitted)
      report_.warnings.push_back(
          text("in the ", i == 0 ? "then" : "else", " branch of '", name, "': ", sentence));
    made.bodies.push_back(std::move(frame.own));
  }
  if (made.bodies.size() == 1) {
    made.bodies.push_back(made.bodies[0]);
    made.bodies[branches[0].frame == nullptr ? 0 : 1].refusal = refusal;
  }
  return made;
}

// --- BodyWriter

std::vector<ValueId> Importer::write_body(const Write& write, std::span<const ValueId> inputs) {
  Frame& frame = *frame_;
  return write({frame.builder, inputs, [&](ValueId outer) { return frame.capture(outer); }});
}

std::vector<ValueId> Importer::choose(ValueId condition, const Write& then, const Write& otherwise) {
  Frame& outer = *frame_;
  const std::string name = outer.builder.scope();
  std::array<Branch, 2> branches;
  for (size_t i = 0; i < 2; ++i) {
    branches[i].frame = std::make_unique<Frame>(&outer);
    frame_ = branches[i].frame.get();
    frame_->builder.set_scope(text(name, i == 0 ? "/then" : "/else"));
    branches[i].outputs = write_body(i == 0 ? then : otherwise, {});
    frame_ = &outer;
    outer.builder.fail(branches[i].frame->builder.take_failure());
  }
  if (!outer.builder.status().ok()) return {};
  return outer.builder.emit_node(make_if(branches, name, condition, ""));
}

std::vector<ValueId> Importer::repeat(ValueId trips, std::vector<ValueId> carried, const Write& write) {
  const LoopParts parts{.name = builder().scope(), .trips = trips, .carried = std::move(carried)};
  return emit_loop(parts, [&](std::span<const ValueId> own) {
    builder().set_scope(parts.name + "/body");
    std::vector<ValueId> inputs(own.begin(), own.end());
    inputs.erase(inputs.begin() + 1);  // the condition, which goes on unchanged
    std::vector<ValueId> outputs = write_body(write, inputs);
    if (!outputs.empty()) outputs.insert(outputs.begin(), own[1]);
    return outputs;
  });
}

std::optional<bool> Importer::kept_branch(BranchGraphs graphs, ValueId condition, std::string& reason) {
  const auto example = builder().example_value(condition);
  if (example && example->info.elements() == 1) {
    const bool taken = load_element(example->data, example->info.dtype, 0) != 0;
    reason = text("extents lead to the ", taken ? "then" : "else",
                  " branch, and a run in which they do not ends with an error");
    return taken;
  }
  const auto passes_on = [&](size_t branch) {
    const auto& nodes = graphs[branch]->node();
    return std::all_of(nodes.begin(), nodes.end(),
                       [](const rt_onnx::NodeProto& node) { return node.op_type() == "Identity"; });
  };
  const bool taken = passes_on(0);
  if (taken == passes_on(1)) return std::nullopt;
  reason = text(
      "the ", taken ? "then" : "else",
      " branch, which only passes values on, is kept, and a run that takes the other ends with an error");
  return taken;
}

std::string Importer::fit_branches(BranchGraphs graphs, std::array<Branch, 2>& branches,
                                   const std::string& name, ValueId condition, std::string& refusal) {
  for (size_t i = 0; i < std::min(branches[0].outputs.size(), branches[1].outputs.size()); ++i) {
    if (branches[0].outputs[i] == kNoValue || branches[1].outputs[i] == kNoValue) continue;
    const auto value = [&](size_t branch) -> const Value& {
      return branches[branch].frame->builder.value(branches[branch].outputs[i]);
    };
    if (value(0).dtype == value(1).dtype && value(0).rank() == value(1).rank()) continue;
    if (value(0).dtype == value(1).dtype && has_one_element(value(0)) && has_one_element(value(1))) {
      const size_t higher = value(0).rank() < value(1).rank() ? 1 : 0;
      const int rank = value(1 - higher).rank();
      report_.warnings.push_back(text("the branches of '", name, "' give one element of rank ",
                                      value(0).rank(), " and of rank ", value(1).rank(), " as output ", i,
                                      ": it has rank ", rank, " here"));
      ValueId& result = branches[higher].outputs[i];
      result = with_rank(branches[higher].frame->builder, result, rank);
      continue;
    }
    const auto type_of = [&](size_t branch) {
      return text(name_of(value(branch).dtype), " of rank ", value(branch).rank());
    };
    std::string reason;
    if (const auto taken = kept_branch(graphs, condition, reason)) {
      const char *kept = *taken ? "then" : "else", *dropped = *taken ? "else" : "then";
      refusal = text("the ", dropped, " branch gives ", type_of(*taken ? 1 : 0), " as output ", i, ", the ",
                     kept, " branch ", type_of(*taken ? 0 : 1));
      report_.warnings.push_back(text("'", name, "': ", refusal, "; ", reason));
      branches[*taken ? 1 : 0].frame = nullptr;
      return {};
    }
    return text("its branches give ", type_of(0), " and ", type_of(1), " as output ", i,
                "; fix the dimensions that its condition depends on with --dim, or make the condition known "
                "with --constant");
  }
  return {};
}

void Importer::add_if(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  if (!check_control(node, name, scope, {"then_branch", "else_branch"}, inputs))
    return bind_nothing(node, scope);
  if (inputs.size() != 1 || inputs[0] == kNoValue || is_sequence(inputs[0])) {
    problem(text("node '", name, "' (If): expected one tensor as its input"));
    return bind_nothing(node, scope);
  }
  const rt_onnx::GraphProto* graphs[] = {&find_attribute(node, "then_branch")->g(),
                                         &find_attribute(node, "else_branch")->g()};
  const size_t first_new = builder().graph().values.size();
  const auto known = builder().known_value(inputs[0]);
  if (known && known->info.elements() == 1) {
    const bool taken = load_element(known->data, known->info.dtype, 0) != 0;
    return finish_control(node, name, scope, add_graph(*graphs[taken ? 0 : 1], name, scope, {}), first_new);
  }
  std::array<Branch, 2> branches;
  for (size_t i = 0; i < 2; ++i)
    if (!add_branch(*graphs[i], name, scope, branches[i])) return bind_nothing(node, scope);
  std::string refusal;
  if (!drop_refused(branches, name, refusal)) return bind_nothing(node, scope);
  drop_unsqueezed(graphs, branches, name, refusal);
  const bool both = branches[0].frame != nullptr && branches[1].frame != nullptr;
  if (both && branches[0].packing != branches[1].packing) {
    report_unsupported(
        node, name, opset_of(scope), inputs,
        "its branches give sequences of different lengths, or an optional that only one of them "
        "fills; make the condition known with --constant");
    return bind_nothing(node, scope);
  }
  if (both)
    if (const std::string why = fit_branches(graphs, branches, name, inputs[0], refusal); !why.empty()) {
      report_unsupported(node, name, opset_of(scope), inputs, why);
      return bind_nothing(node, scope);
    }
  const Packing packing = branches[branches[0].frame != nullptr ? 0 : 1].packing;
  Node made = make_if(branches, name, inputs[0], refusal);
  finish_control(node, name, scope, pack(builder().emit_node(std::move(made)), packing), first_new);
}

// --- Loop

namespace {

/// Marks the carried values that an iteration passes on as they are; false when no further ones are.
bool find_unchanged(const Graph& body, std::span<const ValueId> before, std::span<const ValueId> after,
                    std::vector<bool>& unchanged) {
  std::unordered_map<ValueId, ValueId> passed_on;
  for (const Node& node : body.nodes)
    if (node.kind() == OpKind::Identity && node.inputs.size() == 1)  // with two it checks the shape
      passed_on[node.outputs[0]] = node.inputs[0];
  bool found = false;
  for (size_t i = 0; i < unchanged.size(); ++i) {
    if (unchanged[i]) continue;
    ValueId id = after[i];
    for (auto next = passed_on.find(id); next != passed_on.end(); next = passed_on.find(id))
      id = next->second;
    if (id == before[i]) unchanged[i] = found = true;
  }
  return found;
}

/// Marks further axes; false when there are none.
bool find_varying(const compiler::Builder& body, std::span<const ValueId> before,
                  std::span<const ValueId> after, std::vector<std::vector<bool>>& varying) {
  bool found = false;
  for (size_t i = 0; i < varying.size(); ++i) {
    const Value& in = body.value(before[i]);
    const Value& out = body.value(after[i]);
    if (in.rank() != out.rank()) continue;  // the operator's page refuses that
    for (size_t axis = 0; axis < in.dims.size(); ++axis) {
      const bool same =
          in.dims[axis] == out.dims[axis] && (in.dims[axis].is_known() || in.dims[axis].symbol >= 0);
      if (same || varying[i][axis]) continue;
      varying[i][axis] = found = true;
    }
  }
  return found;
}

}  // namespace

bool Importer::fit_carried(LoopParts& parts, Frame& body, std::span<const ValueId> before,
                           std::span<ValueId> after, Varying& varying) {
  const Graph& graph = body.builder.graph();
  std::unordered_set<ValueId> read(after.begin(), after.end());
  for (const Node& node : graph.nodes) read.insert(node.inputs.begin(), node.inputs.end());
  bool changed = false;
  for (size_t i = 0; i < before.size(); ++i) {
    const Value &in = graph[before[i]], &out = graph[after[i]];
    if (in.dtype != out.dtype || in.rank() == out.rank()) continue;
    const std::string what = text("carried value ", i, " of '", parts.name, "' has rank ", in.rank(),
                                  " before the first iteration and rank ", out.rank(), " after it");
    if (has_one_element(in) && has_one_element(out)) {
      report_.warnings.push_back(text(what, ": it has rank ", in.rank(), " here"));
      after[i] = with_rank(body.builder, after[i], in.rank());
    } else if (has_one_element(in) && !read.contains(before[i])) {
      const int rank = out.rank();
      parts.warnings.push_back(text(what, ": it has rank ", rank, " here, also without iterations"));
      parts.carried[i] = with_rank(builder(), parts.carried[i], rank);
      varying[i].assign(static_cast<size_t>(rank), false);
      changed = true;
    }
  }
  return changed;
}

std::vector<ValueId> Importer::emit_loop(LoopParts parts, const WriteBody& write) {
  Frame& outer = *frame_;
  const size_t carried = parts.carried.size();
  Varying varying;
  for (const ValueId id : parts.carried) varying.emplace_back(outer.builder.value(id).dims.size());
  // Those that no iteration changes, as exporters of while loops carry weights, are captured instead.
  std::vector<bool> unchanged(carried);
  const size_t warnings = report_.warnings.size();
  while (outer.builder.status().ok()) {
    report_.warnings.resize(warnings);  // without those of the import before
    Frame frame(&outer);
    std::vector<ValueId> inputs = {
        frame.builder.input("iteration", DType::I64,
                            std::vector<Dim>(static_cast<size_t>(parts.iteration_rank), {.extent = 1})),
        frame.builder.input("condition", DType::Bool,
                            std::vector<Dim>(static_cast<size_t>(parts.condition_rank), {.extent = 1}))};
    for (size_t i = 0; i < carried; ++i) {
      inputs.push_back(kNoValue);
      if (unchanged[i]) continue;
      std::vector<Dim> dims = frame.dims_of(parts.carried[i]);
      for (size_t axis = 0; axis < dims.size(); ++axis)
        if (varying[i][axis])
          dims[axis] = {.symbol = frame.builder.symbol(text(parts.name, '@', i, '.', axis))};
      const Value& initial = outer.builder.value(parts.carried[i]);
      inputs.back() = frame.builder.input(initial.name, initial.dtype, std::move(dims));
    }
    for (size_t i = 0; i < carried; ++i)
      if (unchanged[i]) inputs[2 + i] = frame.capture(parts.carried[i]);
    frame_ = &frame;
    std::vector<ValueId> outputs = write(inputs);
    frame_ = &outer;
    outer.builder.fail(frame.builder.take_failure());
    if (outputs.size() < 1 + carried || !outer.builder.status().ok()) return {};
    if (std::any_of(outputs.begin(), outputs.end(), is_sequence)) {
      outer.builder.fail(invalid_model("its body gives a sequence where a tensor is expected"));
      return {};
    }
    const std::span<const ValueId> before = std::span(inputs).subspan(2);
    const std::span<ValueId> after = std::span(outputs).subspan(1);
    if (find_unchanged(frame.builder.graph(), before, after, unchanged)) continue;
    if (fit_carried(parts, frame, before, after, varying)) continue;
    if (find_varying(frame.builder, before, after, varying)) continue;
    std::ranges::copy(parts.warnings, std::back_inserter(report_.warnings));
    Node node;
    node.inputs = {parts.trips, parts.condition};
    std::vector<ValueId> own = {outputs[0]};
    for (size_t i = 0; i < carried; ++i) {
      if (unchanged[i]) continue;
      node.inputs.push_back(parts.carried[i]);
      own.push_back(after[i]);
    }
    op::LoopAttributes attributes;
    attributes.carried = static_cast<int64_t>(own.size() - 1);
    own.insert(own.end(), after.begin() + static_cast<std::ptrdiff_t>(carried), after.end());
    if (own.size() == 1) return parts.carried;
    frame.builder.set_scope(parts.name + "/output");
    set_outputs(frame.builder, own);
    outer.builder.fail(frame.builder.take_failure());
    frame.own.name = parts.name + "/body";
    node.op = make_op(attributes);
    node.name = parts.name;
    node.inputs.insert(node.inputs.end(), frame.captured.begin(), frame.captured.end());
    node.outputs.assign(own.size() - 1, kNoValue);
    node.bodies.push_back(std::move(frame.own));
    const std::vector<ValueId> made = outer.builder.emit_node(std::move(node));
    if (made.empty()) return {};
    std::vector<ValueId> results;
    for (size_t i = 0, next = 0; i < outputs.size() - 1; ++i)
      results.push_back(i < carried && unchanged[i] ? parts.carried[i] : made[next++]);
    return results;
  }
  return {};
}

void Importer::add_loop(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  if (!check_control(node, name, scope, {"body"}, inputs)) return bind_nothing(node, scope);
  inputs.resize(std::max<size_t>(inputs.size(), 2), kNoValue);
  if (std::any_of(inputs.begin(), inputs.end(), is_sequence))
    return add_sequence_loop(node, name, scope, inputs);
  const rt_onnx::GraphProto& body = find_attribute(node, "body")->g();
  LoopParts parts{.name = name,
                  .trips = inputs[0],
                  .condition = inputs[1],
                  .carried = {inputs.begin() + 2, inputs.end()}};
  const bool absent = std::count(parts.carried.begin(), parts.carried.end(), kNoValue) > 0;
  if (absent || static_cast<size_t>(body.input_size()) != inputs.size() ||
      static_cast<size_t>(body.output_size()) < inputs.size() - 1) {
    problem(text("node '", name, "' (Loop): ", parts.carried.size(),
                 " carried values do not fit a body with ", body.input_size(), " inputs and ",
                 body.output_size(), " outputs"));
    return bind_nothing(node, scope);
  }
  const auto rank = [&](int i) { return body.input(i).type().tensor_type().shape().dim_size(); };
  parts.iteration_rank = rank(0);
  parts.condition_rank = rank(1);
  const size_t first_new = builder().graph().values.size();
  auto outputs =
      emit_loop(parts, [&](std::span<const ValueId> own) { return add_graph(body, name, scope, own); });
  finish_control(node, name, scope, std::move(outputs), first_new);
}

// --- Scan

std::vector<ValueId> Importer::emit_scan(const ScanParts& parts, const rt_onnx::GraphProto& body,
                                         const Scope& scope) {
  std::vector<int> axes;
  for (size_t i = 0; i < parts.scans.size(); ++i) {
    const auto axis = normalized_axis(entry(parts.input_axes, i), builder().value(parts.scans[i]).rank());
    if (!axis) {
      builder().fail(invalid_argument("scan_input_axes: axis ", entry(parts.input_axes, i),
                                      " is outside the rank ", builder().value(parts.scans[i]).rank()));
      return {};
    }
    axes.push_back(*axis);
  }
  builder().set_scope(parts.name);
  const ValueId trips = parts.trips != kNoValue ? parts.trips : extent_of(builder(), parts.scans[0], axes[0]);
  const ValueId last = builder().sub(trips, builder().scalar(1, DType::I64));
  const LoopParts loop{.name = parts.name, .trips = trips, .carried = parts.states};
  std::vector<ValueId> outputs = emit_loop(loop, [&](std::span<const ValueId> own) -> std::vector<ValueId> {
    std::vector<ValueId> inputs(own.begin() + 2, own.end());
    builder().set_scope(parts.name + "/slice");
    for (size_t i = 0; i < parts.scans.size(); ++i) {
      const ValueId index =
          entry(parts.input_reversed, i) != 0 ? builder().sub(frame_->capture(last), own[0]) : own[0];
      inputs.push_back(take(builder(), frame_->capture(parts.scans[i]), index, axes[i]));
    }
    std::vector<ValueId> results = add_graph(body, parts.name, scope, inputs);
    if (!results.empty()) results.insert(results.begin(), own[1]);
    return results;
  });
  builder().set_scope(parts.name);
  for (size_t i = parts.states.size(); i < outputs.size(); ++i) {
    const size_t scanned = i - parts.states.size();
    if (entry(parts.output_reversed, scanned) != 0) outputs[i] = reversed(builder(), outputs[i]);
    outputs[i] = move_first_axis(builder(), outputs[i], entry(parts.output_axes, scanned));
  }
  return outputs;
}

/// Before opset 9 the first axis is the batch; each sample is scanned along the second, for its own length.
std::vector<ValueId> Importer::emit_batched_scan(const ScanParts& parts, ValueId lengths,
                                                 const rt_onnx::GraphProto& body, const Scope& scope) {
  builder().set_scope(parts.name);
  const ValueId longest = extent_of(builder(), parts.scans[0], 1);
  const LoopParts loop{.name = parts.name, .trips = extent_of(builder(), parts.scans[0], 0)};
  return emit_loop(loop, [&](std::span<const ValueId> own) -> std::vector<ValueId> {
    ScanParts sample = parts;
    sample.name = parts.name + "/sample";
    builder().set_scope(sample.name);
    for (ValueId& state : sample.states) state = take(builder(), frame_->capture(state), own[0], 0);
    for (ValueId& scan : sample.scans) scan = take(builder(), frame_->capture(scan), own[0], 0);
    if (lengths != kNoValue) sample.trips = take(builder(), frame_->capture(lengths), own[0], 0);
    std::vector<ValueId> results = emit_scan(sample, body, scope);
    for (size_t i = parts.states.size(); i < results.size() && lengths != kNoValue; ++i) {
      const ValueId missing = builder().sub(frame_->capture(longest), sample.trips);
      const auto rank = static_cast<size_t>(builder().value(results[i]).rank());
      const std::vector<int64_t> before(rank, 0), after(rank - 1, 0);
      const ValueId pads = concat_values(
          builder(), {builder().ints(before), reshape_to(builder(), missing, {1}), builder().ints(after)});
      results[i] = builder().emit(op::PadAttributes{}, {results[i], pads});
    }
    if (!results.empty()) results.insert(results.begin(), own[1]);
    return results;
  });
}

void Importer::add_scan(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  if (!check_control(node, name, scope, {"body"}, inputs)) return bind_nothing(node, scope);
  const bool batched = opset_of(scope) < 9;
  ValueId lengths = kNoValue;
  if (batched && !inputs.empty()) {
    lengths = inputs[0];
    inputs.erase(inputs.begin());
  }
  const int64_t scans = integer_of(node, "num_scan_inputs", 0);
  if (scans < 1 || scans > static_cast<int64_t>(inputs.size()) ||
      std::count(inputs.begin(), inputs.end(), kNoValue) > 0 || is_sequence(lengths) ||
      std::any_of(inputs.begin(), inputs.end(), is_sequence)) {
    problem(text("node '", name, "' (Scan): num_scan_inputs = ", scans, " does not fit ", inputs.size(),
                 " inputs"));
    return bind_nothing(node, scope);
  }
  const ScanParts parts{.name = name,
                        .states = {inputs.begin(), inputs.end() - scans},
                        .scans = {inputs.end() - scans, inputs.end()},
                        .input_axes = integers_of(node, "scan_input_axes"),
                        .output_axes = integers_of(node, "scan_output_axes"),
                        .input_reversed = integers_of(node, batched ? "directions" : "scan_input_directions"),
                        .output_reversed = integers_of(node, "scan_output_directions")};
  const rt_onnx::GraphProto& body = find_attribute(node, "body")->g();
  const size_t first_new = builder().graph().values.size();
  auto outputs = batched ? emit_batched_scan(parts, lengths, body, scope) : emit_scan(parts, body, scope);
  finish_control(node, name, scope, std::move(outputs), first_new);
}

}  // namespace librt::onnx
