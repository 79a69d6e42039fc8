#include "runtime/session/prepare/legalize.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/convert_floats.h"
#include "runtime/graph/in_build.h"
#include "runtime/graph/symbol_extents.h"
#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "runtime/session/prepare/float_types.h"
#include "runtime/session/prepare/insert_copies.h"
#include "runtime/session/prepare/shapes.h"
#include "runtime/session/prepare/slice_batch.h"

namespace librt {
namespace {

/// Shape arithmetic is small; results that depend on constants alone may be as large as the constants.
constexpr size_t kFoldBytes = 64 << 10;
constexpr size_t kFoldConstantBytes = 1 << 20;
constexpr double kFoldFlops = 1e8;
/// A tensor that determines shapes is small; a larger one means that data is used as a shape.
constexpr int64_t kShapeInputElements = 4096;

const std::byte kNothing[kHostAlignment] = {};

using ValueMap = std::vector<Ref>;

class Legalizer {
 public:
  explicit Legalizer(const LegalizeRequest& request)
      : request_(request),
        devices_(request.devices),
        program_(std::make_unique<Program>()),
        p_(*program_),
        floats_(request, p_) {}

  Result<std::unique_ptr<Program>> run();

 private:
  Status add_inputs(ValueMap& map);
  Status walk(const Graph& graph, ValueMap& map, const std::string& prefix);
  Status node(const Graph& graph, NodeId id, ValueMap& map, const std::string& prefix,
              SymbolExtents& extents);
  Status check_extents(const Graph& graph, const Node& node, std::span<const TensorInfo> infos,
                       const std::string& name, SymbolExtents& extents) const;
  Status inline_body(const Node& outer, ValueMap& map, const std::string& name);
  bool can_fold(const NodeView& view, const std::vector<Ref>& inputs, bool stable) const;
  bool grows_with_shapes(const Graph& graph, const Node& node) const;
  Status fold(const Graph& graph, const NodeView& view, const std::vector<Ref>& inputs, bool stable,
              ValueMap& map);
  Status assign_device(Step& step, const NodeView& view, std::vector<TensorInfo>& infos, bool& inlined);
  Result<bool> compute_in(DType type, Step& step, const NodeView& view, std::vector<TensorInfo>& infos);
  std::optional<DType> other_type(const Step& step, const NodeView& view) const;
  Status add_outputs(const Graph& graph, const Node& node, Step step, std::span<const TensorInfo> infos,
                     std::span<const TensorInfo> computed, ValueMap& map);
  void drop_dead_steps();
  Status check_fallbacks();
  Status check_precision();

  Ref add(PlanValue value) {
    value.bytes = value.info.bytes();
    p_.values.push_back(std::move(value));
    return static_cast<Ref>(p_.values.size() - 1);
  }
  Ref constant(std::string name, const TensorInfo& info, const std::byte* bytes, bool stable) {
    const bool empty = info.bytes() == 0;
    return add({.name = std::move(name),
                .info = info,
                .source = ValueSource::Constant,
                .host = empty ? kNothing : bytes,
                .stable = stable});
  }
  std::vector<Operand> operands(const std::vector<Ref>& inputs) const;

