#include "runtime/graph/symbol_extents.h"

namespace librt {

void SymbolExtents::bind(const Value& value, const Shape& shape) noexcept {
  for (int axis = 0; axis < shape.rank() && axis < value.rank(); ++axis) {
    const Dim& dim = value.dims[static_cast<size_t>(axis)];
    if (dim.is_known() || dim.symbol < 0) continue;
    const auto index = static_cast<size_t>(dim.symbol);
    if (extents_[index] < 0) extents_[index] = shape[axis];
  }
}

std::optional<int64_t> SymbolExtents::defined_extent(size_t symbol) const noexcept {
  const std::vector<ExtentTerm>& definition = graph_.symbols[symbol].definition;
  return definition.empty() ? std::nullopt : evaluate(definition, extents_);
}

std::optional<int64_t> SymbolExtents::extent_of(const Dim& dim) const noexcept {
  if (dim.is_known()) return dim.extent;
  if (dim.symbol < 0) return std::nullopt;
  const auto index = static_cast<size_t>(dim.symbol);
  if (const auto extent = defined_extent(index)) return extent;
  if (extents_[index] < 0) return std::nullopt;
  return extents_[index];
}

std::string SymbolExtents::contradiction(const Value& value, const Shape& shape) {
  if (shape.rank() != value.rank()) return text("another rank, ", shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Dim& dim = value.dims[static_cast<size_t>(axis)];
    const auto expected = extent_of(dim);
    if (!expected && dim.symbol >= 0) extents_[static_cast<size_t>(dim.symbol)] = shape[axis];
    if (!expected || *expected == shape[axis]) continue;
    const std::string name = dim.is_known()
                                 ? std::string()
                                 : text(" (", graph_.symbols[static_cast<size_t>(dim.symbol)].name, ")");
    return text("axis ", axis, " is ", *expected, name, ", found ", shape);
  }
  return {};
}

}  // namespace librt
