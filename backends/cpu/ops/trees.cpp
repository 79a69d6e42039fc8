// Decision trees: rows, or trees of one row, step from node to node without branches, sixteen at a time.
//
// One step waits for three loads after each other (the node, the feature, the next node), some 20 cycles from
// L1. Those of kLanes rows do not wait for each other, so that what counts is the number of instructions:
// eleven, or 1.1 ns on Emerald Rapids at 2.1 GHz, where gathers of AVX-512 take 2 and branches that are
// wrong half of the time 5.
#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/device/device.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/support/packing_kernel.h"
#include "runtime/geometry/indexing.h"

namespace librt::cpu {
namespace {

constexpr int64_t kLanes = 16;
/// Levels between two looks at whether all lanes are at leaves.
constexpr int64_t kLevelsAtOnce = 4;

/// A node. Positions of nodes are in bytes, which saves an instruction in each step.
template <class T>
struct Split {
  T threshold;
  uint32_t feature;  ///< and, in the highest bits, the comparison
  uint32_t next[2];  ///< where the comparison holds, and where not
};
constexpr int kFeatureBits = 29;
constexpr uint32_t kFeatureMask = (1u << kFeatureBits) - 1;
constexpr int64_t kMostNodes = std::numeric_limits<uint32_t>::max() / sizeof(Split<double>);

/// What all nodes have in common, so that a step is one comparison.
enum class Comparison : int32_t { LessOrEqual, Less, Any };

struct Header {
  Comparison numbers;  ///< of rows without NaN
  Comparison all;
};

template <class T, Comparison kComparison>
bool holds(const Split<T>& split, T x) {
  if constexpr (kComparison == Comparison::LessOrEqual) return x <= split.threshold;
  if constexpr (kComparison == Comparison::Less) return x < split.threshold;
  const uint32_t relation = static_cast<uint32_t>(x < split.threshold) |
                            static_cast<uint32_t>(x == split.threshold) << 1 |
                            static_cast<uint32_t>(x != x) << 2;
  return (relation & split.feature >> kFeatureBits) != 0;
}

using Places = std::array<uint32_t, kLanes>;

/// One step of all lanes, of which lane k has its features at x + k * stride. kWatch: whether any moved.
template <class T, Comparison kComparison, bool kWatch>
bool step(const std::byte* splits, const T* x, int64_t stride, Places& places) {
  uint32_t moved = 0;
#pragma GCC unroll 16
  for (size_t k = 0; k < kLanes; ++k) {
    const uint32_t at = places[k];
    const auto& split = *reinterpret_cast<const Split<T>*>(splits + at);
    const T value = x[static_cast<int64_t>(k) * stride + (split.feature & kFeatureMask)];
    const uint32_t next = split.next[!holds<T, kComparison>(split, value)];
    if (kWatch) moved |= next ^ at;
    places[k] = next;
  }
  return moved != 0;
}

template <class T, Comparison kComparison>
void walk(const std::byte* splits, const T* x, int64_t stride, int64_t levels, Places& places) {
  while (levels > 0) {
    const int64_t steps = std::min(levels, kLevelsAtOnce);
    for (int64_t i = 1; i < steps; ++i) step<T, kComparison, false>(splits, x, stride, places);
    if (!step<T, kComparison, true>(splits, x, stride, places)) return;
    levels -= steps;
  }
}

/// Beginnings of groups of kLanes that cover the range, which is no shorter; the last may begin inside the
/// one before it.
template <class Body>
void for_groups(const Range& range, const Body& body) {
  for (int64_t i = range.begin; i < range.end; i += kLanes) body(std::min(i, range.end - kLanes));
}

template <class T>
struct Forest {
  int64_t rows, features, nodes, trees, levels;

  size_t header_bytes() const {
    return (sizeof(Header) + static_cast<size_t>(trees) * sizeof(uint32_t) + 63) / 64 * 64;
  }
  size_t packed_bytes() const { return header_bytes() + static_cast<size_t>(nodes) * sizeof(Split<T>); }

