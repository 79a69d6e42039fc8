// NonZero and Unique: their output extents are data-dependent.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/core/order.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

// --- NonZero
// --------------------------------------------------------------------------------------------------

Status infer_non_zero(const NodeView& node, std::vector<TensorInfo>& outputs) {
  return add_output(outputs, {DType::I64, {node.shape(0).rank(), kUnknownExtent}});
}

Status run_non_zero(const NodeView&, std::span<const ConstTensorView> inputs, ResultMaker& results) {
  const ConstTensorView& x = inputs[0];
  const int64_t elements = x.info.elements();
  const int rank = x.info.shape.rank();
  const auto non_zero = [&](int64_t i) { return load(x, i) != 0; };
  int64_t count = 0;
  for (int64_t i = 0; i < elements; ++i) count += non_zero(i);
  RT_ASSIGN(const TensorView y, results.make(0, {DType::I64, {rank, count}}));
  auto* to = y.as<int64_t>();
  std::array<int64_t, kMaxRank> at{};
  for (int64_t i = 0, column = 0; column < count; ++i) {
    // Written in any case, and kept if the element is not 0: no branch to mispredict.
    for (int axis = 0; axis < rank; ++axis) to[axis * count + column] = at[static_cast<size_t>(axis)];
    column += non_zero(i);
    for (int axis = rank; axis-- > 0;) {
      int64_t& coordinate = at[static_cast<size_t>(axis)];
      if (++coordinate < x.info.shape[axis]) break;
      coordinate = 0;
    }
  }
  return {};
}

// --- Unique
// ---------------------------------------------------------------------------------------------------

/// The slices of x along an axis (its elements, when it is flattened), compared lexicographically. NaN equals
/// NaN and comes last.
class Slices {
 public:
  Slices(const ConstTensorView& x, const AxisView& view)
      : view_(view), unsigned_(x.info.dtype == DType::U64) {
    if (is_float(x.info.dtype))
      reals_ = load_all<double>(x);
    else
      integers_ = load_all<uint64_t>(x);
  }

  /// Negative, 0 or positive, as slice a comes before b, equals it, or comes after.
  int compare(size_t a, size_t b) const {
    for (int64_t outer = 0; outer < view_.outer; ++outer)
      for (int64_t inner = 0; inner < view_.inner; ++inner) {
        const auto at = [&](size_t slice) {
          return static_cast<size_t>((outer * view_.extent + static_cast<int64_t>(slice)) * view_.inner +
                                     inner);
        };
        if (const int order = compare_elements(at(a), at(b)); order != 0) return order;
      }
    return 0;
  }

 private:
  template <class T>
  static int order(T a, T b) {
    return a < b ? -1 : b < a ? 1 : 0;
  }
  int compare_elements(size_t a, size_t b) const {
    if (reals_.empty())
      return unsigned_ ? order(integers_[a], integers_[b])
                       : order(static_cast<int64_t>(integers_[a]), static_cast<int64_t>(integers_[b]));
    const bool a_nan = std::isnan(reals_[a]), b_nan = std::isnan(reals_[b]);
    return a_nan || b_nan ? int{a_nan} - int{b_nan} : order(reals_[a], reals_[b]);
  }

  AxisView view_;
  bool unsigned_;
  std::vector<double> reals_;
  std::vector<uint64_t> integers_;
};

struct Distinct {
  std::vector<int64_t> first;    ///< for each distinct slice, where it first occurs
  std::vector<int64_t> inverse;  ///< for each slice, which distinct one it is
  std::vector<int64_t> counts;
};

