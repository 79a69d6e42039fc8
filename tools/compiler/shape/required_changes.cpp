#include "tools/compiler/shape/required_changes.h"

#include <algorithm>

namespace librt::compiler {
namespace {

constexpr size_t kMostRequiredOpen = 8, kMostDims = 12, kMostChanges = 4;

using Fits = std::function<bool(std::span<const SymbolChange>)>;

/// Adds `wanted` further changes, of symbols from `first` on, until they fit.
bool search(std::span<const int32_t> open, std::span<const Dim> dims, size_t first, size_t wanted,
            const Fits& fits, std::vector<SymbolChange>& changes) {
  if (wanted == 0) return fits(changes);
  for (size_t i = first; i < open.size(); ++i)
    for (const Dim& dim : dims) {
      // A symbol that replaces another must not be replaced itself.
      const bool dropped = std::any_of(changes.begin(), changes.end(), [&](const SymbolChange& change) {
        return dim.symbol >= 0 && change.first == dim.symbol;
      });
      const bool used = std::any_of(changes.begin(), changes.end(), [&](const SymbolChange& change) {
        return change.second.symbol == open[i];
      });
      if (dim.symbol == open[i] || dropped || used) continue;
      changes.emplace_back(open[i], dim);
      if (search(open, dims, i + 1, wanted - 1, fits, changes)) return true;
      changes.pop_back();
    }
  return false;
}

}  // namespace

std::vector<SymbolChange> required_changes(std::span<const int32_t> open, std::vector<Dim> dims,
                                           const Fits& fits) {
  if (open.empty() || open.size() > kMostRequiredOpen) return {};
  const Dim one{.extent = 1};
  std::erase(dims, one);
  dims.resize(std::min(dims.size(), kMostDims));
  dims.push_back(one);
  std::vector<SymbolChange> changes;
  for (size_t wanted = 1; wanted <= kMostChanges; ++wanted)
    if (search(open, dims, 0, wanted, fits, changes)) break;
  std::vector<SymbolChange> demanded;
  for (size_t i = 0; i < changes.size(); ++i) {
    std::vector<SymbolChange> others = changes;
    others[i].second = one;
    if (changes[i].second == one || !fits(others)) demanded.push_back(changes[i]);
  }
  return demanded;
}

}  // namespace librt::compiler