  const LegalizeRequest& request_;
  DeviceSet& devices_;
  std::unique_ptr<Program> program_;
  Program& p_;
  FloatTypes floats_;
  std::vector<uint8_t> deciding_;  ///< of the graph being walked, see shape_deciding(); empty without a limit
  size_t matmuls_ = 0, honoured_ = 0;  ///< if a precision is requested
  std::string refusal_;                ///< why one of the matmuls is not computed in it
  ValueMap graph_map_;
};

std::vector<Operand> Legalizer::operands(const std::vector<Ref>& inputs) const {
  std::vector<Operand> all;
  for (const Ref input : inputs) {
    if (input == kNone) {
      all.push_back({});
      continue;
    }
    const PlanValue& value = p_.values[input];
    const bool known = value.source == ValueSource::Constant;
    all.push_back({.present = true, .info = value.info, .value = known ? value.host : nullptr});
  }
  return all;
}

Status Legalizer::add_inputs(ValueMap& map) {
  const Graph& graph = request_.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& declared = graph[graph.inputs[i]];
    const TensorInfo& info = request_.inputs[i];
    Ref ref = kNone;
    if (info.bytes() == 0) {
      ref = constant(declared.name, info, kNothing, false);  // its shape is that of the run
    } else if (request_.values[i] != nullptr) {
      if (info.elements() > kShapeInputElements)
        return unsupported("input '", declared.name, "' determines shapes but has ", info.elements(),
                           " elements; at most ", kShapeInputElements, " are supported");
      AlignedBytes copy;
      RT_TRY(copy.reserve(info.bytes()));
      std::memcpy(copy.data(), request_.values[i], info.bytes());
      ref = constant(declared.name, info, copy.data(), false);
      p_.computed.push_back(std::move(copy));
    } else {
      ref = add({.name = declared.name,
                 .info = info,
                 .source = ValueSource::Input,
                 .index = static_cast<uint32_t>(i)});
    }
    map[graph.inputs[i]] = ref;
  }
  return {};
}

Status Legalizer::walk(const Graph& graph, ValueMap& map, const std::string& prefix) {
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (value.role == Role::Constant) {
      map[id] = constant(value.name, value.info(), value.data.data, true);
      p_.values[map[id]].origin = value.data.data;
    } else if (value.role == Role::State) {
      const TensorInfo& info = request_.states[value.state].info;
      map[id] = info.bytes() == 0 ? constant(value.name, info, kNothing, true)
                                  : add({.name = request_.states[value.state].name,
                                         .info = info,
                                         .source = ValueSource::State,
                                         .index = value.state});
    }
  }
  std::vector<uint8_t> deciding;
  if (request_.limit.bytes() > 0) deciding = shape_deciding(graph);
  deciding_.swap(deciding);
  SymbolExtents extents(graph);
  for (const ValueId input : graph.inputs)
    if (map[input] != kNone) extents.bind(graph[input], p_.values[map[input]].info.shape);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (request_.stop != nullptr && prefix.empty())
      RT_TRY(request_.stop->report(RT_STAGE_KERNELS, id, graph.nodes.size()));
    RT_TRY(node(graph, id, map, prefix, extents));
  }
  deciding_.swap(deciding);
  return {};
}

/// The compiler relied on the extents that it wrote, so a contradiction would give a wrong result.
Status Legalizer::check_extents(const Graph& graph, const Node& node, std::span<const TensorInfo> infos,
                                const std::string& name, SymbolExtents& extents) const {
  for (size_t i = 0; i < node.outputs.size() && i < infos.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const Value& value = graph[node.outputs[i]];
    const std::string why = extents.contradiction(value, infos[i].shape);
    if (!why.empty())
      return invalid_model(
          "node '", name, "' (", name_of(node.kind()), "): the file declares its result as ",
          declared_text(graph, value), ", but for these inputs it is ", infos[i], " (", why,
          "); convert the model again, with static dimensions (--dim) if that does not help");
  }
  return {};
}

bool Legalizer::can_fold(const NodeView& view, const std::vector<Ref>& inputs, bool stable) const {
  const ops::Page* page = ops::page_of(view.kind());
  if (page == nullptr || page->impure || !ops::can_evaluate(view.node, ops::host_value)) return false;
  size_t out = 0, in = 0;
  for (const TensorInfo& info : view.outputs) out += info.bytes();
  if (view.kind() == OpKind::Shape) return true;
  for (const Ref input : inputs) {
    if (input == kNone) continue;
    if (p_.values[input].source != ValueSource::Constant) return false;
    in += p_.values[input].info.bytes();
  }
  if (ops::cost_of(view).flops > kFoldFlops) return false;
  return out <= kFoldBytes || (stable && out <= std::max(4 * in, kFoldConstantBytes));
}

/// With a memory limit such results are left to the device, unless they determine shapes: folded at small
/// shapes alone, they would give a smaller batch more constants than a larger one, beside the arena of the
/// larger one.
bool Legalizer::grows_with_shapes(const Graph& graph, const Node& node) const {
  for (const ValueId output : node.outputs) {
    if (output == kNoValue || deciding_.empty() || deciding_[output]) continue;
    const Value& value = graph[output];
    if ((is_float(value.dtype) || value.rank() > 1) && !value.is_static()) return true;
  }
  return false;
}

