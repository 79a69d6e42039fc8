// What the pages of several families share: operand checks with uniform messages, axes, broadcast iteration,
// and small pieces of gradients.
//
// Knows: shapes, dtypes, the emitter. Must not know: any operator's meaning.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/element.h"
#include "runtime/ops/page.h"

namespace librt {
/// "f32, f16": for messages.
void append(std::string& out, DTypeSet set);
}  // namespace librt

namespace librt::ops {

// --- checks for shape rules; `what` names the operand in messages ("x", "weight"). infer_node has already
// checked the number of inputs, that the first `Arity::least` are present, and that shape operands have
// values; afterwards it checks that the element counts of the outputs do not overflow.

/// An operand's name in messages: a literal, or a string that outlives the call. One pointer, because nearly
/// every shape rule passes some.
struct Label {
  Label(const char* literal) noexcept : text(literal) {}               // NOLINT: implicit on purpose
  Label(const std::string& string) noexcept : text(string.c_str()) {}  // NOLINT
  operator const char*() const noexcept { return text; }               // NOLINT
  const char* text;
};

/// Input i has one of these types.
Status expect_dtype(const NodeView& node, size_t i, Label what, DTypeSet allowed);
/// Input i has the same type as input `as`.
Status expect_same_dtype(const NodeView& node, size_t i, Label what, size_t as, Label as_what);
/// Input i has exactly this shape.
Status expect_shape(const NodeView& node, size_t i, Label what, const Shape& expected);
/// Input 0 has one of these types, and input 1 the same.
Status expect_pair(const NodeView& node, Label first, Label second, DTypeSet allowed);
/// Input i has the type of input `as` and exactly this shape.
Status expect_like(const NodeView& node, size_t i, Label what, size_t as, Label as_what,
                   const Shape& expected);
/// Input 1 has the type and the shape of input 0.
Status expect_like_first(const NodeView& node, Label what, Label first);
Status expect_rank(const NodeView& node, size_t i, Label what, int least, int most = kMaxRank);
/// Both, in one call where a rule asks for both: most of the code of shape rules is such calls.
Status expect_dtype_and_shape(const NodeView& node, size_t i, Label what, DTypeSet allowed,
                              const Shape& expected);
Status expect_dtype_and_rank(const NodeView& node, size_t i, Label what, DTypeSet allowed, int least,
                             int most = kMaxRank);
/// The entries of an i64 vector that is a shape operand: checks type, rank 1 and that the value is known.
Result<std::span<const int64_t>> shape_operand(const NodeView& node, size_t i, Label what);
/// A shape operand whose entries are the extents of a tensor.
Result<Shape> shape_value(const NodeView& node, size_t i, Label what);

/// An axis in [0, rank), or an error that gives the range.
Result<int> resolve_axis(int64_t axis, int rank);
/// Sorted axes without duplicates; all axes when the list is empty and `empty_means_all`.
Result<std::vector<int>> resolve_axes(std::span<const int64_t> axes, int rank, bool empty_means_all = true);
/// NumPy's broadcasting, or an error that shows both shapes.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);

/// One output of the shape that all inputs broadcast to.
Status add_broadcast_output(const NodeView& node, std::vector<TensorInfo>& outputs, DType dtype);
/// The same for operands a and b, both of one type among `allowed`.
Status infer_pair(const NodeView& node, std::vector<TensorInfo>& outputs, DTypeSet allowed, DType dtype);
/// One output like input 0.
Status infer_like_first(const NodeView& node, std::vector<TensorInfo>& outputs);

// --- iteration for reference implementations

/// Strides of `shape` for walking `over`, which it broadcasts to: 0 where an extent is repeated.
std::array<int64_t, kMaxRank> broadcast_strides(const Shape& shape, const Shape& over) noexcept;

/// Takes `index` to the next element of `over` in row-major order, and each offset along with it.
void next_broadcast(const Shape& over, std::span<const std::array<int64_t, kMaxRank>> strides,
                    std::array<int64_t, kMaxRank>& index, int64_t* offsets) noexcept;

/// Calls f(i, offsets) for every element i of `over` in row-major order; offsets[k] is the element of
/// shapes[k] that broadcasts to it. A function returning Status ends the walk at the first error.
template <size_t N, class F>
Status for_each_broadcast(const Shape& over, const std::array<Shape, N>& shapes, F&& f) {
  std::array<std::array<int64_t, kMaxRank>, N> strides;
  for (size_t k = 0; k < N; ++k) strides[k] = broadcast_strides(shapes[k], over);
  std::array<int64_t, N> offsets{};
  std::array<int64_t, kMaxRank> index{};
  const int64_t count = over.elements();
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_void_v<decltype(f(i, offsets))>)
      f(i, offsets);
    else
      RT_TRY(f(i, offsets));
    next_broadcast(over, strides, index, offsets.data());
  }
  return {};
}

/// A tensor seen along one axis: [outer, extent, inner]; element (o, e, i) is at (o * extent + e) * inner +
/// i.
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};
AxisView along(const Shape& shape, int axis) noexcept;

inline double load(const ConstTensorView& x, int64_t i) noexcept {
  return load_element(x.data, x.info.dtype, i);
}
inline void store(const TensorView& y, int64_t i, double value) noexcept {
  store_element(y.data, y.info.dtype, i, value);
}

// --- pieces of gradients and bodies

/// The value of a one-element constant; nullopt for anything else.
std::optional<double> constant_number(const Emitter& emit, ValueId id);
inline ValueId one_int(Emitter& emit, int64_t number) {
  return emit.ints({&number, 1});
}
/// Extent `axis` of x as an i64 vector of one entry: a constant when it is known, else a Shape node.
ValueId extent(Emitter& emit, ValueId x, size_t axis);
/// 0, 1, .. as i64 for axis `axis` of x.
ValueId positions(Emitter& emit, ValueId x, size_t axis);
/// The shape of x as a shape operand: a constant when all its extents are known, else a Shape node.
ValueId shape_value(Emitter& emit, ValueId x);
/// Extents of x as a shape operand with 1 on `axes` (sorted, in range): reinserts reduced axes by Reshape.
ValueId shape_with_ones(Emitter& emit, ValueId x, std::span<const int> axes);
/// 1 / (the product of the extents of `axes`), in x's dtype, broadcastable to x. Computed on the device where
/// an extent is symbolic.
ValueId reciprocal_count(Emitter& emit, ValueId x, std::span<const int> axes);
/// resolve_axes() for axes that were checked when the node was inferred.
std::vector<int> known_axes(std::span<const int64_t> axes, int rank);
/// Where(condition, value, 0).
ValueId keep_where(Emitter& emit, ValueId condition, ValueId value);
/// For functions that are constant almost everywhere: the gradient is zero, so none is emitted.
inline void zero_gradient(GradContext&) {}

double bytes_of(const TensorInfo& info) noexcept;
/// Bytes of the operands that are present.
double input_bytes(const NodeView& node) noexcept;
/// Flops of `per_element` for each element of output 0, and the bytes of all operands and results.
Cost elementwise_cost(const NodeView& node, double per_element);

}  // namespace librt::ops
