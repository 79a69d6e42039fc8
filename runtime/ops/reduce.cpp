// Reductions over axes, ArgMax and ArgMin. NaN wins every maximum and minimum, as in NumPy. Over no elements:
// sum 0, product 1, mean NaN, maximum and minimum the least and greatest value of the type.
#include <cmath>
#include <limits>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

constexpr DTypeSet numbers() {
  return kNumericTypes;
}
constexpr DTypeSet any() {
  return kAnyDType;
}

Shape reduced_shape(const Shape& shape, std::span<const int> axes, bool keep_dims) {
  Shape out = shape;
  for (size_t i = axes.size(); i-- > 0;) {
    if (keep_dims)
      out[axes[i]] = 1;
    else
      out.erase(axes[i]);
  }
  return out;
}

Status infer_over(const NodeView& node, std::vector<TensorInfo>& outputs, DTypeSet allowed,
                  std::span<const int64_t> given, bool keep_dims) {
  RT_TRY(expect_dtype(node, 0, "x", allowed));
  RT_ASSIGN(const std::vector<int> axes, resolve_axes(given, node.shape(0).rank()));
  return add_output(outputs, node.dtype(0), reduced_shape(node.shape(0), axes, keep_dims));
}

template <class Attributes, DTypeSet (*Allowed)()>
Status infer_reduce(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<Attributes>();
  return infer_over(node, outputs, Allowed(), attributes.axes, attributes.keep_dims);
}

// A reduction: its initial value, and how it takes one element.

template <class T>
struct Sum {
  static T start(DType) { return 0; }
  static T take(T total, T x) { return total + x; }
};
template <class T>
struct Prod {
  static T start(DType) { return 1; }
  static T take(T total, T x) { return total * x; }
};
template <class T>
struct Max {
  static T start(DType dtype) {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
    if (dtype == DType::Bool || std::is_unsigned_v<T>) return 0;
    const auto bit = static_cast<unsigned>(8 * size_of(dtype) - 1);
    return is_unsigned_integer(dtype) ? T{0} : static_cast<T>(-static_cast<T>((uint64_t{1} << bit) - 1) - 1);
  }
  static T take(T total, T x) { return x > total || x != x ? x : total; }
};
template <class T>
struct Min {
  static T start(DType dtype) {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
    if (dtype == DType::Bool) return 1;
    const auto bit = static_cast<unsigned>(8 * size_of(dtype) - (is_unsigned_integer(dtype) ? 0 : 1));
    return static_cast<T>(bit == 64 ? ~uint64_t{0} : (uint64_t{1} << bit) - 1);
  }
  static T take(T total, T x) { return x < total || x != x ? x : total; }
};

template <class T>
T load_exactly(const ConstTensorView& x, int64_t i) {
  if constexpr (std::is_floating_point_v<T>)
    return load(x, i);
  else
    return static_cast<T>(load_integer(x.data, x.info.dtype, i));
}

/// A reduction in T as functions, so that one loop serves all.
template <class T>
struct Steps {
  T (*start)(DType);
  T (*take)(T, T);
};
template <class T, template <class> class Reduction>
constexpr Steps<T> kSteps{Reduction<T>::start, Reduction<T>::take};

/// Reduces in T; mean divides by the number of elements, integers toward zero.
template <class T>
Status reduce_as(const ConstTensorView& x, const TensorView& y, std::span<const int> axes,
                 const Steps<T>& steps, bool mean) {
  const DType dtype = x.info.dtype;
  const int64_t results = y.info.elements();
  const int64_t count = results == 0 ? 0 : x.info.elements() / results;
  if (mean && !is_float(dtype) && count == 0 && results != 0)
    return invalid_argument("expected at least one integer to take the mean of, found ", x.info);
  std::vector<T> totals(static_cast<size_t>(results), steps.start(dtype));
  const std::array<Shape, 1> kept{reduced_shape(x.info.shape, axes, true)};
  RT_TRY(for_each_broadcast(x.info.shape, kept, [&](int64_t i, const std::array<int64_t, 1>& at) {
    T& total = totals[static_cast<size_t>(at[0])];
    total = steps.take(total, load_exactly<T>(x, i));
  }));
  for (int64_t i = 0; i < results; ++i) {
    const T total = totals[static_cast<size_t>(i)];
    if constexpr (std::is_floating_point_v<T>) {
      store(y, i, mean ? total / static_cast<T>(count) : total);
    } else if (mean) {
      // Sums wrap in 64 bits as unsigned; the sign matters when dividing.
      const auto divided =
          dtype == DType::U64
              ? static_cast<int64_t>(static_cast<uint64_t>(total) / static_cast<uint64_t>(count))
              : static_cast<int64_t>(total) / count;
      store_integer(y.data, dtype, i, divided);
    } else {
      store_integer(y.data, dtype, i, static_cast<int64_t>(total));
    }
  }
  return {};
}

