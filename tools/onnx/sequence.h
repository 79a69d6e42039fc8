// Sequences and optionals during import: lists of values, never part of the graph.
//
// A name may refer to a tensor (a value of a graph) or to one of these; their ids are above those of all
// values, so that names, functions and branches pass both on alike.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::onnx {

struct Sequence {
  enum class Kind : uint8_t {
    List,     ///< `elements`, one value each
    Stacked,  ///< slices of `stack` along its first axis, all of one shape
    Growing,  ///< inside a Loop: an unknown prefix, then `elements`
    Nothing,  ///< an optional that holds nothing
  };
  Kind kind = Kind::List;
  const void* frame = nullptr;  ///< the graph that the values belong to
  std::vector<ValueId> elements = {};
  ValueId stack = kNoValue;
  size_t carried = 0;  ///< Growing: index among the Loop's sequences
};

inline constexpr ValueId kFirstSequence = 0xc0000000u;

constexpr bool is_sequence(ValueId id) {
  return id >= kFirstSequence && id != kNoValue;
}

}  // namespace librt::onnx
