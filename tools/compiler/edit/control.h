// If and Loop inlined as the nodes of their bodies, where control flow does not depend on data.
//
// Knows: how a body is inlined into the graph around it. Must not know: why that is wanted.
#pragma once

#include <string>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::compiler {

/// Emits the nodes of a body, any number of times; its constants and states are shared.
class BodyWriter {
 public:
  BodyWriter(Builder& builder, const Graph& body);
  /// inputs: one for each of the body's. Returns the values of the body's outputs; node names get the prefix.
  std::vector<ValueId> write(std::span<const ValueId> inputs, const std::string& prefix) const;

 private:
  Builder& builder_;
  const Graph& body_;
  std::vector<ValueId> map_;  ///< of constants and states
};

/// A Loop that would unroll to more nodes than this stays a Loop.
inline constexpr int64_t kMostLoopNodes = 10'000;

/// Inlines every If whose condition, and unrolls every Loop whose trip count does not depend on data, also
/// within inlined bodies.
Status write_out_control(Graph& graph, const std::vector<State>& states);

}  // namespace librt::compiler
