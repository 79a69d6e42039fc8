// What a graph computes from the length of its cache: positions and masks, spelled out as shape arithmetic.
//
// Once the cache has a static size, its length is no longer a shape but a value held in a state. What an
// exported model derives from the shapes of its past (Shape, Range, comparisons, masks made of ones) is
// recognized by its value: it is evaluated for several lengths p and numbers of new tokens s, with a mask
// input of ones, and must be p + i (positions) or t <= p + s (a causal mask). So no pattern per exporter is
// needed.
//
// Knows: which values depend on shapes and masks alone, and what they mean. Must not know: what
// replaces them.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "tools/compiler/cache/growth.h"

namespace librt::compiler {

/// An integer value that holds p + offset + i in its i-th element.
struct Positions {
  int64_t offset = 0;
};

enum class MaskMeaning : uint8_t { Everything, Causal };

class LengthValues {
 public:
  /// Finds what each use of the cache's length means; an error names the node whose use cannot be classified.
  static Result<LengthValues> find(const Graph& graph, const std::vector<State>& states,
                                   const Growths& growths);

  /// Null: the value is not used as positions.
  const Positions* positions(ValueId id) const;
  /// Of the mask operand of an Attention node; null: the mask does not depend on the length.
  const MaskMeaning* mask(ValueId id) const;
  /// An input of ones, one for each position so far: it is not needed any more.
  bool is_mask_input(ValueId id) const { return mask_input_[id]; }
  /// Whether the value depends only on shapes, constants and mask inputs, including the length.
  bool is_derived(ValueId id) const { return derived_[id]; }
  /// Whether a derived value is read as data, rather than as part of a shape or of a recognized mask.
  bool is_data(ValueId id) const { return data_.contains(id); }
  /// New tokens per step: an extent, or the symbol of an input.
  const Dim& fresh() const { return fresh_; }

 private:
  class Search;
  std::vector<bool> derived_, mask_input_;
  std::set<ValueId> data_;
  std::map<ValueId, Positions> positions_;
  std::map<ValueId, MaskMeaning> masks_;
  Dim fresh_;
};

}  // namespace librt::compiler
