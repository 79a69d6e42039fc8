// If and Loop as the nodes of their bodies, where what runs does not depend on data.
//
// Knows: how a body becomes a part of the graph around it. Must not know: why that is wanted.
#pragma once

#include <string>
#include <vector>

#include "tools/compiler/builder.h"

namespace rt::compiler {

/// Emits the nodes of a body, any number of times; its constants and states are there once.
class BodyWriter {
 public:
  BodyWriter(Builder& builder, const Graph& body);
  /// inputs: one for each of the body's. The values that its outputs became; nodes' names get the prefix.
  std::vector<ValueId> write(std::span<const ValueId> inputs, const std::string& prefix) const;

 private:
  Builder& builder_;
  const Graph& body_;
  std::vector<ValueId> map_;  ///< of constants and states
};

/// A Loop that becomes more nodes than this stays one.
inline constexpr int64_t kMostLoopNodes = 10'000;

/// Writes out every If whose condition, and every Loop whose number of iterations does not depend on data,
/// also within what was written out.
Status write_out_control(Graph& graph, const std::vector<State>& states);

}  // namespace rt::compiler
