// Which extents the probes give to a graph's symbols.
//
// Knows: where a symbol appears among the graph's inputs. Must not know: shape rules, expressions.
//
// Two symbols may get one extent (kByAxis and later): probes are examples and prove nothing.
#pragma once

#include <array>
#include <optional>

#include "tools/compiler/shape/probe.h"

namespace librt::compiler {

/// Where a symbol first appears among the graph's inputs.
struct AxisPosition {
  int axis = 0;
  int rank = 1;
};
/// nullopt for a data-dependent extent.
std::optional<AxisPosition> position_of(const Graph& graph, int32_t symbol);

/// The ways of choosing probes, in the order in which they are tried.
enum ProbeStrategy : int {
  kDistinct,       ///< small primes; multiples of 64 on the later axes of inputs of rank 4 and above (images)
  kDistinctLarge,  ///< multiples of 64 on every axis but the first
  kByAxis,         ///< symbols on the same axis are equal: lengths with different names that must agree
  kByAxisLarge,
  kSquare,     ///< all axes but the first are equal multiples of 64
  kHuge,       ///< all axes are long, as a TopK with k = 1000 needs
  kAllEqual,   ///< every symbol is the same small number
  kFree,       ///< as kDistinct, but extents that follow from two that must match are unknown
  kOneSample,  ///< the first axes are 1: models exported for one sample only
  kOneSampleLarge,
  kAllOne,
  kStrategies,
};

/// The extents of a symbol under the probes, within its bound if it is one of the graph's.
std::array<int64_t, kProbes> choose_probes(const Graph& graph, int strategy, int32_t symbol);

}  // namespace librt::compiler