Status Legalizer::fold(const Graph& graph, const NodeView& view, const std::vector<Ref>& inputs, bool stable,
                       ValueMap& map) {
  ++p_.folded_nodes;
  const auto& outputs = view.node.outputs;
  bool known = stable;
  for (const ValueId output : outputs)
    if (output != kNoValue) known = known && request_.folded.contains({&graph, output});
  if (!known) {
    std::vector<AlignedBytes> bytes(view.outputs.size());
    std::vector<ConstTensorView> in;
    std::vector<TensorView> out;
    for (const Ref input : inputs)
      in.push_back(input == kNone ? ConstTensorView{}
                                  : ConstTensorView{p_.values[input].host, p_.values[input].info});
    for (size_t i = 0; i < bytes.size(); ++i) {
      RT_TRY(bytes[i].reserve(view.outputs[i].bytes()));
      out.push_back({bytes[i].data(), view.outputs[i]});
    }
    RT_TRY(ops::evaluate_node(view, in, out, ops::host_value));
    for (size_t i = 0; i < bytes.size() && i < outputs.size(); ++i) {
      if (outputs[i] == kNoValue) continue;
      if (stable) {
        request_.folded.insert_or_assign({&graph, outputs[i]}, std::move(bytes[i]));
      } else {
        map[outputs[i]] = constant(graph[outputs[i]].name, view.outputs[i], bytes[i].data(), false);
        p_.computed.push_back(std::move(bytes[i]));
      }
    }
  }
  if (stable)
    for (size_t i = 0; i < view.outputs.size() && i < outputs.size(); ++i)
      if (outputs[i] != kNoValue)
        map[outputs[i]] = constant(graph[outputs[i]].name, view.outputs[i],
                                   request_.folded.find({&graph, outputs[i]})->second.data(), true);
  return {};
}

Status Legalizer::inline_body(const Node& outer, ValueMap& map, const std::string& name) {
  const Graph& body = outer.bodies.front();
  ValueMap inner(body.values.size(), kNone);
  size_t next = 0;
  for (const ValueId input : outer.inputs) {
    if (input == kNoValue) continue;
    if (next >= body.inputs.size())
      return invalid_model(name, ": its body has ", body.inputs.size(), " inputs");
    inner[body.inputs[next++]] = map[input];
  }
  if (next != body.inputs.size() || outer.outputs.size() > body.outputs.size())
    return invalid_model(name, ": its body takes ", body.inputs.size(), " inputs and gives ",
                         body.outputs.size(), " outputs, the node has ", next, " and ", outer.outputs.size());
  RT_TRY(walk(body, inner, name + "/"));
  for (size_t i = 0; i < outer.outputs.size(); ++i)
    if (outer.outputs[i] != kNoValue) map[outer.outputs[i]] = inner[body.outputs[i]];
  return {};
}

/// Kernels of a build for some models are there for the types of those models only.
Status check_types(std::span<const Operand> operands, std::span<const TensorInfo> results) {
  const auto check = [](DType dtype) { return in_build(dtype) ? Status() : not_in_build(name_of(dtype)); };
  for (const Operand& operand : operands)
    if (operand.present) RT_TRY(check(operand.info.dtype));
  for (const TensorInfo& result : results) RT_TRY(check(result.dtype));
  return {};
}

/// The float type of the node's data; nullopt if none of it is float, or an attribute gives the type.
std::optional<DType> float_type_of(const NodeView& view) {
  if (view.kind() == OpKind::Cast || view.kind() == OpKind::DequantizeLinear || view.kind() == OpKind::Custom)
    return std::nullopt;
  for (const Operand& operand : view.inputs)
    if (operand.present && is_exchangeable(operand.info.dtype)) return operand.info.dtype;
  return std::nullopt;
}

