// Which nodes of a graph each backend runs itself, by the table in docs/operators.md, which is built into the
// program.
//
// Knows: that table. Must not know: devices; a session's own plan decides, because kernel selection may
// depend on attributes and shapes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::convert {

struct Coverage {
  std::string backend;
  size_t nodes = 0;  ///< nodes that run on a device; shape arithmetic is evaluated during planning
  size_t host = 0;   ///< control flow and operators with data-dependent output shapes
  /// Counts of nodes like "TopK f16": those that another backend has to run, and those whose support depends
  /// on attributes or shapes.
  std::map<std::string, size_t> elsewhere;
  std::map<std::string, size_t> depends;

  /// "all 66 nodes", or the exceptions.
  std::string text() const;
};

/// One entry per backend of the table.
std::vector<Coverage> coverage_of(const Graph& graph);

}  // namespace librt::convert