Distinct find_distinct(const Slices& slices, int64_t extent, bool sorted) {
  const std::vector<size_t> order =
      sorted_order(static_cast<size_t>(extent), [&](size_t a, size_t b) { return slices.compare(a, b) < 0; });
  Distinct found;
  found.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
      found.first.push_back(static_cast<int64_t>(order[i]));
      found.counts.push_back(0);
    }
    ++found.counts.back();
    found.inverse[order[i]] = static_cast<int64_t>(found.first.size()) - 1;
  }
  if (sorted) return found;
  // In the order of first occurrence.
  const std::vector<size_t> rank =
      sorted_order(found.first.size(), [&](size_t a, size_t b) { return found.first[a] < found.first[b]; });
  Distinct ordered{.first = {}, .inverse = std::vector<int64_t>(order.size()), .counts = {}};
  std::vector<int64_t> place(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) {
    place[rank[i]] = static_cast<int64_t>(i);
    ordered.first.push_back(found.first[rank[i]]);
    ordered.counts.push_back(found.counts[rank[i]]);
  }
  for (size_t i = 0; i < order.size(); ++i) ordered.inverse[i] = place[static_cast<size_t>(found.inverse[i])];
  return ordered;
}

Status infer_unique(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::UniqueAttributes>();
  TensorInfo values{node.dtype(0), {kUnknownExtent}};
  int64_t extent = node.input(0).elements();
  if (!attributes.flatten) {
    RT_ASSIGN(const int axis, resolve_axis(attributes.axis, node.shape(0).rank()));
    values.shape = node.shape(0);
    extent = values.shape[axis];
    values.shape[axis] = kUnknownExtent;
  }
  RT_TRY(add_output(outputs, values));
  RT_TRY(add_output(outputs, {DType::I64, {kUnknownExtent}}));
  RT_TRY(add_output(outputs, {DType::I64, {extent}}));
  return add_output(outputs, {DType::I64, {kUnknownExtent}});
}

Status run_unique(const NodeView& node, std::span<const ConstTensorView> inputs, ResultMaker& results) {
  const auto& attributes = node.as<op::UniqueAttributes>();
  const ConstTensorView& x = inputs[0];
  AxisView view{.extent = x.info.elements()};
  TensorInfo values{x.info.dtype, {view.extent}};
  int axis = 0;
  if (!attributes.flatten) {
    RT_ASSIGN(axis, resolve_axis(attributes.axis, x.info.shape.rank()));
    view = along(x.info.shape, axis);
    values.shape = x.info.shape;
  }
  // The elements in a common type; orders, ranks and lists of slices.
  RT_TRY(
      results.hold(8.0 * static_cast<double>(x.info.elements()) + 80.0 * static_cast<double>(view.extent)));
  const Distinct found = find_distinct(Slices(x, view), view.extent, attributes.sorted);
  values.shape[axis] = static_cast<int64_t>(found.first.size());
  RT_ASSIGN(const TensorView y, results.make(0, values));
  const size_t block = static_cast<size_t>(view.inner) * size_of(x.info.dtype);
  auto* to = y.as<std::byte>();
  for (int64_t outer = 0; outer < view.outer; ++outer)
    for (const int64_t first : found.first) {
      if (block == 0) continue;
      std::memcpy(to, x.as<std::byte>() + static_cast<size_t>(outer * view.extent + first) * block, block);
      to += block;
    }
  const std::vector<int64_t>* const lists[] = {&found.first, &found.inverse, &found.counts};
  for (size_t i = 0; i < std::size(lists); ++i) {
    const auto count = static_cast<int64_t>(lists[i]->size());
    RT_ASSIGN(const TensorView out, results.make(i + 1, {DType::I64, {count}}));
    std::copy(lists[i]->begin(), lists[i]->end(), out.as<int64_t>());
  }
  return {};
}

}  // namespace

RT_PAGE(NonZero) = {.kind = OpKind::NonZero,
                    .inputs = {1, 1},
                    .infer = infer_non_zero,
                    .run = run_non_zero,
                    .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(NonZero) = {.no_gradient = "integer output", .domain = {-1, 1}};

RT_PAGE(Unique) = {
    .kind = OpKind::Unique, .inputs = {1, 1}, .outputs = {4, 4}, .infer = infer_unique, .run = run_unique};
RT_NO_GRADIENT(Unique, "which elements are kept is decided by comparing them");

}  // namespace librt::ops
