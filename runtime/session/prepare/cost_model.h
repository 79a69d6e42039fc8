// The cost model: seconds of a model on a device from the cost of each node. `auto` chooses by it, and
// rtbench --what-if predicts with it.
//
// Knows: costs of the pages, families of nodes, device profiles. Must not know: plans, kernels, how profiles
// are measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/session/device/device_profile.h"

namespace librt {

struct Program;

/// What a node asks of any device.
struct NodeWork {
  Family family = Family::Elementwise;
  uint8_t element_bytes = 4;  ///< of what it computes in
  const Node* node = nullptr;
  double flops = 0, bytes = 0;
  double weight_bytes = 0;  ///< of constants and states among its inputs
  /// Of a convolution or pooling with few channels: the share of a block of channels that is used.
  double block_share = 1;
};

/// Device-independent work of a run.
struct Workload {
  std::vector<NodeWork> nodes;  ///< in order of execution; nodes of bodies are valid during the call only
  double input_bytes = 0, output_bytes = 0;
  double weight_bytes = 0;  ///< of all nodes
  uint64_t hash = 0;        ///< equal for equal work, whatever names and weights
};

/// At concrete inputs, one for each of the graph's. precision: "" for the graph's types, else that of
/// matmul-like nodes: fp32, tf32, fp16, bf16. An error where shapes depend on data.
Result<Workload> workload_of(const Graph& graph, const std::vector<State>& states,
                             std::span<const TensorInfo> inputs, const std::string& precision);

/// Seconds of a node: the longest of its family's curve at its work, blocks of channels filled up, of moving
/// its bytes, and of reading its weights at the bandwidth that all weights of the model have, which may not
/// fit into a cache. Bytes move as fast as the faster of the curves for element-wise nodes and for matrix
/// times vector shows: where kernels of the one are bound by instructions, the other shows the bandwidth.
double node_seconds(const NodeWork& node, const Workload& work, const DeviceProfile& profile);
/// Of each step in [first, last) of a program, also of its copies.
std::vector<float> step_seconds(const Program& program, uint32_t first, uint32_t last,
                                const DeviceProfile& profile);
/// Seconds of a run: all nodes, submitting it, and transfers of inputs and outputs unless the device uses the
/// host's memory.
double run_seconds(const Workload& work, bool host_memory, const DeviceProfile& profile);

}  // namespace librt