  void pack(const int32_t* node, const T* threshold, const int32_t* root, std::byte* to) const noexcept;
  void run(const Call& call, const std::byte* packed) const noexcept;

 private:
  struct Block {
    Range rows, trees;
  };
  uint32_t place(int32_t node) const {
    return static_cast<uint32_t>(selected_position(node, nodes)) * uint32_t{sizeof(Split<T>)};
  }
  void run_block(const Call& call, const std::byte* packed, const Block& block) const noexcept;
  bool has_nan(const T* x, const Range& range) const noexcept;
};

template <class T>
void Forest<T>::pack(const int32_t* node, const T* threshold, const int32_t* root,
                     std::byte* to) const noexcept {
  auto* const splits = reinterpret_cast<Split<T>*>(to + header_bytes());
  uint32_t any = 0, common = 7;
  for (int64_t i = 0; i < nodes; ++i, node += 4) {
    const auto comparison = static_cast<uint32_t>(node[3]) & 7u;
    splits[i] = {threshold[i],
                 static_cast<uint32_t>(selected_position(node[0], features)) | comparison << kFeatureBits,
                 {place(node[1]), place(node[2])}};
    if (splits[i].next[0] == splits[i].next[1]) continue;
    any |= comparison;
    common &= comparison;
  }
  const auto of = [&](uint32_t bits) {
    if ((any & bits) != (common & bits)) return Comparison::Any;
    return (any & bits) == 3   ? Comparison::LessOrEqual
           : (any & bits) == 1 ? Comparison::Less
                               : Comparison::Any;
  };
  auto* const header = reinterpret_cast<Header*>(to);
  *header = {of(3), of(7)};
  auto* const roots = reinterpret_cast<uint32_t*>(header + 1);
  for (int64_t i = 0; i < trees; ++i) roots[i] = place(root[i]);
}

template <class T>
bool Forest<T>::has_nan(const T* x, const Range& range) const noexcept {
  bool found = false;
  for (int64_t i = range.begin * features; i < range.end * features; ++i) found |= x[i] != x[i];
  return found;
}

template <class T>
void Forest<T>::run_block(const Call& call, const std::byte* packed, const Block& block) const noexcept {
  const auto* const header = reinterpret_cast<const Header*>(packed);
  const auto* const roots = reinterpret_cast<const uint32_t*>(header + 1);
  const std::byte* const splits = packed + header_bytes();
  const T* const x = call.in<T>(0);
  int32_t* const y = call.out<int32_t>();
  Comparison comparison = header->all;
  const bool worth_a_look = features <= levels * (block.trees.end - block.trees.begin);
  if (header->numbers != header->all && worth_a_look && !has_nan(x, block.rows)) comparison = header->numbers;
  // From places, which hold roots, to leaves at to + k * to_stride.
  Places places;
  const auto run = [&](const T* from, int64_t stride, int32_t* to, int64_t to_stride, size_t count) {
    switch (comparison) {
      case Comparison::LessOrEqual:
        walk<T, Comparison::LessOrEqual>(splits, from, stride, levels, places);
        break;
      case Comparison::Less: walk<T, Comparison::Less>(splits, from, stride, levels, places); break;
      case Comparison::Any: walk<T, Comparison::Any>(splits, from, stride, levels, places); break;
    }
    for (size_t k = 0; k < count; ++k)
      to[static_cast<int64_t>(k) * to_stride] = static_cast<int32_t>(places[k] / sizeof(Split<T>));
  };
  if (rows >= kLanes) {
    for (int64_t tree = block.trees.begin; tree < block.trees.end; ++tree)
      for_groups(block.rows, [&](int64_t row) {
        places.fill(roots[tree]);
        run(x + row * features, features, y + row * trees + tree, trees, kLanes);
      });
    return;
  }
  for (int64_t row = block.rows.begin; row < block.rows.end; ++row) {
    const auto of_trees = [&](int64_t tree, size_t count) {
      places.fill(roots[tree]);
      std::copy_n(roots + tree, count, places.begin());
      run(x + row * features, 0, y + row * trees + tree, 1, count);
    };
    if (trees < kLanes)
      of_trees(0, static_cast<size_t>(trees));
    else
      for_groups(block.trees, [&](int64_t tree) { of_trees(tree, kLanes); });
  }
}

template <class T>
void Forest<T>::run(const Call& call, const std::byte* packed) const noexcept {
  // A block's features and leaves stay in L1 and L2 while its trees, a few at a time, are read by all rows.
  // Blocks have at least kLanes rows and trees, unless there are fewer.
  constexpr int64_t kBlockFeatures = 8192, kBlockTrees = 32, kMostRows = 128;
  const int64_t block_rows = std::clamp(kBlockFeatures / features / kLanes * kLanes, kLanes, kMostRows);
  const int64_t row_blocks = std::max<int64_t>(rows / block_rows, 1);
  const int64_t tree_blocks = std::max<int64_t>(trees / kBlockTrees, 1);
  constexpr int64_t kUsualLevels = 16, kOperations = 4;
  const int64_t work = rows / row_blocks * trees / tree_blocks * std::min(levels, kUsualLevels) * kOperations;
  parallel_for(row_blocks * tree_blocks, work, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i)
      run_block(call, packed,
                {part_of(rows, i % row_blocks, row_blocks, kLanes),
                 part_of(trees, i / row_blocks, tree_blocks, kLanes)});
  });
}