/// `ordered` is null where the signedness of 64-bit integers does not matter: sums and products.
Status reduce(std::span<const ConstTensorView> inputs, const TensorView& y, std::span<const int64_t> given,
              const Steps<double>& real, const Steps<uint64_t>& bits, const Steps<int64_t>* ordered,
              bool mean) {
  const ConstTensorView& x = inputs[0];
  RT_ASSIGN(const std::vector<int> axes, resolve_axes(given, x.info.shape.rank()));
  if (is_float(x.info.dtype)) return reduce_as(x, y, axes, real, mean);
  if (ordered != nullptr && x.info.dtype != DType::U64) return reduce_as(x, y, axes, *ordered, mean);
  return reduce_as(x, y, axes, bits, mean);
}

/// kOrdered: signed and unsigned 64-bit integers are distinguished.
template <class Attributes, template <class> class Reduction, bool kOrdered, bool kMean = false>
Status eval_reduce(const NodeView& node, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  const Steps<int64_t>* ordered = nullptr;
  if constexpr (kOrdered) ordered = &kSteps<int64_t, Reduction>;
  return reduce(inputs, outputs[0], node.as<Attributes>().axes, kSteps<double, Reduction>,
                kSteps<uint64_t, Reduction>, ordered, kMean);
}

template <class Attributes, DTypeSet (*Allowed)(), template <class> class Reduction, bool kOrdered,
          bool kMean = false>
constexpr Page reduce_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_reduce<Attributes, Allowed>,
          .eval = eval_reduce<Attributes, Reduction, kOrdered, kMean>,
          .cost =
              [](const NodeView& node) {
                Cost cost = elementwise_cost(node, 0);
                cost.flops = static_cast<double>(node.input(0).elements());
                return cost;
              },
          .extents = ExtentRule::Copied};
}

// --- positions

Status infer_position(const NodeView& node, std::vector<TensorInfo>& outputs, int64_t given, bool keep_dims) {
  RT_TRY(expect_dtype_and_rank(node, 0, "x", kNumericTypes, 1));
  RT_ASSIGN(const int axis, resolve_axis(given, node.shape(0).rank()));
  const Shape shape = reduced_shape(node.shape(0), std::array{axis}, keep_dims);
  if (node.shape(0)[axis] == 0 && shape.elements() != 0)
    return invalid_argument("expected at least one element along axis ", axis, ", found ", node.input(0));
  return add_output(outputs, DType::I64, shape);
}

template <class Attributes>
Status infer_arg(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<Attributes>();
  return infer_position(node, outputs, attributes.axis, attributes.keep_dims);
}

/// NaN is both the largest and the smallest element, and equal to NaN, as in NumPy.
template <class T>
int64_t position(const ConstTensorView& x, int64_t first, const AxisView& view, bool largest,
                 bool select_last) {
  int64_t best = 0;
  T extreme = load_exactly<T>(x, first);
  for (int64_t k = 1; k < view.extent; ++k) {
    const T value = load_exactly<T>(x, first + k * view.inner);
    const bool unordered = value != value, was_unordered = extreme != extreme;
    const bool beats = !was_unordered && (unordered || (largest ? value > extreme : value < extreme));
    const bool equals = value == extreme || (unordered && was_unordered);
    if (!beats && !(select_last && equals)) continue;
    best = k;
    extreme = value;
  }
  return best;
}

Status positions(const ConstTensorView& x, const TensorView& y, int64_t given, bool largest, bool last) {
  RT_ASSIGN(const int axis, resolve_axis(given, x.info.shape.rank()));
  const AxisView view = along(x.info.shape, axis);
  for (int64_t i = 0; i < view.outer * view.inner; ++i) {
    const int64_t first = i / view.inner * view.extent * view.inner + i % view.inner;
    const int64_t best = is_float(x.info.dtype)       ? position<double>(x, first, view, largest, last)
                         : x.info.dtype == DType::U64 ? position<uint64_t>(x, first, view, largest, last)
                                                      : position<int64_t>(x, first, view, largest, last);
    store_integer(y.data, DType::I64, i, best);
  }
  return {};
}

template <class Attributes, bool kLargest>
Status eval_arg(const NodeView& node, std::span<const ConstTensorView> inputs,
                std::span<const TensorView> outputs) {
  const auto& attributes = node.as<Attributes>();
  return positions(inputs[0], outputs[0], attributes.axis, kLargest, attributes.select_last);
}

template <class Attributes, bool kLargest>
constexpr Page arg_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_arg<Attributes>,
          .eval = eval_arg<Attributes, kLargest>,
          .extents = ExtentRule::Copied};
}

// --- gradients

