// Symbols whose names say that they are sums of others: exporters write "past_sequence_length + 1".
//
// Knows: these names. Must not know: nodes.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/shape/symbol_index.h"

namespace librt::compiler {

/// Follows a graph while symbols are added to it; clear() after any other change of them.
class SymbolSums {
 public:
  /// Gives each symbol named as a sum of others ("past + length", or "total_x" for "past_x" + "x") that sum
  /// as its definition; whether there was a new one.
  bool define(Graph& graph, SymbolIndex& names);
  void clear();

 private:
  bool define(Graph& graph, SymbolIndex& names, int32_t symbol);

  size_t seen_ = 0;                                                ///< symbols
  std::unordered_map<std::string, std::vector<int32_t>> waiting_;  ///< by the name of a term that is missing
};

}  // namespace librt::compiler
