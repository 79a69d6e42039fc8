// Runs nodes and graphs with the pages' reference implementations, on host memory. Slow and exact.
//
// Knows: pages and bodies. Used for shape arithmetic while planning, for constant folding, for checking a
// device's kernels, and as the reference backend of the tests. Must not know: devices.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "runtime/core/stop_signal.h"
#include "runtime/ops/page.h"

namespace librt::ops {

/// A tensor that owns its bytes.
struct HostTensor {
  TensorInfo info;
  std::vector<std::byte> bytes;

  explicit HostTensor(const TensorInfo& tensor_info) : info(tensor_info), bytes(tensor_info.bytes()) {}
  HostTensor() = default;
  TensorView view() noexcept { return {bytes.data(), info}; }
  ConstTensorView view() const noexcept { return {bytes.data(), info}; }
};

/// Output types and shapes of a node at concrete shapes; a composite or unknown operator with a body is
/// inferred through the body where it has no page. Errors name the node.
Status infer_node(const NodeView& node, std::vector<TensorInfo>& outputs);

// Implementations come from `values`. librt has only those of shape arithmetic and passes host_value; a call
// in librt that omits it does not link.

/// Whether the node's operator, or all of its body, has an implementation with output extents known
/// beforehand.
bool can_evaluate(const Node& node, EvalLookup values = reference_value);

/// Evaluates one node; outputs must have the inferred infos. Composites run their body.
Status evaluate_node(const NodeView& node, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs, EvalLookup values = reference_value);
/// The same for any node, also one with data-dependent output extents (runs_on_host).
Status run_node(const NodeView& node, std::span<const ConstTensorView> inputs, ResultMaker& results,
                EvalLookup values = reference_value, StopSignal* stop = nullptr);
/// stop: counts the iterations of loops; null: each outermost loop may take kMostIterations, with those
/// inside it.
Result<std::vector<HostTensor>> evaluate_node(const NodeView& node, std::span<const ConstTensorView> inputs,
                                              EvalLookup values = reference_value,
                                              StopSignal* stop = nullptr);

/// The state a model starts with: initial values, or zeros.
std::vector<HostTensor> initial_states(const std::vector<State>& states);

/// Reference outputs of a graph. inputs in graph order. states (by index in the model) are read and, after
/// the run, updated; may be null for a graph without states. observe, if given, sees every node and its
/// outputs.
Result<std::vector<HostTensor>> evaluate_graph(
    const Graph& graph, std::span<const ConstTensorView> inputs, std::vector<HostTensor>* states = nullptr,
    const std::function<void(NodeId, std::span<const ConstTensorView>)>& observe = {},
    EvalLookup values = reference_value, StopSignal* stop = nullptr);

}  // namespace librt::ops
