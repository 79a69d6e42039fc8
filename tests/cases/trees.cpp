// Rows of features in decision trees.
#include <limits>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

CaseInput integers(const Shape& shape, std::vector<double> values) {
  return with_values(tensor(DType::I32, shape), std::move(values));
}

/// Two trees with three splits each, of features 0 to 2: leaves 0 to 3, then the splits of the first tree (4:
/// 5, 6) and the second (7: 0 or 8; 8: 9 or 3; 9).
std::vector<double> two_trees(std::vector<double> comparisons) {
  std::vector<double> nodes;
  for (int leaf = 0; leaf < 4; ++leaf) nodes.insert(nodes.end(), {0.0, 1.0 * leaf, 1.0 * leaf, 0.0});
  const double splits[6][3] = {{0, 5, 6}, {1, 0, 1}, {2, 2, 3}, {2, 0, 8}, {1, 9, 3}, {0, 1, 2}};
  for (size_t i = 0; i < 6; ++i)
    nodes.insert(nodes.end(),
                 {splits[i][0], splits[i][1], splits[i][2], comparisons[i % comparisons.size()]});
  return nodes;
}

const std::vector<double> kThresholds = {0, 0, 0, 0, 0.25, -0.5, 0.5, -1, 1, 0};

/// A complete binary tree of `levels` levels after its 2^levels leaves, for each of `trees` trees.
std::vector<double> complete_trees(int64_t trees, int64_t levels, int64_t features) {
  const int64_t leaves = int64_t{1} << levels, splits = leaves - 1;
  std::vector<double> nodes;
  const auto add = [&](int64_t feature, int64_t first, int64_t second, int64_t comparison) {
    for (int64_t field : {feature, first, second, comparison}) nodes.push_back(static_cast<double>(field));
  };
  for (int64_t leaf = 0; leaf < leaves; ++leaf) add(0, leaf, leaf, 0);
  for (int64_t tree = 0; tree < trees; ++tree) {
    const int64_t base = leaves + tree * splits;
    for (int64_t i = 0; i < splits; ++i) {
      const bool last = 2 * i + 1 >= splits;
      const int64_t child = last ? 2 * i + 1 - splits : base + 2 * i + 1;
      add((i * 7 + tree) % features, child, child + 1, 3);
    }
  }
  return nodes;
}

}  // namespace

std::vector<Case> cases_trees() {
  std::vector<Case> cases;
  const auto trees = [&](const char* name, int64_t levels, std::vector<std::optional<CaseInput>> inputs) {
    op::TreeLeavesAttributes attributes;
    attributes.levels = levels;
    cases.push_back(no_gradient(make_case(name, attributes, std::move(inputs))));
  };
  const auto roots = integers({2}, {4, 7});
  const auto small = [&](const char* name, std::vector<double> comparisons, int64_t rows, DType dtype) {
    trees(name, 3,
          {tensor(dtype, {rows, 3}), constant(integers({10, 4}, two_trees(std::move(comparisons)))),
           constant(with_values(tensor(dtype, {10}), kThresholds)), constant(roots)});
  };
  small("tree_leaves", {3}, 37, DType::F32);
  small("tree_leaves_less", {1}, 5, DType::F32);
  small("tree_leaves_mixed", {3, 1, 7, 5, 2, 6, 0}, 19, DType::F32);
  small("tree_leaves_f64", {3, 7}, 21, DType::F64);
  // -0.5, 0.25, 0.5, .. exactly, and NaN.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> rows = {0.25, -0.5, 0.5, 0.25, 1, -1, 0, 2, 0.5, nan, -0.5, nan, 0.25, nan, -1};
  const auto exact = [&](const char* name, std::vector<double> comparisons) {
    trees(name, 3,
          {with_values(f32({5, 3}), rows), constant(integers({10, 4}, two_trees(std::move(comparisons)))),
           constant(with_values(f32({10}), kThresholds)), constant(roots)});
  };
  exact("tree_leaves_nan", {3, 7});
  exact("tree_leaves_nan_less", {1, 5});
  exact("tree_leaves_equal", {2, 6});
  // Operands that are known at run time only.
  trees("tree_leaves_operands", 2,
        {f32({9, 3}), integers({10, 4}, two_trees({3, 1, 6})), with_values(f32({10}), kThresholds), roots});
  trees("tree_leaves_no_levels", 0,
        {f32({3, 3}), constant(integers({10, 4}, two_trees({3}))),
         constant(with_values(f32({10}), kThresholds)), constant(integers({3}, {0, 7, 4}))});
  constexpr int64_t kTrees = 70, kLevels = 6, kFeatures = 11, kNodes = 64 + kTrees * 63;
  std::vector<double> first;
  for (int64_t i = 0; i < kTrees; ++i) first.push_back(static_cast<double>(64 + i * 63));
  const auto many = [&](const char* name, int64_t count) {
    trees(
        name, kLevels,
        {f32({count, kFeatures}), constant(integers({kNodes, 4}, complete_trees(kTrees, kLevels, kFeatures))),
         constant(f32({kNodes})), constant(integers({kTrees}, first))});
  };
  many("tree_leaves_many", 150);
  many("tree_leaves_row", 1);
  many("tree_leaves_empty", 0);
  return cases;
}

}  // namespace librt::test