/// Whether the chosen device has kernels for the node with its floats in `type`; if so, sets the step's
/// kernels and inputs in that type, and infos of the results.
Result<bool> Legalizer::compute_in(DType type, Step& step, const NodeView& view,
                                   std::vector<TensorInfo>& infos) {
  if (!in_build(type)) return false;
  const ops::Page& page = *ops::page_of(view.kind());
  const auto changes = [&](size_t i) {
    return view.has(i) && is_exchangeable(view.dtype(i)) &&
           (i >= 32 || ((page.shape_operands >> i) & 1u) == 0);
  };
  std::vector<Operand> operands(view.inputs.begin(), view.inputs.end());
  for (size_t i = 0; i < operands.size(); ++i)
    if (changes(i)) operands[i].info.dtype = type;
  std::vector<TensorInfo> outputs;
  if (!ops::infer_node({.node = view.node, .inputs = operands}, outputs).ok()) return false;
  const NodeView typed{.node = view.node, .inputs = operands, .outputs = outputs};
  Device& device = devices_.device(DeviceSet::kChosen);
  auto candidates = device.kernels().candidates(device, typed);
  if (!candidates.ok()) {
    if (page.arithmetic == ops::Arithmetic::Matmul) refusal_ = candidates.status().message();
    return false;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!changes(i)) continue;
    RT_ASSIGN(step.inputs[i], floats_.as(step.inputs[i], type));
  }
  step.device = DeviceSet::kChosen;
  step.candidates = std::move(candidates).value();
  step.cost = ops::cost_of(typed);
  infos = std::move(outputs);
  return true;
}

/// The type, other than the graph's, that the node should be computed in if the device supports it. With a
/// requested precision: that type, for matmul-like operators and consumers of values that exist in it. Else
/// f32 for a 16-bit node whose operands were computed in f32 for lack of kernels.
std::optional<DType> Legalizer::other_type(const Step& step, const NodeView& view) const {
  const std::optional<DType> type = float_type_of(view);
  if (!type) return std::nullopt;
  const ops::Arithmetic arithmetic = ops::arithmetic_of(view.node);
  const DType wanted = request_.precision.value_or(DType::F32);
  const auto computed = [&](Ref input) {
    if (input == kNone || p_.values[input].source == ValueSource::Constant) return false;
    return request_.precision ? floats_.has(input, wanted) : floats_.is_computed_in(input, wanted);
  };
  const bool follows = arithmetic == ops::Arithmetic::Plain && std::ranges::any_of(step.inputs, computed);
  const bool asked = request_.precision && (wanted == DType::F32 || arithmetic == ops::Arithmetic::Matmul);
  if (*type == wanted || (!asked && !follows)) return std::nullopt;
  return wanted;
}

/// Assigns the device that runs the node: the chosen one, in the node's type or in f32; else its body is
/// inlined; else the next device in the set. infos: in, of the results; out, as they are computed.
Status Legalizer::assign_device(Step& step, const NodeView& view, std::vector<TensorInfo>& infos,
                                bool& inlined) {
  step.cost = ops::cost_of(view);
  if (request_.costs_only) return {};
  const std::optional<DType> own = float_type_of(view);
  const bool matmul =
      request_.precision && own && ops::page_of(view.kind())->arithmetic == ops::Arithmetic::Matmul;
  matmuls_ += matmul;
  if (const std::optional<DType> type = other_type(step, view)) {
    RT_ASSIGN(const bool done, compute_in(*type, step, view, infos));
    honoured_ += done && matmul;
    if (done) return {};
  }
  std::string reasons;
  for (size_t i = 0; i < devices_.size(); ++i) {
    auto candidates = devices_.device(i).kernels().candidates(devices_.device(i), view);
    if (candidates.ok()) {
      step.device = static_cast<uint32_t>(i);
      step.candidates = std::move(candidates).value();
      honoured_ += i == DeviceSet::kChosen && matmul && own == request_.precision;
      if (i != DeviceSet::kChosen) {
        step.fallback = reasons;
      }
      return {};
    }
    if (matmul) refusal_ = candidates.status().message();
    // QuantizeLinear rounds its quotient to the type.
    if (i == DeviceSet::kChosen && own.value_or(DType::F32) != DType::F32 &&
        view.kind() != OpKind::QuantizeLinear) {
      RT_ASSIGN(const bool wide, compute_in(DType::F32, step, view, infos));
      if (wide) return {};
    }
    if (i == DeviceSet::kChosen && !view.node.bodies.empty()) {
      inlined = true;
      return {};
    }
    append(reasons, reasons.empty() ? "" : "; ", devices_.entry(i).backend, ": ",
           candidates.status().message());
    if (i == DeviceSet::kChosen) devices_.open_fallbacks();
  }
  step.fallback = reasons;
  return {};
}

