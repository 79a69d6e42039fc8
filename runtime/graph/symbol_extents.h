// The extents of a graph's symbols in one run, derived from shapes; and checks of shapes against values'
// declared dimensions.
//
// Knows: extents, symbols and their definitions. Must not know: operators, devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/shape.h"
#include "runtime/graph/graph.h"

namespace librt {

class SymbolExtents {
 public:
  explicit SymbolExtents(const Graph& graph) : graph_(graph), extents_(graph.symbols.size(), -1) {}

  /// Binds those of the value's symbols that are still unbound to the extents of this shape.
  void bind(const Value& value, const Shape& shape) noexcept;
  /// The extent of a symbol by its definition; nullopt where it has none, or depends on an unbound symbol.
  std::optional<int64_t> defined_extent(size_t symbol) const noexcept;
  /// The extent of a dimension; nullopt where it is not known yet.
  std::optional<int64_t> extent_of(const Dim& dim) const noexcept;
  /// Why the shape contradicts the value's declared dimensions; empty if it does not. Binds unbound symbols.
  std::string contradiction(const Value& value, const Shape& shape);

 private:
  const Graph& graph_;
  std::vector<int64_t> extents_;  ///< by symbol; -1: unbound
};

}  // namespace librt
