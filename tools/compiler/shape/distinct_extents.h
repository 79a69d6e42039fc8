// Infers a node whose results' extents are copies of its operands' (ExtentRule::Copied), with a distinct
// value for each dynamic extent, so that the results show where each extent came from.
//
// Knows: how to find out which extents the page's rule requires to be equal. Must not know: shape rules.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "tools/compiler/shape/probe.h"
#include "tools/compiler/shape/rules.h"

namespace librt::compiler {

class DistinctExtents {
 public:
  /// Runs the shape rule on these inputs; false where it refuses them.
  using Infer = std::function<bool(const std::vector<Probes>& inputs, std::vector<Probes>& outputs)>;

  /// inputs: what is proven of the operands; given: their probes, which the rule accepts.
  DistinctExtents(std::vector<const Known*> inputs, std::vector<Probes> given, Infer infer);
  /// Fills in the extents that are found, and appends the rule's constraints.
  void run(std::vector<std::vector<Extent>>& dims, std::vector<Demand>& demands);

 private:
  using Pair = std::array<int64_t, kProbes>;
  struct Open {
    Extent extent;
    Pair probes;       ///< as given
    size_t group = 0;  ///< those in one group get one value
  };

  bool infer(std::vector<Probes>& outputs) const;
  Pair number_of(size_t group) const;
  void merge_by_probes();
  void use_numbers();
  void split_where_possible();

  std::vector<const Known*> inputs_;
  std::vector<Probes> given_;
  Infer infer_;
  std::vector<Open> open_;
  std::vector<Extent> groups_;  ///< the representative of each group
};

}  // namespace librt::compiler
