// What of a graph each backend runs itself, by the table in docs/operators.md, which is built into the
// program.
//
// Knows: that table. Must not know: devices; a session's own plan has the last word, because a kernel may
// look at attributes and shapes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::convert {

struct Coverage {
  std::string backend;
  size_t nodes = 0;  ///< that run on a device; shape arithmetic is done while planning
  size_t host = 0;   ///< control flow, and what finds out its results' extents while it runs
  /// "TopK f16" and how many nodes: those that another backend has to run, and those where it depends on the
  /// form.
  std::map<std::string, size_t> elsewhere;
  std::map<std::string, size_t> depends;

  /// "all 66 nodes", or what is not.
  std::string text() const;
};

/// One entry per backend of the table.
std::vector<Coverage> coverage_of(const Graph& graph);

}  // namespace rt::convert
