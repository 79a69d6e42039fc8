// TreeLeaves: rows of features traverse decision trees, a composite of gathers and comparisons.
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

/// No time limit interrupts a traversal.
constexpr uint64_t kMostLevels = 1 << 16;

Status infer_tree_leaves(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto has = [&](size_t i, DType dtype, int rank) {
    return node.dtype(i) == dtype && node.shape(i).rank() == rank;
  };
  const DType dtype = node.dtype(2);
  const auto levels = static_cast<uint64_t>(node.as<op::TreeLeavesAttributes>().levels);
  const Shape &x = node.shape(0), &nodes = node.shape(1);
  if (has(0, dtype, 2) && has(1, DType::I32, 2) && has(2, dtype, 1) && has(3, DType::I32, 1) &&
      (dtype == DType::F32 || dtype == DType::F64) && nodes[0] == node.shape(2)[0] && nodes[1] == 4 &&
      nodes[0] != 0 && x[1] != 0 && levels <= kMostLevels)
    return add_output(outputs, DType::I32, {x[0], node.shape(3)[0]});
  return invalid_argument(
      "expected x f32 or f64 [N,F], nodes i32 [M,4], threshold [M] of x's type, roots i32 [T], F and M > 0 "
      "and at most ",
      kMostLevels, " levels, found ", node.input(0), ", ", node.input(1), ", ", node.input(2), ", ",
      node.input(3), " and ", levels);
}

/// Writes the traversal, one level after the other.
class Traversal {
 public:
  Traversal(Emitter& e, std::span<const ValueId> inputs)
      : e_(e), x_(inputs[0]), threshold_(inputs[2]), roots_(inputs[3]) {
    for (int64_t i = 0; i < 4; ++i) columns_.push_back(column(inputs[1], i));
    for (int32_t bit = 1; bit <= 4; bit *= 2) {
      const ValueId flag = e.scalar(bit, DType::I32);
      const ValueId set = e.emit(op::BitwiseAndAttributes{}, {columns_[3], flag});
      flags_.push_back(e.emit(op::EqualAttributes{}, {set, flag}));
    }
  }
  ValueId leaves(int64_t levels) {
    const ValueId shape = e_.emit(op::ConcatAttributes{}, {extent(e_, x_, 0), extent(e_, roots_, 0)});
    ValueId at = e_.emit(op::ExpandAttributes{}, {roots_, shape});
    for (; levels > 0; --levels) at = next(at);
    return of(e_.cast(positions(e_, threshold_, 0), DType::I32), at);  // negative ones count from the end
  }

 private:
  ValueId column(ValueId nodes, int64_t i) {
    op::SliceAttributes attributes;
    attributes.axes = {1};
    attributes.steps = {1};
    const int64_t begin[] = {i}, end[] = {i + 1}, flat[] = {-1};
    return e_.reshape(e_.emit(std::move(attributes), {nodes, e_.ints(begin), e_.ints(end)}), e_.ints(flat));
  }
  ValueId of(ValueId table, ValueId at) { return e_.emit(op::GatherAttributes{}, {table, at}); }
  ValueId where_set(size_t flag, ValueId at, ValueId condition) {
    return e_.emit(op::AndAttributes{}, {condition, of(flags_[flag], at)});
  }
  ValueId next(ValueId at) {
    op::GatherElementsAttributes of_row;
    of_row.axis = 1;
    const ValueId x = e_.emit(of_row, {x_, of(columns_[0], at)}), threshold = of(threshold_, at);
    const ValueId less = where_set(0, at, e_.emit(op::LessAttributes{}, {x, threshold}));
    const ValueId equal = where_set(1, at, e_.emit(op::EqualAttributes{}, {x, threshold}));
    const ValueId number = e_.emit(op::EqualAttributes{}, {x, x});
    const ValueId missing = where_set(2, at, e_.emit(op::NotAttributes{}, {number}));
    const ValueId holds = e_.emit(op::OrAttributes{}, {e_.emit(op::OrAttributes{}, {less, equal}), missing});
    return e_.emit(op::WhereAttributes{}, {holds, of(columns_[1], at), of(columns_[2], at)});
  }

  Emitter& e_;
  const ValueId x_, threshold_, roots_;
  std::vector<ValueId> columns_;  ///< of the nodes: feature, child, other child, comparison
  std::vector<ValueId> flags_;    ///< of the comparison: less, equal, missing
};

std::vector<ValueId> body_of_tree_leaves(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  return {Traversal(e, inputs).leaves(node.as<op::TreeLeavesAttributes>().levels)};
}

}  // namespace

RT_PAGE(TreeLeaves) = {.kind = OpKind::TreeLeaves,
                       .inputs = {4, 4},
                       .infer = infer_tree_leaves,
                       .composite = true,
                       .arithmetic = Arithmetic::PrecisionSensitive,
                       .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(TreeLeaves) = {.no_gradient = "integer output", .body = body_of_tree_leaves};

}  // namespace librt::ops