/// Shared by the rules: the reduced axes, and y and its gradient with those axes reinserted with extent 1.
template <class Attributes>
struct Reduced {
  explicit Reduced(GradContext& context)
      : c(context),
        x(context.input(0)),
        axes(known_axes(context.node.as<Attributes>().axes, context.emit.value(x).rank())) {
    if (!context.node.as<Attributes>().keep_dims) target_ = shape_with_ones(c.emit, x, axes);
  }
  ValueId kept(ValueId reduced) const {
    return target_ == kNoValue ? reduced : c.emit.reshape(reduced, target_);
  }
  ValueId grad() const { return kept(c.grad()); }
  ValueId sum(ValueId value) const { return c.emit.reduce_sum(value, {axes.begin(), axes.end()}); }

  GradContext& c;
  ValueId x;
  std::vector<int> axes;

 private:
  ValueId target_ = kNoValue;
};

void gradient_of_sum(GradContext& c) {
  const Reduced<op::ReduceSumAttributes> r(c);
  c.set(0, c.emit.emit(op::ExpandAttributes{}, {r.grad(), shape_value(c.emit, r.x)}));
}

void gradient_of_mean(GradContext& c) {
  const Reduced<op::ReduceMeanAttributes> r(c);
  const ValueId share = c.emit.mul(r.grad(), reciprocal_count(c.emit, r.x, r.axes));
  c.set(0, c.emit.emit(op::ExpandAttributes{}, {share, shape_value(c.emit, r.x)}));
}

/// Equal shares to all elements that attain the extremum.
template <class Attributes>
void gradient_of_extreme(GradContext& c) {
  Emitter& e = c.emit;
  const Reduced<Attributes> r(c);
  const ValueId attains = e.emit(op::EqualAttributes{}, {r.x, r.kept(c.output())});
  const ValueId count = r.sum(e.cast(attains, e.value(r.x).dtype));
  c.set(0, keep_where(e, attains, e.div(r.grad(), count)));
}

/// The product of the other elements: (product of the nonzero ones) / x, unless another one is zero. Dividing
/// y by x would fail at x = 0.
void gradient_of_prod(GradContext& c) {
  Emitter& e = c.emit;
  const Reduced<op::ReduceProdAttributes> r(c);
  const auto number = [&](double value) { return e.scalar_like(value, r.x); };
  const ValueId is_zero = e.emit(op::EqualAttributes{}, {r.x, number(0)});
  const ValueId zero_here = e.cast(is_zero, e.value(r.x).dtype);
  const ValueId nonzero = e.emit(op::WhereAttributes{}, {is_zero, number(1), r.x});
  op::ReduceProdAttributes keep;
  keep.axes.assign(r.axes.begin(), r.axes.end());
  const ValueId product = e.emit(std::move(keep), {nonzero});
  const ValueId others_nonzero =
      e.emit(op::EqualAttributes{}, {e.sub(r.sum(zero_here), zero_here), number(0)});
  c.set(0, keep_where(e, others_nonzero, e.mul(r.grad(), e.div(product, nonzero))));
}

}  // namespace

RT_PAGE(ReduceSum) =
    precision_sensitive(reduce_page<op::ReduceSumAttributes, numbers, Sum, false>(OpKind::ReduceSum));
RT_COMPILER_PAGE(ReduceSum) = {.gradient = gradient_of_sum};

RT_PAGE(ReduceMean) =
    precision_sensitive(reduce_page<op::ReduceMeanAttributes, numbers, Sum, false, true>(OpKind::ReduceMean));
RT_COMPILER_PAGE(ReduceMean) = {.gradient = gradient_of_mean};

RT_PAGE(ReduceMax) = reduce_page<op::ReduceMaxAttributes, any, Max, true>(OpKind::ReduceMax);
RT_COMPILER_PAGE(ReduceMax) = {.gradient = gradient_of_extreme<op::ReduceMaxAttributes>};

RT_PAGE(ReduceMin) = reduce_page<op::ReduceMinAttributes, any, Min, true>(OpKind::ReduceMin);
RT_COMPILER_PAGE(ReduceMin) = {.gradient = gradient_of_extreme<op::ReduceMinAttributes>};

RT_PAGE(ReduceProd) =
    precision_sensitive(reduce_page<op::ReduceProdAttributes, numbers, Prod, false>(OpKind::ReduceProd));
RT_COMPILER_PAGE(ReduceProd) = {.gradient = gradient_of_prod};

RT_PAGE(ArgMax) = arg_page<op::ArgMaxAttributes, true>(OpKind::ArgMax);
RT_NO_GRADIENT(ArgMax, "integer output");

RT_PAGE(ArgMin) = arg_page<op::ArgMinAttributes, false>(OpKind::ArgMin);
RT_NO_GRADIENT(ArgMin, "integer output");

}  // namespace librt::ops
