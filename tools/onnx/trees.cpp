#include "tools/onnx/trees.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "runtime/core/element.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {

namespace {

enum class Mode { LessOrEqual, Less, GreaterOrEqual, Greater, Equal, NotEqual, Member, Leaf };

struct Branch {
  Mode mode = Mode::Leaf;
  int64_t feature = 0;
  double threshold = 0;
  int32_t yes = 0, no = 0;  ///< nodes of Trees
  bool missing = false;
};

/// Values of a list of floats or, if present, of the tensor with the same meaning.
Result<std::vector<double>> numbers_of(NodeContext& c, const std::string& list, const std::string& tensor,
                                       bool& wide) {
  const std::vector<float> floats = list.empty() ? std::vector<float>() : c.reals(list);
  const auto* proto = c.tensor(tensor);
  if (proto == nullptr) return std::vector<double>(floats.begin(), floats.end());
  if (!floats.empty()) return invalid_model("expected one of ", list, " and ", tensor, ", found both");
  RT_ASSIGN(const ValueId id, c.constant_of(*proto));
  const auto known = c.emit.known_value(id);
  if (!known || known->info.shape.rank() > 1) return invalid_model(tensor, ": expected a list of numbers");
  wide = wide || known->info.dtype == DType::F64;
  std::vector<double> numbers(static_cast<size_t>(known->info.elements()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = load_element(known->data, known->info.dtype, static_cast<int64_t>(i));
  return numbers;
}

Status expect_count(std::string_view name, size_t found, size_t expected) {
  if (found == expected) return {};
  return invalid_model(name, ": expected ", expected, " entries, one for each node or weight, found ", found);
}

Status expect_index(std::string_view name, int64_t index, size_t count) {
  if (index >= 0 && static_cast<uint64_t>(index) < count) return {};
  return invalid_model(name, ": ", index, " is outside of [0,", count, ")");
}

/// Puts branches into tables.
class Planter {
 public:
  explicit Planter(Trees& trees) : trees_(trees) {}

  void leaves(size_t count) {
    trees_.leaves = count;
    for (size_t i = 0; i < count; ++i) add(0, 0, static_cast<int32_t>(i), static_cast<int32_t>(i));
  }
  void branches(std::span<const Branch> branches, std::span<const std::vector<double>> members) {
    for (size_t i = 0; i < branches.size(); ++i) {
      add(0, 0, 0, 0);
      origin_.push_back(i);
    }
    size_t member = 0;
    for (size_t i = 0; i < branches.size(); ++i) {
      const auto node = static_cast<int32_t>(trees_.leaves + i);
      if (branches[i].mode == Mode::Member)
        set_member(node, branches[i], members[member++], i);
      else
        set(node, branches[i]);
    }
  }
  /// Finds the depth and every tree's target. name: of a branch, for errors. complete: every branch belongs
  /// to a tree.
  Status finish(const std::function<std::string(size_t)>& name, bool complete);

 private:
  int32_t add(int64_t feature, double threshold, int32_t yes, int32_t no) {
    trees_.nodes.push_back({static_cast<int32_t>(feature), yes, no, 0});
    trees_.threshold.push_back(threshold);
    return static_cast<int32_t>(trees_.size() - 1);
  }
  void set(int32_t node, const Branch& branch);
  void set_member(int32_t node, const Branch& branch, std::span<const double> members, size_t origin);

  Trees& trees_;
  std::vector<size_t> origin_;  ///< for each node after the leaves: its branch
};

// A comparison other than the three of the tables is replaced by its negation, with yes and no swapped. NaN
// makes both false, so `missing` is inverted; "not equal" is true for NaN, as "equal" is false.
void Planter::set(int32_t node, const Branch& branch) {
  const auto at = static_cast<size_t>(node);
  Branch b = branch;
  const bool greater = b.mode == Mode::GreaterOrEqual || b.mode == Mode::Greater;
  if (greater && std::isnan(b.threshold)) {
    b.mode = Mode::Less;  // false as well
  } else if (greater) {
    b.mode = b.mode == Mode::GreaterOrEqual ? Mode::Less : Mode::LessOrEqual;
    b.missing = !b.missing;
    std::swap(b.yes, b.no);
  } else if (b.mode == Mode::NotEqual) {
    b.mode = Mode::Equal;
    b.missing = false;
    std::swap(b.yes, b.no);
  }
  const int less = b.mode != Mode::Equal ? 1 : 0, equal = b.mode != Mode::Less ? 2 : 0;
  trees_.nodes[at] = {static_cast<int32_t>(b.feature), b.yes, b.no, less | equal | (b.missing ? 4 : 0)};
  trees_.threshold[at] = b.threshold;
}

// Membership in a sorted list: binary search down to one member.
void Planter::set_member(int32_t node, const Branch& branch, std::span<const double> members, size_t origin) {
  Branch b = branch;
  if (members.size() < 2) {
    b.mode = members.empty() ? Mode::Less : Mode::Equal;
    b.threshold = members.empty() ? std::numeric_limits<double>::quiet_NaN() : members[0];
    return set(node, b);
  }
  const size_t half = members.size() / 2;
  b.mode = Mode::LessOrEqual;
  b.threshold = members[half - 1];
  b.yes = add(0, 0, 0, 0);
  b.no = add(0, 0, 0, 0);
  origin_.insert(origin_.end(), 2, origin);
  set(node, b);
  set_member(b.yes, branch, members.first(half), origin);
  set_member(b.no, branch, members.subspan(half), origin);
}

int64_t merged_target(int64_t a, int64_t b) {
  constexpr int64_t kNone = -2, kSeveral = -1;
  if (a == kNone || a == b) return b;
  return b == kNone ? a : kSeveral;
}

Status Planter::finish(const std::function<std::string(size_t)>& name, bool complete) {
  constexpr int kNew = -1, kOpen = -2;
  std::vector<int> height(trees_.size(), kNew);
  std::vector<int64_t> target(trees_.size(), -2);
  for (size_t i = 0; i < trees_.leaves; ++i) height[i] = 0;
  std::vector<uint8_t> weighted(trees_.leaves);
  for (const Trees::Weight& weight : trees_.weights) {
    const auto leaf = static_cast<size_t>(weight.leaf);
    target[leaf] = weighted[leaf] != 0 ? -1 : weight.target;  // two weights of a leaf need a table
    weighted[leaf] = 1;
  }
  std::vector<size_t> path;
  for (int32_t root : trees_.roots) {
    path.assign(1, static_cast<size_t>(root));
    while (!path.empty()) {
      const size_t node = path.back();
      const size_t children[] = {static_cast<size_t>(trees_.nodes[node].yes),
                                 static_cast<size_t>(trees_.nodes[node].no)};
      if (height[node] >= 0) {
        path.pop_back();
      } else if (height[node] == kNew) {
        height[node] = kOpen;
        for (size_t child : children) {
          if (height[child] == kOpen)
            return invalid_model(name(origin_[child - trees_.leaves]), " leads back to itself");
          if (height[child] == kNew) path.push_back(child);
        }
      } else {
        height[node] = 1 + std::max(height[children[0]], height[children[1]]);
        target[node] = merged_target(target[children[0]], target[children[1]]);
        if (height[node] > kMaxTreeDepth)
          return cannot("a tree has more than ", kMaxTreeDepth, " levels; limit its depth in training");
        path.pop_back();
      }
    }
    trees_.depth = std::max(trees_.depth, height[static_cast<size_t>(root)]);
    trees_.target.push_back(std::max<int64_t>(target[static_cast<size_t>(root)], -2));
  }
  const auto lost = std::find(height.begin(), height.end(), kNew);
  if (complete && lost != height.end())
    return invalid_model(name(origin_[static_cast<size_t>(lost - height.begin()) - trees_.leaves]),
                         " is reached from no root");
  for (int64_t& of_tree : trees_.target)
    if (of_tree == -2) of_tree = 0;  // no weights at all
  return {};
}

Status check_features(NodeContext& c, std::span<const Branch> branches) {
  const int64_t features = c.rank() > 0 ? c.extent(0, c.rank() - 1) : -1;
  for (const Branch& branch : branches) {
    if (branch.mode == Mode::Leaf) continue;
    if (branch.feature < 0 || branch.feature > std::numeric_limits<int32_t>::max() ||
        (features >= 0 && branch.feature >= features))
      return invalid_model("nodes_featureids: ", branch.feature, " is no feature of the input, which has ",
                           features < 0 ? std::string("a dynamic number of them") : text(features));
  }
  return {};
}

Result<Mode> mode_of(const std::string& name) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (!name.empty() && kNames[i] == name) return static_cast<Mode>(i);
  return invalid_model(
      "nodes_modes: expected BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, "
      "BRANCH_NEQ or LEAF, found ",
      name);
}

// --- nodes with ids

/// Positions of nodes in the lists, by tree and id.
class NodeIds {
 public:
  Status read(std::span<const int64_t> trees, std::span<const int64_t> ids) {
    for (size_t i = 0; i < trees.size(); ++i) sorted_.push_back({trees[i], ids[i], i});
    std::sort(sorted_.begin(), sorted_.end());
    for (size_t i = 1; i < sorted_.size(); ++i)
      if (sorted_[i].tree == sorted_[i - 1].tree && sorted_[i].id == sorted_[i - 1].id)
        return invalid_model("node ", sorted_[i].id, " of tree ", sorted_[i].tree, " is there twice");
    return {};
  }
  std::optional<size_t> find(int64_t tree, int64_t id) const {
    const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), Entry{tree, id, 0});
    if (found == sorted_.end() || found->tree != tree || found->id != id) return std::nullopt;
    return found->position;
  }

