// Semantics of If and Loop, independent of who runs their bodies.
//
// Knows: which body runs when, with which inputs, and how its results are used. Must not know: how a body is
// run (the reference evaluator and the session each provide that).
#pragma once

#include <functional>
#include <span>

#include "runtime/core/stop_signal.h"
#include "runtime/ops/page.h"

namespace librt::ops {

/// Runs body `body` of the node. The results stay valid during the next run.
using RunBody = std::function<Result<std::span<const ConstTensorView>>(
    size_t body, std::span<const ConstTensorView> inputs)>;

/// The value of an If or Loop. `stop` counts the iterations of all loops of a run and may end it.
Status run_control(const NodeView& node, std::span<const ConstTensorView> inputs, StopSignal& stop,
                   const RunBody& run_body, ResultMaker& results);

inline bool is_control(OpKind kind) noexcept {
  return kind == OpKind::If || kind == OpKind::Loop;
}

/// Operators that a session runs on the host, since their output extents, or which nodes run at all, are
/// data-dependent.
inline bool runs_on_host(OpKind kind) noexcept {
  const Page* page = page_of(kind);
  return is_control(kind) || (page != nullptr && page->run != nullptr);
}

/// A Loop's inputs before the carried values: trip count and condition.
inline constexpr size_t kLoopHead = 2;

/// Whether the body can never end its Loop: the condition it returns is constantly true or its condition
/// input.
bool never_breaks(const Graph& body) noexcept;

}  // namespace librt::ops
