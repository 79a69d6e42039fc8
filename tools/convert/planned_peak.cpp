#include "tools/convert/planned_peak.h"

#include <algorithm>

#include "runtime/session/memory/storage.h"
#include "runtime/session/prepare/legalize.h"
#include "runtime/session/prepare/shapes.h"
#include "runtime/session/run/plan.h"

namespace librt::convert {
namespace {

/// Symbols without an extent are 1; those with a definition follow from the others.
std::vector<TensorInfo> inputs_at(const Graph& graph, const std::map<std::string, int64_t>& extents) {
  std::vector<int64_t> known;
  for (const Symbol& symbol : graph.symbols) {
    const auto given = extents.find(symbol.name);
    known.push_back(given != extents.end() ? given->second : 1);
  }
  for (size_t i = 0; i < known.size(); ++i)
    if (const auto& definition = graph.symbols[i].definition; !definition.empty())
      known[i] = evaluate(definition, known).value_or(1);
  std::vector<TensorInfo> infos;
  for (const ValueId input : graph.inputs) {
    const Value& value = graph[input];
    TensorInfo& info = infos.emplace_back(TensorInfo{.dtype = value.dtype, .shape = {}});
    for (const Dim& dim : value.dims)
      info.shape.push_back(dim.is_known()    ? dim.extent
                           : dim.symbol >= 0 ? known[static_cast<size_t>(dim.symbol)]
                                             : 1);
  }
  return infos;
}

/// A memory limit that never refuses, but has plans be made as with one.
constexpr uint64_t kLargestLimit = ~uint64_t{0};

/// The size of an AlignedBytes allocation for this many bytes.
uint64_t reserved(size_t bytes) {
  return (bytes + kHostAlignment) / kHostAlignment * kHostAlignment;
}

/// Kernels for the operators of the application, which are planned but not run.
void stand_in(const Graph& graph, CustomOperators& all) {
  for (const Node& node : graph.nodes) {
    for (const Graph& body : node.bodies) stand_in(body, all);
    if (node.kind() != OpKind::Custom) continue;
    const auto& wanted = node.as<op::CustomAttributes>();
    rt_custom_operator functions = RT_CUSTOM_OPERATOR_INIT;
    functions.run = [](void*, const rt_custom_call*) { return 1; };
    all.push_back({wanted.domain, wanted.name, functions});
  }
}

}  // namespace

Result<PlannedMemory> planned_memory(const Graph& graph, const std::vector<State>& states,
                                     const std::map<std::string, int64_t>& extents,
                                     const std::string& backend) {
  const std::vector<uint8_t> by_value = shape_inputs(graph);
  for (size_t i = 0; i < by_value.size(); ++i)
    if (by_value[i])
      return unsupported("the value of input '", graph[graph.inputs[i]].name, "' determines shapes");
  DeviceOptions options;
  CustomOperators stand_ins;
  stand_in(graph, stand_ins);
  options.custom_operators = std::make_shared<const CustomOperators>(std::move(stand_ins));
  RT_ASSIGN(std::shared_ptr<DeviceSet> devices, DeviceSet::open(backend, options));
  const std::vector<TensorInfo> inputs = inputs_at(graph, extents);
  RT_TRY(check_inputs(graph, inputs));
  const std::vector<const std::byte*> values(inputs.size());
  FoldedConstants folded;
  ConvertedConstants converted;
  KernelTuner kernel_tuner{TuningOptions{}};
  RT_ASSIGN(std::unique_ptr<Program> program, legalize({.graph = graph,
                                                        .states = states,
                                                        .devices = *devices,
                                                        .inputs = inputs,
                                                        .values = values,
                                                        .folded = folded,
                                                        .converted = converted,
                                                        .kernel_tuner = kernel_tuner,
                                                        .limit = MemoryLimit(kLargestLimit)}));
  assign_storage(*devices, *program);
  PlannedMemory memory;
  for (const uint64_t bytes : program->arena_bytes) memory.working += bytes;
  for (const TensorInfo& input : inputs) memory.staging += reserved(std::max<size_t>(input.bytes(), 1));
  for (const Ref output : program->outputs) memory.staging += reserved(program->values[output].bytes);
  StateStore no_states;
  ConstantStore constants;
  PackedStore packed;
  std::vector<BlockPtr> arenas;
  PlanContext context{*devices, no_states, constants, packed, arenas};
  PlanConstants::Slabs slabs;
  Plan plan(std::move(program), slabs);
  plan.book(context);
  memory.constants = plan.new_bytes(context);
  plan.abandon(context);
  return memory;
}

Result<uint64_t> planned_peak(const Graph& graph, const std::vector<State>& states,
                              const std::map<std::string, int64_t>& extents, const std::string& backend) {
  RT_ASSIGN(const PlannedMemory memory, planned_memory(graph, states, extents, backend));
  return memory.working;
}

Result<uint64_t> state_bytes(const std::vector<State>& states, const std::string& backend) {
  RT_ASSIGN(const std::shared_ptr<DeviceSet> devices, DeviceSet::open(backend, {}));
  const size_t alignment = devices->alignment();
  uint64_t bytes = 0;
  for (const State& state : states) bytes += (state.info.bytes() + alignment - 1) / alignment * alignment;
  return bytes;
}

}  // namespace librt::convert
