// Shapes with symbols: for each operator, its results' extents as expressions of its operands' extents.
//
// The pages' shape rules work on concrete extents; this is the same knowledge on expressions, as far as it
// can be proven. A rule may assume that the page's rule accepts the node, because a run that it refuses has
// no result. What it cannot derive stays unknown. Every result is compared with the page's rule at the
// builder's probes, and with the real extents whenever a session makes a plan.
//
// Must not know: probes, how unknown extents get names.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/ops/page.h"
#include "tools/compiler/shape/known.h"

namespace librt::compiler {

using ops::ExtentRule;

/// Two expressions that are equal in every run that the page's rule accepts.
struct Demand {
  Extent a, b;
};

/// Fills results[i], whose size is the rank of result i, with Extent::unknown() where it is not proven.
/// inputs: null for an absent one. Only for LikeFirst, Broadcast and Own. Appends the page's constraints on
/// operands to `demands`.
void infer_extents(ExtentTable& table, const Node& node, std::span<const Known* const> inputs,
                   std::vector<std::vector<Extent>>& results, std::vector<Demand>& demands);

/// The elements of a node's results, where all of it is arithmetic on or movement of elements that are known.
/// results[i]: dims are set. infos: types and shapes of the results, all static.
void infer_elements(ExtentTable& table, const Node& node, std::span<const Known* const> inputs,
                    std::span<const DType> input_types, std::span<const TensorInfo> infos,
                    std::vector<Known>& results);

/// The product of all extents.
Extent product_of(ExtentTable& table, std::span<const Extent> extents);

}  // namespace librt::compiler
