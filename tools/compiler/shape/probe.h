// Probes: two assignments of concrete extents to the symbols of a graph, at which every node is inferred by
// its page's shape rule. They check attributes, refute wrong expressions and serve as examples; nothing is
// concluded from them.
#pragma once

#include <array>

#include "runtime/core/tensor_view.h"
#include "runtime/graph/graph.h"

namespace librt::compiler {

inline constexpr int kProbes = 2;

/// What is known of a value under one probe.
struct ProbeValue {
  TensorInfo info;
  Blob value;  ///< host bytes, for constants and small values computed from shapes; empty when unknown
};
using Probes = std::array<ProbeValue, kProbes>;

}  // namespace librt::compiler
