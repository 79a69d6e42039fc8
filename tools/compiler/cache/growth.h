// Where a graph lets an input grow: Concat(input, new entries), whose result is an output.
//
// Knows: how to find such Concats by structure, and how to verify by evaluation that the output is the input
// of the next step. Must not know: what is done with them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

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

/// Copies the elements of input 0 to other positions that are known beforehand, or changes their type. Not
/// every operator that moves data: the rows that a past grows by must stay rows, so Expand and Tile do not
/// count, nor does a Gather or Slice by anything but constants.
bool is_movement(const Graph& graph, const Node& node);

/// Whether input i must be known for shape inference.
bool is_shape_operand(const Node& node, size_t i);

/// Gives the lengths of all pasts one name where they have several, as a model has with caches that held only
/// a window: all begin empty and grow by the same new entries.
Status unite_lengths(Graph& graph, const std::vector<State>& states, const Growths& growths);

/// pairs: names of inputs and outputs to consider; empty: all. An error when nothing grows, or when a grown
/// value is not passed on unchanged.
Result<Growths> find_growths(const Graph& graph, const std::vector<State>& states,
                             const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace librt::compiler