/// Nodes that no device supports are an error, and in a strict session also those that another device runs:
/// all of them in one message.
Status Legalizer::check_fallbacks() {
  std::string missing, elsewhere;
  for (const Step& step : p_.steps) {
    if (step.fallback.empty()) continue;
    ++p_.fallbacks;
    const std::string line =
        text("node '", step.name, "' (", name_of(step.node->kind()), "): ", step.fallback);
    append(step.candidates.empty() ? missing : elsewhere, "\n  ", line);
    if (!step.candidates.empty() && !request_.strict && request_.log.listens(RT_LOG_WARNING))
      request_.log.say(RT_LOG_WARNING,
                       text(line, "; runs on ", devices_.entry(step.device).backend, " instead"));
  }
  const std::string notes = devices_.notes().empty() ? "" : text("\n  (", devices_.notes(), ")");
  if (!missing.empty()) return Status(Code::Unsupported, text("no device can run", missing, notes));
  if (request_.strict && p_.fallbacks > 0)
    return Status(Code::Unsupported, text("strict: ", devices_.entry(0).backend, " cannot run ", p_.fallbacks,
                                          " nodes; allow fallbacks or use another backend", elsewhere));
  return {};
}

/// A requested precision that applies to none of the graph's matmuls is an error.
Status Legalizer::check_precision() {
  if (matmuls_ == 0 || honoured_ > 0) return {};
  return unsupported("precision ", name_of(*request_.precision), ": ", devices_.entry(0).backend,
                     " supports it for none of the ", matmuls_, " matmuls and convolutions of '",
                     request_.graph.name, "' (", refusal_,
                     "); use fp32, the other 16-bit type, or another backend");
}

/// The results in the types that the step computes, and, where they differ, in the graph's types.
Status Legalizer::add_outputs(const Graph& graph, const Node& node, Step step,
                              std::span<const TensorInfo> infos, std::span<const TensorInfo> computed,
                              ValueMap& map) {
  const auto index = static_cast<uint32_t>(p_.steps.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    const bool used = i < node.outputs.size() && node.outputs[i] != kNoValue;
    step.outputs.push_back(
        infos[i].bytes() == 0
            ? constant(used ? graph[node.outputs[i]].name : "", computed[i], kNothing, false)
            : add({.name = used ? graph[node.outputs[i]].name : text(step.name, ".", i),
                   .info = computed[i],
                   .source = ValueSource::Step,
                   .index = index}));
  }
  const std::vector<Ref> outputs = step.outputs;
  p_.steps.push_back(std::move(step));
  for (size_t i = 0; i < infos.size() && i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    RT_ASSIGN(map[node.outputs[i]], floats_.from_computed(outputs[i], infos[i].dtype));
  }
  return {};
}