Status supports(const CpuDevice&, const NodeView& node) {
  if (node.shape(0)[1] <= kFeatureMask && node.shape(2)[0] <= kMostNodes) return {};
  return unsupported(node.shape(0)[1], " features and ", node.shape(2)[0], " nodes, at most ", kFeatureMask,
                     " and ", kMostNodes, " are supported");
}

template <class T>
Result<KernelPtr> create_of(CpuDevice& device, const NodeView& node) {
  const Forest<T> forest{.rows = node.shape(0)[0],
                         .features = node.shape(0)[1],
                         .nodes = node.shape(2)[0],
                         .trees = node.shape(3)[0],
                         .levels = node.as<op::TreeLeavesAttributes>().levels};
  const auto* const nodes = static_cast<const int32_t*>(node.inputs[1].value);
  const auto* const threshold = static_cast<const T*>(node.inputs[2].value);
  const auto* const roots = static_cast<const int32_t*>(node.inputs[3].value);
  const bool known = nodes != nullptr && threshold != nullptr && roots != nullptr;
  constexpr uint64_t kKey = 0x7472656500000000;  // and the features that indices are clamped to
  Requirements requirements;
  const PackedOperand operand(known ? nodes : nullptr, forest.packed_bytes(),
                              kKey + static_cast<uint64_t>(forest.features), 1, requirements);
  if (known) requirements.replaced_inputs |= 1u << 2 | 1u << 3;
  return make_packing_kernel(
      device,
      [=](float* to) noexcept { forest.pack(nodes, threshold, roots, reinterpret_cast<std::byte*>(to)); },
      [=](const Call& call) noexcept {
        const float* const packed = operand.panels(call, [&](float* to) noexcept {
          forest.pack(call.in<int32_t>(1), call.in<T>(2), call.in<int32_t>(3),
                      reinterpret_cast<std::byte*>(to));
        });
        forest.run(call, reinterpret_cast<const std::byte*>(packed));
      },
      requirements);
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  return node.dtype(0) == DType::F64 ? create_of<double>(device, node) : create_of<float>(device, node);
}

}  // namespace

std::span<const KernelRow> rows_trees();
std::span<const KernelRow> rows_trees() {
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::TreeLeaves, "tree_leaves", DTypeSet{DType::F32, DType::F64})};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
