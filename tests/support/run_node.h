// Runs one node on any Device through the kernel contract, and compares it with the pages' reference value.
//
// Knows: the order of calls a session keeps (create, requirements, pack, begin, record, submit). Must not
// know: any backend, any operator.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/backend/kernel_table.h"
#include "runtime/ops/evaluate.h"

namespace rt::test {

struct RunNodeOptions {
  /// Bit i: input i is a constant, whose bytes the kernel may read while it is created and packed. Shape
  /// operands are always known.
  uint32_t constants = 0;
  /// Which row; empty: the best supporting one.
  std::string row;
  /// How often the recorded work is submitted.
  int runs = 2;
  /// Lets the output share memory with the input where the kernel offers it.
  bool in_place = false;
  /// Layouts the producers of the inputs are said to have. Where the kernel then asks for a layout, reorders
  /// are put around it, as the session does.
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

/// The page's value.
Result<std::vector<ops::HostTensor>> reference_node(const Node& node, const NodeInputs& inputs);

/// Names of the rows that support this node on the device, best first. Bit i of `constants`: input i is
/// known.
Result<std::vector<std::string>> rows_for(const Device& device, const Node& node, const NodeInputs& inputs,
                                          uint32_t constants = 0);

/// |got - want| <= absolute + relative |want| for floats (NaN equals NaN), equality otherwise.
::testing::AssertionResult near(const ops::HostTensor& got, const ops::HostTensor& want,
                                const ops::Tolerance& tolerance);

/// Every supporting row, with variable and constant operands, and in place where offered, against the page.
/// tolerance: the page's own when absent.
void check_node(Device& device, const Node& node, const NodeInputs& inputs, uint32_t constants = 0,
                std::optional<ops::Tolerance> tolerance = {});

// --- making nodes and inputs
template <class Attributes>
Node make_node(Attributes attributes, size_t inputs, size_t outputs = 1) {
  Node node;
  node.op = make_op(std::move(attributes));
  node.name = "node";
  for (size_t i = 0; i < inputs; ++i) node.inputs.push_back(static_cast<ValueId>(i));
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(static_cast<ValueId>(inputs + i));
  return node;
}

/// Uniform in [low, high]; the same for the same seed on every machine. Integers are rounded, bool is 0 or 1.
ops::HostTensor random_tensor(const TensorInfo& info, double low, double high, uint64_t seed);
ops::HostTensor ints_tensor(std::vector<int64_t> values);
ops::HostTensor scalar_tensor(DType dtype, double value);
ops::HostTensor tensor_of(const TensorInfo& info, const std::vector<double>& values);

}  // namespace rt::test
