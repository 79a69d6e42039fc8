#include "tools/rtconvert/planned_peak.h"

#include <numeric>

#include "runtime/session/legalize.h"
#include "runtime/session/shapes.h"
#include "runtime/session/storage.h"

namespace rt::convert {
namespace {

std::vector<TensorInfo> inputs_at(const Graph& graph, const std::map<std::string, int64_t>& extents) {
  std::vector<TensorInfo> infos;
  for (const ValueId input : graph.inputs) {
    const Value& value = graph[input];
    TensorInfo& info = infos.emplace_back(TensorInfo{.dtype = value.dtype, .shape = {}});
    for (const Dim& dim : value.dims) {
      const auto given =
          dim.symbol < 0 ? extents.end() : extents.find(graph.symbols[static_cast<size_t>(dim.symbol)].name);
      info.shape.push_back(dim.is_known() ? dim.extent : given != extents.end() ? given->second : 1);
    }
  }
  return infos;
}

}  // namespace

Result<uint64_t> planned_peak(const Graph& graph, const std::vector<State>& states,
                              const std::map<std::string, int64_t>& extents, const std::string& backend) {
  const std::vector<bool> by_value = shape_inputs(graph);
  for (size_t i = 0; i < by_value.size(); ++i)
    if (by_value[i])
      return unsupported("the value of input '", graph[graph.inputs[i]].name, "' decides over shapes");
  RT_ASSIGN(std::shared_ptr<DeviceSet> devices, DeviceSet::open(backend, {}));
  const std::vector<TensorInfo> inputs = inputs_at(graph, extents);
  RT_TRY(check_inputs(graph, inputs));
  const std::vector<const std::byte*> values(inputs.size());
  FoldedConstants folded;
  Chooser chooser{TuningOptions{}};
  RT_ASSIGN(const std::unique_ptr<Program> program, legalize({.graph = graph,
                                                              .states = states,
                                                              .devices = *devices,
                                                              .inputs = inputs,
                                                              .values = values,
                                                              .folded = folded,
                                                              .chooser = chooser}));
  assign_storage(*devices, *program);
  return std::accumulate(program->arena_bytes.begin(), program->arena_bytes.end(), uint64_t{0});
}

}  // namespace rt::convert