 private:
  struct Entry {
    int64_t tree, id;
    size_t position;
    bool operator<(const Entry& other) const {
      return std::tie(tree, id, position) < std::tie(other.tree, other.id, other.position);
    }
  };
  std::vector<Entry> sorted_;
};

struct IdAttributes {
  std::vector<int64_t> trees, ids, yes, no;
  std::vector<Branch> branches;
};

Result<IdAttributes> read_nodes(NodeContext& c, bool& wide) {
  IdAttributes all;
  c.ignore({"nodes_hitrates", "nodes_hitrates_as_tensor"});
  all.trees = c.integers("nodes_treeids");
  all.ids = c.integers("nodes_nodeids");
  all.yes = c.integers("nodes_truenodeids");
  all.no = c.integers("nodes_falsenodeids");
  const auto features = c.integers("nodes_featureids");
  const auto missing = c.integers("nodes_missing_value_tracks_true");
  const auto modes = c.texts("nodes_modes");
  RT_ASSIGN(const auto values, numbers_of(c, "nodes_values", "nodes_values_as_tensor", wide));
  const size_t count = all.trees.size();
  if (count == 0) return invalid_model("nodes_treeids: expected the nodes of at least one tree, found none");
  if (count > std::numeric_limits<int32_t>::max() / 4)
    return cannot("an ensemble of ", count, " nodes; train smaller trees");
  RT_TRY(expect_count("nodes_nodeids", all.ids.size(), count));
  RT_TRY(expect_count("nodes_truenodeids", all.yes.size(), count));
  RT_TRY(expect_count("nodes_falsenodeids", all.no.size(), count));
  RT_TRY(expect_count("nodes_featureids", features.size(), count));
  RT_TRY(expect_count("nodes_modes", modes.size(), count));
  RT_TRY(expect_count("nodes_values", values.size(), count));
  if (!missing.empty()) RT_TRY(expect_count("nodes_missing_value_tracks_true", missing.size(), count));
  for (size_t i = 0; i < count; ++i) {
    Branch branch{
        .feature = features[i], .threshold = values[i], .missing = !missing.empty() && missing[i] == 1};
    RT_ASSIGN(branch.mode, mode_of(modes[i]));
    all.branches.push_back(branch);
  }
  return all;
}

