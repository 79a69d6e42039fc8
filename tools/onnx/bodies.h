// Control flow for importers of operators that are defined by it.
//
// Knows: how a body is asked for. Must not know: how its values get there (control.cpp).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::onnx {

class BodyWriter {
 public:
  struct Body {
    compiler::Builder& emit;
    std::span<const ValueId> inputs;         ///< the body's own
    std::function<ValueId(ValueId)> within;  ///< a value of the graph around it, as one of the body
  };
  /// Writes a body and returns its outputs.
  using Write = std::function<std::vector<ValueId>(const Body& body)>;

  virtual ~BodyWriter() = default;
  /// If: `condition` is one Bool. Both bodies return values of the same types and ranks. None after an error.
  virtual std::vector<ValueId> choose(ValueId condition, const Write& then, const Write& otherwise) = 0;
  /// Loop of `trips` (one i64) iterations: the body takes the iteration (i64 scalar) and the carried values
  /// and returns the next carried values and what is stacked along a new first axis; so does this. None after
  /// an error.
  virtual std::vector<ValueId> repeat(ValueId trips, std::vector<ValueId> carried, const Write& write) = 0;
};

}  // namespace librt::onnx
