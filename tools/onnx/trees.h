// Ensembles of decision trees, as tables that every row of features traverses level by level.
//
// Knows: the attributes of TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor. Must not know: how
// tables are read (ops/ml_trees.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "tools/onnx/node.h"

namespace librt::onnx {

/// All trees, validated: every node leads to leaves, within `depth` steps. Leaves come first and lead to
/// themselves. A row goes to `yes` where (x < threshold and less) or (x = threshold and equal) or (x is NaN
/// and missing), else to `no`.
struct Trees {
  /// As TreeLeaves takes them.
  struct Node {
    int32_t feature, yes, no;
    int32_t comparison;  ///< bits: less, equal, missing
  };
  std::vector<Node> nodes;
  std::vector<double> threshold;  ///< by node
  std::vector<int32_t> roots;
  int depth = 0;
  size_t leaves = 0;

  struct Weight {
    int32_t leaf;
    int64_t target;
    double value;
  };
  std::vector<Weight> weights;
  /// By tree: the target of all of its leaves' weights; -1 if it has several.
  std::vector<int64_t> target;
  /// Whether thresholds or weights are f64.
  bool wide = false;

  size_t size() const { return nodes.size(); }
};

/// Deeper trees are refused: a level is some twenty nodes of TreeLeaves' body.
inline constexpr int kMaxTreeDepth = 1000;

/// From the attributes of operator versions 1 to 3; `prefix` is "class" or "target". targets: their number.
Result<Trees> trees_by_id(NodeContext& c, std::string_view prefix, int64_t targets);
/// From the attributes of TreeEnsemble.
Result<Trees> trees_by_position(NodeContext& c, int64_t targets);

}  // namespace librt::onnx