std::string name_of_node(const IdAttributes& nodes, size_t i) {
  return text("node ", nodes.ids[i], " of tree ", nodes.trees[i]);
}

/// The nodes without a parent: one for each tree.
Status find_roots(const IdAttributes& nodes, const std::vector<uint8_t>& has_parent,
                  std::span<const int32_t> numbers, Trees& trees) {
  std::vector<std::pair<int64_t, size_t>> roots, first;
  for (size_t i = 0; i < nodes.trees.size(); ++i) {
    first.emplace_back(nodes.trees[i], i);
    if (has_parent[i] == 0) roots.emplace_back(nodes.trees[i], i);
  }
  const auto by_tree = [](const auto& a, const auto& b) { return a.first < b.first; };
  const auto same_tree = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::stable_sort(first.begin(), first.end(), by_tree);
  first.erase(std::unique(first.begin(), first.end(), same_tree), first.end());
  std::stable_sort(roots.begin(), roots.end(), by_tree);
  for (size_t i = 1; i < roots.size(); ++i)
    if (roots[i].first == roots[i - 1].first)
      return invalid_model(
          "expected one root for each tree, found two: ", name_of_node(nodes, roots[i - 1].second), ", ",
          name_of_node(nodes, roots[i].second));
  for (size_t i = 0; i < first.size(); ++i)
    if (i >= roots.size() || roots[i].first != first[i].first)
      return invalid_model("tree ", first[i].first, " has no root: its nodes lead to each other in a cycle");
  for (const auto& root : roots) trees.roots.push_back(numbers[root.second]);
  return {};
}

