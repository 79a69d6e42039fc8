// Where a graph lets an input grow: Concat(what came in, new entries), and the result goes out again.
//
// Knows: how to find such places by structure, and how to make sure by evaluation that what goes out is what
// comes in at the next step. Must not know: what is to become of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::compiler {

/// grown = Concat(earlier, fresh) along `axis`; earlier is `past`, or a part of it.
struct Growth {
  ValueId past = kNoValue;
  NodeId concat = 0;
  size_t axis = 0;
  ValueId earlier = kNoValue, fresh = kNoValue, grown = kNoValue;
};

struct Growths {
  std::vector<Growth> places;
  struct Pair {
    ValueId past = kNoValue;     ///< graph input
    ValueId present = kNoValue;  ///< graph output that is the next step's input
  };
  std::vector<Pair> pairs;

  const Growth* at(NodeId concat) const;
  bool is_past(ValueId id) const;
  bool is_present(ValueId id) const;
};

/// Copies bytes to other places, and does nothing else: Reshape, Transpose, a Gather or Slice by constants...
/// Data is input 0.
bool is_movement(const Graph& graph, const Node& node);

/// Whether input i must be known when shapes are.
bool is_shape_operand(const Node& node, size_t i);

/// pairs: names of inputs and outputs to look at; empty: all. An error when nothing grows, or when what grows
/// is not carried on as it is.
Result<Growths> find_growths(const Graph& graph, const std::vector<State>& states,
                             const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace rt::compiler
