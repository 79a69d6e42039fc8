// Turns a graph at concrete shapes into a Program: steps with kernels, in order.
//
// Knows: how to keep a node, compute it in another float type, inline its body, or assign it to another
// device; what can be evaluated on the host while planning; where copies and reorders are needed. Must not
// know: memory addresses of values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "runtime/core/log.h"
#include "runtime/core/stop_signal.h"
#include "runtime/session/memory/memory_limit.h"
#include "runtime/session/prepare/kernel_tuning.h"
#include "runtime/session/prepare/program.h"

namespace librt {

/// Results of nodes that depend on constants alone: evaluated once per session. Key: graph or body, and
/// value.
using FoldedConstants = std::map<std::pair<const Graph*, size_t>, AlignedBytes>;

/// Constants converted to a float type other than the model's. Key: address in the model, and type. Their
/// addresses are stable within a session; bytes read only by packing are discarded, and converted again for
/// the next plan.
struct ConvertedConstant {
  AlignedBytes bytes;
  bool filled = false;
};
struct ConvertedConstants {
  std::map<std::pair<const std::byte*, DType>, ConvertedConstant> all;
  std::vector<ConvertedConstant*> filled;  ///< since the last plan
};

struct LegalizeRequest {
  const Graph& graph;
  const std::vector<State>& states;
  DeviceSet& devices;
  std::span<const TensorInfo> inputs;        ///< concrete, checked
  std::span<const std::byte* const> values;  ///< for inputs that determine shapes: their bytes, else null
  FoldedConstants& folded;
  ConvertedConstants& converted;
  KernelTuner& kernel_tuner;
  bool strict = false;
  /// Type of matmul-like operators and the nodes between them, where the device has kernels; nullopt: the
  /// graph's types.
  std::optional<DType> precision = {};
  std::span<const std::byte> mapped = {};  ///< see PlanContext
  /// Keep every node and stop before kernels and copies: to query the steps' costs. `devices` may be empty.
  bool costs_only = false;
  /// A node's results and tables must fit beside `held` bytes, before its kernel is created.
  MemoryLimit limit{};
  uint64_t held = 0;
  /// If set, it may end the planning between nodes, and hears of each.
  const StopSignal* stop = nullptr;
  Log log = {};
};

/// Errors name the node and list all nodes that no device supports.
Result<std::unique_ptr<Program>> legalize(const LegalizeRequest& request);

}  // namespace librt