Status read_weights(NodeContext& c, const std::string& prefix, const NodeIds& ids,
                    std::span<const int32_t> numbers, int64_t targets, Trees& trees) {
  const auto of_tree = c.integers(prefix + "_treeids");
  const auto of_node = c.integers(prefix + "_nodeids");
  const auto target = c.integers(prefix + "_ids");
  RT_ASSIGN(const auto values, numbers_of(c, prefix + "_weights", prefix + "_weights_as_tensor", trees.wide));
  RT_TRY(expect_count(prefix + "_nodeids", of_node.size(), of_tree.size()));
  RT_TRY(expect_count(prefix + "_ids", target.size(), of_tree.size()));
  RT_TRY(expect_count(prefix + "_weights", values.size(), of_tree.size()));
  for (size_t i = 0; i < of_tree.size(); ++i) {
    RT_TRY(expect_index(prefix + "_ids", target[i], static_cast<size_t>(targets)));
    const auto node = ids.find(of_tree[i], of_node[i]);
    if (!node)
      return invalid_model(prefix, "_nodeids: there is no node ", of_node[i], " of tree ", of_tree[i]);
    // A weight of a branch is never reached.
    if (static_cast<size_t>(numbers[*node]) < trees.leaves)
      trees.weights.push_back({.leaf = numbers[*node], .target = target[i], .value = values[i]});
  }
  return {};
}

}  // namespace

Result<Trees> trees_by_id(NodeContext& c, std::string_view prefix, int64_t targets) {
  Trees trees;
  RT_ASSIGN(IdAttributes nodes, read_nodes(c, trees.wide));
  RT_TRY(check_features(c, nodes.branches));
  NodeIds ids;
  RT_TRY(ids.read(nodes.trees, nodes.ids));
  const size_t count = nodes.branches.size();
  const auto is_leaf = [](const Branch& branch) { return branch.mode == Mode::Leaf; };
  trees.leaves = static_cast<size_t>(std::count_if(nodes.branches.begin(), nodes.branches.end(), is_leaf));
  std::vector<int32_t> numbers(count);  // in Trees
  int32_t leaf = 0, branch = static_cast<int32_t>(trees.leaves);
  for (size_t i = 0; i < count; ++i) numbers[i] = is_leaf(nodes.branches[i]) ? leaf++ : branch++;
  std::vector<uint8_t> has_parent(count);
  std::vector<Branch> branches;
  std::vector<size_t> positions;
  for (size_t i = 0; i < count; ++i) {
    if (is_leaf(nodes.branches[i])) continue;
    Branch& out = branches.emplace_back(nodes.branches[i]);
    positions.push_back(i);
    for (const bool yes : {true, false}) {
      const int64_t id = yes ? nodes.yes[i] : nodes.no[i];
      const auto found = ids.find(nodes.trees[i], id);
      if (!found) return invalid_model(name_of_node(nodes, i), " leads to node ", id, ", which is not there");
      has_parent[*found] = 1;
      (yes ? out.yes : out.no) = numbers[*found];
    }
  }
  RT_TRY(find_roots(nodes, has_parent, numbers, trees));
  RT_TRY(read_weights(c, std::string(prefix), ids, numbers, targets, trees));
  Planter planter(trees);
  planter.leaves(trees.leaves);
  planter.branches(branches, {});
  RT_TRY(planter.finish([&](size_t i) { return name_of_node(nodes, positions[i]); }, true));
  return trees;
}

// --- nodes with positions

namespace {

/// The member lists, one for each BRANCH_MEMBER node, sorted; the file separates them by NaNs.
Result<std::vector<std::vector<double>>> member_lists(std::span<const double> numbers, size_t count) {
  std::vector<std::vector<double>> lists(numbers.empty() ? 0 : 1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isnan(numbers[i]))
      lists.back().push_back(numbers[i]);
    else if (i + 1 < numbers.size())
      lists.emplace_back();
  }
  if (lists.size() != count)
    return invalid_model("membership_values: expected ", count,
                         " lists between NaNs, one for each node of BRANCH_MEMBER, found ", lists.size());
  for (auto& list : lists) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return lists;
}

