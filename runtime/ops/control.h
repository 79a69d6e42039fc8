// If and Loop: what they mean, whoever runs their bodies.
//
// Knows: which body runs when, with what, and what becomes of its results. Must not know: how a body is run
// (the reference evaluator and the session each do it their way).
#pragma once

#include <functional>
#include <span>

#include "runtime/ops/page.h"

namespace rt::ops {

/// A Loop that goes on for longer is stopped with an error, unless a session allows more.
inline constexpr uint64_t kMaxLoopIterations = 1'000'000;

/// Runs body `body` of the node. The results stay valid during the next run.
using RunBody = std::function<Result<std::span<const ConstTensorView>>(
    size_t body, std::span<const ConstTensorView> inputs)>;

/// The value of an If or Loop.
Status run_control(const NodeView& node, std::span<const ConstTensorView> inputs, uint64_t most_iterations,
                   const RunBody& run_body, ResultMaker& results);

inline bool is_control(OpKind kind) noexcept {
  return kind == OpKind::If || kind == OpKind::Loop;
}

/// Operators that a session runs on the host, since the extents of their results, or which nodes run at all,
/// depend on data.
inline bool runs_on_host(OpKind kind) noexcept {
  const Page* page = page_of(kind);
  return is_control(kind) || (page != nullptr && page->run != nullptr);
}

/// A Loop's inputs before the carried values: trip count and condition.
inline constexpr size_t kLoopHead = 2;

/// Whether no iteration of this Loop's body can end it: its condition is constantly true, or the one it was
/// given.
bool never_breaks(const Graph& body) noexcept;

}  // namespace rt::ops
