// Turns a graph at concrete shapes into a Program: steps with kernels, in order.
//
// Knows: how to keep a node, inline its body, or give it to another device; what can be evaluated on the host
// while planning; where copies and reorders are needed. Must not know: where values will lie.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "runtime/session/choose.h"
#include "runtime/session/program.h"

namespace rt {

/// Results of nodes that depend on constants alone: evaluated once in a session. Key: graph or body, and
/// value.
using FoldedConstants = std::map<std::pair<const Graph*, size_t>, AlignedBytes>;

struct LegalizeRequest {
  const Graph& graph;
  const std::vector<State>& states;
  DeviceSet& devices;
  std::span<const TensorInfo> inputs;        ///< concrete, checked
  std::span<const std::byte* const> values;  ///< for inputs that decide over shapes: their bytes, else null
  FoldedConstants& folded;
  Chooser& chooser;
  bool strict = false;
  /// Keep every node and stop before kernels and copies: for the steps' costs. `devices` may be empty.
  bool costs_only = false;
};

/// Errors name the node and list every node that no device can run.
Result<std::unique_ptr<Program>> legalize(const LegalizeRequest& request);

}  // namespace rt
