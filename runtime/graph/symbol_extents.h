// The extents that a graph's symbols have in one run, found out from shapes; and whether a shape contradicts
// what the file claims of a value.
//
// Knows: extents, symbols and their definitions. Must not know: operators, devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/shape.h"
#include "runtime/graph/graph.h"

namespace rt {

class SymbolExtents {
 public:
  explicit SymbolExtents(const Graph& graph) : graph_(graph), extents_(graph.symbols.size(), -1) {}

  /// A value has this shape: its symbols get their extents, unless they have some.
  void bind(const Value& value, const Shape& shape) noexcept;
  /// The extent of a symbol by its definition; nullopt where it has none, or one of what it follows from has
  /// not been met.
  std::optional<int64_t> defined_extent(size_t symbol) const noexcept;
  /// The extent of a dimension; nullopt where it follows from nothing met so far.
  std::optional<int64_t> extent_of(const Dim& dim) const noexcept;
  /// Why the shape contradicts what is declared of the value; empty if it does not. Symbols that are met for
  /// the first time get their extents.
  std::string contradiction(const Value& value, const Shape& shape);

 private:
  const Graph& graph_;
  std::vector<int64_t> extents_;  ///< by symbol; -1: not met yet
};

}  // namespace rt