Status Legalizer::node(const Graph& graph, NodeId id, ValueMap& map, const std::string& prefix,
                       SymbolExtents& extents) {
  if (request_.stop != nullptr) RT_TRY(request_.stop->check());
  const Node& node = graph.nodes[id];
  Step step{.node = &node, .name = prefix + (node.name.empty() ? text("#", id) : node.name)};
  bool stable = true;
  for (const ValueId input : node.inputs) {
    const Ref ref = input == kNoValue ? kNone : map[input];
    if (input != kNoValue && ref == kNone)
      return invalid_model("node '", step.name, "' reads value '", graph[input].name,
                           "' before it is computed");
    if (ref != kNone)
      stable = stable && p_.values[ref].source == ValueSource::Constant && p_.values[ref].stable;
    step.inputs.push_back(ref);
  }
  const ops::Page* page = ops::page_of(node.kind());
  if (page == nullptr) {
    if (!node.bodies.empty()) return inline_body(node, map, step.name);
    if (build::kTrimmed && node.kind() != OpKind::NONE)
      return not_in_build(name_of(node.kind())).in("node '", step.name, "'");
    return unsupported("node '", step.name, "': this librt does not know its operator; use a newer version");
  }
  if (ops::runs_on_host(node.kind()))
    return unsupported(describe(node),
                       ": its results' extents depend on data, so a body that is inlined cannot hold it");
  const std::vector<Operand> in = operands(step.inputs);
  std::vector<TensorInfo> infos;
  RT_TRY(ops::infer_node({.node = node, .inputs = in}, infos));
  if (infos.size() < node.outputs.size())
    return internal_error(describe(node), ": ", infos.size(), " outputs inferred of ", node.outputs.size());
  RT_TRY(check_extents(graph, node, infos, step.name, extents));
  if (build::kTrimmed) RT_TRY(check_types(in, infos).in("node '", step.name, "'"));
  const NodeView view{.node = node, .inputs = in, .outputs = infos};

  size_t elements = 0;
  for (const TensorInfo& info : infos) elements += info.bytes();
  if (elements == 0) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue)
        map[node.outputs[i]] = constant(graph[node.outputs[i]].name, infos[i], kNothing, stable);
    return {};
  }
  if ((stable || !grows_with_shapes(graph, node)) && can_fold(view, step.inputs, stable))
    return fold(graph, view, step.inputs, stable, map);
  if (node.kind() == OpKind::Identity) {
    map[node.outputs[0]] = step.inputs[0];
    return {};
  }
  if (node.kind() == OpKind::Reshape) {
    const PlanValue& from = p_.values[step.inputs[0]];
    const std::string& name = graph[node.outputs[0]].name;
    if (from.source == ValueSource::Constant) {
      const std::byte* const origin = from.origin;
      map[node.outputs[0]] = constant(name, infos[0], from.host, from.stable);
      p_.values[map[node.outputs[0]]].origin = origin;
    } else {
      map[node.outputs[0]] = add({.name = name,
                                  .info = infos[0],
                                  .source = ValueSource::Alias,
                                  .index = root_of(p_, step.inputs[0])});
    }
    floats_.add_alias(step.inputs[0], map[node.outputs[0]]);
    return {};
  }
  bool inlined = false;
  std::vector<TensorInfo> computed = infos;
  RT_TRY(assign_device(step, view, computed, inlined));
  if (inlined) return inline_body(node, map, step.name);
  return add_outputs(graph, node, std::move(step), infos, computed, map);
}

/// Removes unused nodes, such as folded shape arithmetic.
void Legalizer::drop_dead_steps() {
  std::vector<uint8_t> live(p_.values.size());
  const auto mark = [&](Ref value) {
    if (value != kNone) live[root_of(p_, value)] = true;
  };
  for (const Ref output : p_.outputs) mark(output);
  for (const auto& update : p_.updates) mark(update.value);
  std::vector<Step> kept;
  for (size_t i = p_.steps.size(); i-- > 0;) {
    Step& step = p_.steps[i];
    const bool used = std::ranges::any_of(step.outputs, [&](Ref output) { return live[output]; });
    if (!used) {
      ++p_.dead_nodes;
      continue;
    }
    const ops::Page* page = ops::page_of(step.node->kind());
    for (size_t k = 0; k < step.inputs.size(); ++k)
      if (page == nullptr || k >= 32 || ((page->shape_operands >> k) & 1u) == 0) mark(step.inputs[k]);
    kept.push_back(std::move(step));
  }
  std::reverse(kept.begin(), kept.end());
  p_.steps = std::move(kept);
}

Result<std::unique_ptr<Program>> Legalizer::run() {
  const Graph& graph = request_.graph;
  graph_map_.assign(graph.values.size(), kNone);
  RT_TRY(add_inputs(graph_map_));
  RT_TRY(walk(graph, graph_map_, ""));
  for (const ValueId output : graph.outputs) p_.outputs.push_back(graph_map_[output]);
  for (const StateUpdate& update : graph.state_updates) {
    const Ref value = graph_map_[update.value];
    const State& state = request_.states[graph[update.state].state];
    if (!(p_.values[value].info == state.info))
      return invalid_model("the update of state '", state.name, "' has ", p_.values[value].info,
                           ", the state ", state.info);
    if (state.info.bytes() > 0) p_.updates.push_back({.state = graph[update.state].state, .value = value});
  }
  drop_dead_steps();
  if (request_.costs_only) return std::move(program_);
  RT_TRY(check_precision());
  RT_TRY(check_fallbacks());
  RT_TRY(slice_batch(request_, p_));
  RT_TRY(insert_copies(request_, p_));
  return std::move(program_);
}

}  // namespace

Result<std::unique_ptr<Program>> legalize(const LegalizeRequest& request) {
  return Legalizer(request).run();
}

}  // namespace librt
