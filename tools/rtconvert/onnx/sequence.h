// Sequences and optionals while a model is imported: lists of values, never anything in the graph.
//
// A name may stand for a tensor (a value of a graph) or for one of these; a number above all values' tells
// them apart, so that names, functions and branches hand them on alike.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::onnx {

struct Sequence {
  enum class Kind : uint8_t {
    List,     ///< `elements`, one value each
    Stacked,  ///< as many as the first axis of `stack` has: its parts, all of one shape
    Growing,  ///< inside a Loop: what came before, which is not known, and then `elements`
    Nothing,  ///< an optional that holds nothing
  };
  Kind kind = Kind::List;
  const void* frame = nullptr;  ///< the graph that the values are of
  std::vector<ValueId> elements = {};
  ValueId stack = kNoValue;
  size_t carried = 0;  ///< Growing: which of the Loop's sequences
};

inline constexpr ValueId kFirstSequence = 0xc0000000u;

constexpr bool is_sequence(ValueId id) {
  return id >= kFirstSequence && id != kNoValue;
}

}  // namespace rt::onnx
