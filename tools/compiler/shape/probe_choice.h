// Which extents the probes give to a graph's symbols.
//
// Knows: what a symbol's place among the graph's inputs suggests. Must not know: shape rules, expressions.
//
// Two symbols may get one extent (kByAxis and later): probes are examples and prove nothing.
#pragma once

#include <array>
#include <optional>

#include "tools/compiler/shape/probe.h"
#include "tools/compiler/shape/symbol_index.h"

namespace librt::compiler {

/// The ways of choosing probes, in the order in which they are tried.
enum ProbeStrategy : int {
  kDistinct,       ///< small primes; multiples of 64 on the later axes of inputs of rank 4 and above (images)
  kDistinctLarge,  ///< multiples of 64 on every axis but the first
  kByAxis,         ///< symbols on the same axis are equal: lengths with different names that must agree
  kByAxisLarge,
  kSquare,         ///< all axes but the first are equal multiples of 64
  kDistinctSmall,  ///< small primes on every axis: caches of decoders, whose positions index a table
  kHuge,           ///< all axes are long, as a TopK with k = 1000 needs
  kAllEqual,       ///< every symbol is the same small number
  kFree,           ///< as kDistinct, but extents that follow from two that must match are unknown
  kOneSample,      ///< the first axes are 1: models exported for one sample only
  kOneSampleLarge,
  kAllOne,
  kStrategies,
};

/// The extents of a symbol under the probes, within its bound if it is one of the graph's. position: where it
/// appears among the graph's inputs; nullopt for a data-dependent extent.
std::array<int64_t, kProbes> choose_probes(const Graph& graph, int strategy, int32_t symbol,
                                           std::optional<AxisPosition> position);

}  // namespace librt::compiler
