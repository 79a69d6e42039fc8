// Runs a graph that is cut (partition.h): segments with their plans, host nodes between them, bodies of
// control flow.
//
// Knows: the order of the steps, and the values that cross from one to another: in host memory, kept from run
// to run, so that a run allocates only where a size grows. Must not know: what an operator means.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/session/prepare/partition.h"
#include "runtime/session/run/runner.h"

namespace librt {

/// The node that computes a value, for messages.
std::string source_text(const Graph& graph, ValueId id);

class Executor {
 public:
  static Result<std::unique_ptr<Executor>> create(Workspace& workspace, const Graph& graph,
                                                  GraphKind graph_kind);
  Executor(Workspace& workspace, const Graph& graph);

  /// inputs: in the graph's order, any host memory.
  Status run(std::span<const ConstTensorView> inputs);
  /// Of the last run; valid also during the next.
  std::span<const ConstTensorView> outputs() const noexcept { return outputs_; }

  /// A step of a run: of a segment's plan, or on the host.
  struct Timing {
    const Plan* plan = nullptr;  ///< with `step` or `transfer`; null: `node` on the host
    size_t step = 0;
    const char* transfer = nullptr;  ///< "inputs" or "outputs" of the plan, between host and device
    const Node* node = nullptr;
    uint64_t nanoseconds = 0, runs = 0;
    uint64_t live_bytes = 0;  ///< planned memory of values, without scratch
  };
  /// Appends the timings of a plan's steps; nothing without profile.
  static void collect(const Plan& plan, std::vector<Timing>& timings);
  /// Appends the timings of the last runs, those of bodies within their node.
  void collect(std::vector<Timing>& timings) const;
  void reset_profile() noexcept;
  size_t host_bytes() const noexcept;
  /// Appends the steps as text.
  void print(std::string& out, const std::string& indent) const;

 private:
  struct Slot {
    ConstTensorView view;
    std::array<AlignedBytes, 2> own;  ///< double-buffered for graph outputs
  };
  struct Step {
    PartitionStep part;
    std::unique_ptr<GraphRunner> runner;            ///< of a segment
    std::vector<std::unique_ptr<Executor>> bodies;  ///< of a host node
    std::vector<ConstTensorView> operands;
    std::vector<HostRange> inputs, outputs;
    std::vector<Slot> unread;  ///< unused results
    uint64_t nanoseconds = 0, runs = 0;
  };
  class Results;

  Status add(PartitionStep part);
  Status run_segment(Step& step);
  Status run_node(Step& step);
  AlignedBytes& buffer(ValueId id) noexcept { return slots_[id].own[is_output_[id] ? output_buffer_ : 0]; }

  Workspace& shared_;
  const Graph& graph_;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;  ///< by value
  std::vector<uint8_t> is_output_;
  std::vector<std::array<AlignedBytes, 2>> copies_;  ///< of outputs that are inputs
  std::vector<ConstTensorView> outputs_;
  size_t output_buffer_ = 0;
};

}  // namespace librt
