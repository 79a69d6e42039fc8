#include "tools/onnx/export/model.h"

#include <climits>

#include "tools/compiler/pipeline.h"
#include "tools/onnx/export/graph_writer.h"
#include "tools/onnx/model_file.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

Blob initial_value(const State& state) {
  return state.initial.size > 0 ? state.initial : Blob::own(std::vector<std::byte>(state.info.bytes()));
}

/// States become constants, or inputs and outputs where the graph updates them. Returns the names of those.
std::vector<std::string> without_states(Graph& graph, const std::vector<State>& states) {
  std::vector<std::string> names;
  for (const StateUpdate& update : graph.state_updates) {
    Value& value = graph[update.state];
    const std::string& name = states[value.state].name;
    value.role = Role::Input;
    value.name = name;
    graph.inputs.push_back(update.state);
    // Another value may have been given this name, or be an output already.
    Node same;
    same.op = make_op(op::IdentityAttributes{});
    same.name = text(name, ".next");
    Value next = graph[update.value];
    next.name = same.name;
    next.role = Role::Intermediate;
    next.data = {};
    next.state = kNoState;
    same.inputs = {update.value};
    same.outputs = {graph.add_value(std::move(next))};
    graph.outputs.push_back(same.outputs[0]);
    graph.nodes.push_back(std::move(same));
    names.push_back(name);
  }
  graph.state_updates.clear();
  for (Value& value : graph.values) {
    if (value.role != Role::State) continue;
    value.role = Role::Constant;
    value.data = initial_value(states[value.state]);
  }
  return names;
}

/// A model without the elements of its weights, which are those of `graph`.
struct Outline {
  Graph graph;
  rt_onnx::ModelProto proto;
  std::vector<PendingElements> pending;
};

Status fill(const ModelGraph& model, Outline& outline, WrittenModel& written) {
  const Graph* infer = model.entry("infer");
  if (infer == nullptr)
    return unsupported("ONNX: expected a model with an entry 'infer', found ", model.entries.size(),
                       " other entries; convert the source of the model without --train");
  outline.graph = *infer;
  RT_TRY(compiler::expand_composites(outline.graph, model.states));
  written.states = without_states(outline.graph, model.states);
  RT_TRY(write_graph(outline.graph, outline.proto, outline.pending));
  written.nodes = static_cast<size_t>(outline.proto.graph().node_size());
  written.opset = outline.proto.opset_import(0).version();
  return {};
}

}  // namespace

Result<std::string> onnx_bytes(const ModelGraph& model, WrittenModel& written) {
  Outline outline;
  RT_TRY(fill(model, outline, written));
  RT_TRY(fill_elements(outline.pending));
  if (outline.proto.ByteSizeLong() > INT_MAX)
    return unsupported("ONNX: the model has ", bytes_text(outline.proto.ByteSizeLong()),
                       ", Protocol Buffers hold 2 GiB; write it into a file");
  return outline.proto.SerializeAsString();
}

Result<WrittenModel> write_onnx(const ModelGraph& model, const std::string& target, bool external) {
  WrittenModel written;
  Outline outline;
  RT_TRY(fill(model, outline, written).in(target));
  RT_ASSIGN(written.weights,
            write_model_file(outline.proto, std::move(outline.pending), target, {.external = external}));
  return written;
}

}  // namespace librt::onnx
