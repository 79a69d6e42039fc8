// The symbols of a graph by name and by the inputs that carry them, without searching all of them.
//
// Knows: names and inputs. Must not know: nodes, probes, what a symbol's definition means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// Where a symbol first appears among the graph's inputs.
struct AxisPosition {
  int axis = 0;
  int rank = 1;
};

/// Follows a graph while symbols and inputs are added to it; clear() after any other change of them.
class SymbolIndex {
 public:
  /// The graph must outlive it.
  explicit SymbolIndex(const Graph& graph) : graph_(graph) {}

  /// The graph is a body of a node of outer's graph, whose symbols may be copied into it later under their
  /// names: unused() gives others. outer must outlive the calls that follow.
  void within(SymbolIndex& outer) { outer_ = &outer; }

  /// The first symbol with this name; -1 for none.
  int32_t find(std::string_view name);
  /// The first of NAME#0, NAME#1, .. that is no symbol, here or in a graph around it.
  std::string unused(const std::string& name);
  /// A name for a symbol whose definition reads NAME: with ' after it while a symbol has it already, here,
  /// or in a graph around it without a definition. (One with a definition means the same.)
  std::string unused_of_definition(std::string name);
  /// nullopt for a symbol that no input carries.
  std::optional<AxisPosition> position_of(int32_t symbol);
  /// Whether an input carries it and it has no definition.
  bool is_free_input(int32_t symbol);
  /// An input has got symbols that it had not when it was added.
  void carry(const Value& input);
  void clear();

 private:
  /// Whether a graph around this one has a symbol with the name.
  bool is_around(std::string_view name, bool with_definition);

  const Graph& graph_;
  SymbolIndex* outer_ = nullptr;
  std::unordered_map<std::string, int32_t> by_name_;
  std::unordered_map<std::string, size_t> numbers_;     ///< of unused(), by name
  std::vector<std::optional<AxisPosition>> positions_;  ///< by symbol
  size_t named_ = 0, inputs_ = 0;                       ///< symbols and inputs that these cover
};

}  // namespace librt::compiler