Result<std::vector<Branch>> read_branches(NodeContext& c, size_t leaves, bool& wide) {
  const auto features = c.integers("nodes_featureids");
  const auto yes = c.integers("nodes_truenodeids"), no = c.integers("nodes_falsenodeids");
  const auto yes_leaf = c.integers("nodes_trueleafs"), no_leaf = c.integers("nodes_falseleafs");
  const auto missing = c.integers("nodes_missing_value_tracks_true");
  bool unused = false;
  RT_ASSIGN(const auto modes, numbers_of(c, "", "nodes_modes", unused));
  RT_ASSIGN(const auto splits, numbers_of(c, "", "nodes_splits", wide));
  const size_t count = features.size();
  if (count == 0) return invalid_model("nodes_featureids: expected at least one node, found none");
  if (count > std::numeric_limits<int32_t>::max() / 8)
    return cannot("an ensemble of ", count, " nodes; train smaller trees");
  RT_TRY(expect_count("nodes_truenodeids", yes.size(), count));
  RT_TRY(expect_count("nodes_falsenodeids", no.size(), count));
  RT_TRY(expect_count("nodes_trueleafs", yes_leaf.size(), count));
  RT_TRY(expect_count("nodes_falseleafs", no_leaf.size(), count));
  RT_TRY(expect_count("nodes_modes", modes.size(), count));
  RT_TRY(expect_count("nodes_splits", splits.size(), count));
  if (!missing.empty()) RT_TRY(expect_count("nodes_missing_value_tracks_true", missing.size(), count));
  const auto child = [&](int64_t position, bool leaf) {
    return static_cast<int32_t>(position + (leaf ? 0 : static_cast<int64_t>(leaves)));
  };
  std::vector<Branch> branches;
  for (size_t i = 0; i < count; ++i) {
    RT_TRY(expect_index("nodes_truenodeids", yes[i], yes_leaf[i] != 0 ? leaves : count));
    RT_TRY(expect_index("nodes_falsenodeids", no[i], no_leaf[i] != 0 ? leaves : count));
    RT_TRY(expect_index("nodes_modes", static_cast<int64_t>(modes[i]), 7));
    branches.push_back({.mode = static_cast<Mode>(static_cast<int>(modes[i])),
                        .feature = features[i],
                        .threshold = splits[i],
                        .yes = child(yes[i], yes_leaf[i] != 0),
                        .no = child(no[i], no_leaf[i] != 0),
                        .missing = !missing.empty() && missing[i] == 1});
  }
  return branches;
}

}  // namespace

Result<Trees> trees_by_position(NodeContext& c, int64_t targets) {
  Trees trees;
  c.ignore({"nodes_hitrates"});
  const auto roots = c.integers("tree_roots");
  const auto target = c.integers("leaf_targetids");
  RT_ASSIGN(const auto values, numbers_of(c, "", "leaf_weights", trees.wide));
  if (roots.empty()) return invalid_model("tree_roots: expected at least one tree, found none");
  if (target.empty() || target.size() > std::numeric_limits<int32_t>::max() / 8)
    return invalid_model("leaf_targetids: expected at least one leaf and no more than 2^28, found ",
                         target.size());
  RT_TRY(expect_count("leaf_weights", values.size(), target.size()));
  RT_ASSIGN(const auto branches, read_branches(c, target.size(), trees.wide));
  RT_TRY(check_features(c, branches));
  bool wide = false;
  RT_ASSIGN(const auto members, numbers_of(c, "", "membership_values", wide));
  const auto is_member = [](const Branch& branch) { return branch.mode == Mode::Member; };
  RT_ASSIGN(
      const auto lists,
      member_lists(members, static_cast<size_t>(std::count_if(branches.begin(), branches.end(), is_member))));
  for (int64_t root : roots) {
    RT_TRY(expect_index("tree_roots", root, branches.size()));
    trees.roots.push_back(static_cast<int32_t>(target.size() + static_cast<size_t>(root)));
  }
  for (size_t i = 0; i < target.size(); ++i) {
    RT_TRY(expect_index("leaf_targetids", target[i], static_cast<size_t>(targets)));
    trees.weights.push_back({.leaf = static_cast<int32_t>(i), .target = target[i], .value = values[i]});
  }
  Planter planter(trees);
  planter.leaves(target.size());
  planter.branches(branches, lists);
  RT_TRY(planter.finish([&](size_t i) { return text("node ", i); }, false));
  return trees;
}

}  // namespace librt::onnx
