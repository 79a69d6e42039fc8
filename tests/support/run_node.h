// Runs one node on any Device through the kernel contract, and compares it with the page's reference results.
//
// Knows: the order of a session's calls (create, requirements, pack, begin, record, submit). Must not know:
// any backend, any operator.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/backend/kernel_table.h"
#include "runtime/ops/evaluate.h"

namespace librt::test {

struct RunNodeOptions {
  /// Bit i: input i is a constant, whose bytes the kernel may read during creation and packing. Shape
  /// operands are always known.
  uint32_t constants = 0;
  /// Kernel row; empty: the best supporting one.
  std::string row;
  /// Number of submissions of the recorded work.
  int runs = 2;
  /// Lets the output share memory with the input if the kernel supports it.
  bool in_place = false;
  /// Types and shapes of the results instead of those of the page's shape rule, for nodes that it refuses.
  std::vector<TensorInfo> results;
  /// Assumed layouts of the inputs' producers. If the kernel then requires a layout, reorders are inserted
  /// around it, as in a session.
  std::vector<LayoutId> producers;
};

/// An absent input is nullopt.
using NodeInputs = std::vector<std::optional<ops::HostTensor>>;

struct NodeRun {
  std::string row;
  std::vector<ops::HostTensor> outputs;
};

/// Values of the node's outputs after the last run.
Result<NodeRun> run_node(Device& device, const Node& node, const NodeInputs& inputs,
                         const RunNodeOptions& options = {});

/// The page's reference results.
Result<std::vector<ops::HostTensor>> reference_node(const Node& node, const NodeInputs& inputs);

/// Names of the rows that support this node on the device, best first. Bit i of `constants`: input i is
/// known.
Result<std::vector<std::string>> rows_for(const Device& device, const Node& node, const NodeInputs& inputs,
                                          uint32_t constants = 0);

/// |got - want| <= absolute + relative |want| for floats (NaN equals NaN), equality otherwise.
::testing::AssertionResult near(const ops::HostTensor& got, const ops::HostTensor& want,
                                const ops::Tolerance& tolerance);

/// Checks every supporting row, with variable and constant operands, and in place if supported, against the
/// page. tolerance: the page's own when absent.
void check_node(Device& device, const Node& node, const NodeInputs& inputs, uint32_t constants = 0,
                std::optional<ops::Tolerance> tolerance = {});

// --- nodes and inputs
template <class Attributes>
Node make_node(Attributes attributes, size_t inputs, size_t outputs = 1) {
  Node node;
  node.op = make_op(std::move(attributes));
  node.name = "node";
  for (size_t i = 0; i < inputs; ++i) node.inputs.push_back(static_cast<ValueId>(i));
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(static_cast<ValueId>(inputs + i));
  return node;
}

/// Uniform in [low, high]; deterministic for a seed on every machine. Integers are rounded, bool is 0 or 1.
ops::HostTensor random_tensor(const TensorInfo& info, double low, double high, uint64_t seed);
ops::HostTensor ints_tensor(std::vector<int64_t> values);
ops::HostTensor scalar_tensor(DType dtype, double value);
ops::HostTensor tensor_of(const TensorInfo& info, const std::vector<double>& values);

}  // namespace librt::test
