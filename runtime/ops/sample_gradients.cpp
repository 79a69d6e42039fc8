#include "runtime/ops/sample_gradients.h"

#include "runtime/core/byte_count.h"
#include "runtime/geometry/resize.h"
#include "runtime/ops/page_support.h"

namespace librt::ops {
namespace {

ValueId reduced(Emitter& emit, ValueId x, int64_t axis) {
  return emit.reduce_sum(x, {axis}, true);
}

ValueId concatenated(Emitter& emit, std::span<const ValueId> parts, int64_t axis) {
  op::ConcatAttributes attributes;
  attributes.axis = axis;
  return emit.emit_many(make_op(attributes), parts, 1)[0];
}

ValueId sliced(Emitter& emit, ValueId x, int64_t axis, int64_t at) {
  op::SliceAttributes attributes;
  attributes.axes = {axis};
  attributes.steps = {1};
  return emit.emit(std::move(attributes), {x, emit.ints(std::array{at}), emit.ints(std::array{at + 1})});
}

ValueId in_type_of(Emitter& emit, ValueId x, ValueId like) {
  const DType dtype = emit.value(like).dtype;
  return emit.value(x).dtype == dtype ? x : emit.cast(x, dtype);
}

// --- GridSample: every combination of one tap of each axis is a separate gather or scatter

struct Tap {
  ValueId index;       ///< i64 [N,P,1]
  ValueId weight;      ///< [N,P,1]
  ValueId derivative;  ///< of the weight with respect to the position; kNoValue: 0
};

/// One axis of the grid: positions, and their derivative with respect to the coordinate.
class GridAxis {
 public:
  GridAxis(Emitter& emit, const op::GridSampleAttributes& attributes, ValueId coordinate, int64_t extent)
      : emit_(emit),
        attributes_(attributes),
        last_(static_cast<double>(extent - 1)),
        low_(attributes.align_corners ? 0 : -0.5),
        range_(attributes.align_corners ? last_ : last_ + 1) {
    const double scale = range_ / 2;
    step_ = number(scale, coordinate);
    position_ = emit.add(emit.mul(coordinate, step_), number(last_ / 2, coordinate));
    if (attributes.mode == op::ResizeMode::Nearest) position_ = emit.emit(op::RoundAttributes{}, {position_});
    if (attributes.padding == op::GridSamplePadding::Border && attributes.mode != op::ResizeMode::Cubic) {
      // Within half a point of the border, positions stay as they are.
      const ValueId inside =
          emit.emit(op::AndAttributes{}, {greater(position_, number(low_, position_)),
                                          greater(number(low_ + range_, position_), position_)});
      step_ = emit.mul(step_, in_type_of(emit, inside, position_));
      position_ = emit.emit(op::WhereAttributes{}, {inside, position_, clamped(position_)});
    } else if (attributes.padding == op::GridSamplePadding::Reflection) {
      step_ = emit.mul(step_, reflection_sign(position_));
      position_ = reflected(position_);
    }
  }

  ValueId step() const { return step_; }

  std::vector<Tap> taps() {
    if (attributes_.mode == op::ResizeMode::Nearest) return {tap(position_, number(1, position_), kNoValue)};
    const ValueId first = emit_.emit(op::FloorAttributes{}, {position_});
    const ValueId r = emit_.sub(position_, first);
    std::vector<Tap> taps;
    if (attributes_.mode == op::ResizeMode::Linear) {
      taps.push_back(tap(first, polynomial(r, {1, -1}), number(-1, r)));
      taps.push_back(tap(offset(first, 1), r, number(1, r)));
      return taps;
    }
    // Keys' filter with a = -3/4 at r + 1, r, 1 - r, 2 - r, as polynomials of r and their derivatives.
    constexpr double kWeights[4][4] = {
        {0, -0.75, 1.5, -0.75}, {1, 0, -2.25, 1.25}, {0, 0.75, 1.5, -1.25}, {0, 0, -0.75, 0.75}};
    for (int t = 0; t < 4; ++t) {
      const auto& w = kWeights[t];
      taps.push_back(tap(offset(first, t - 1), polynomial(r, {w[0], w[1], w[2], w[3]}),
                         polynomial(r, {w[1], 2 * w[2], 3 * w[3]})));
    }
    return taps;
  }

 private:
  ValueId number(double value, ValueId like) { return emit_.scalar_like(value, like); }
  ValueId greater(ValueId a, ValueId b) { return emit_.emit(op::GreaterAttributes{}, {a, b}); }
  ValueId offset(ValueId x, double by) { return by == 0 ? x : emit_.add(x, number(by, x)); }
  ValueId clamped(ValueId x) {
    const ValueId above = emit_.emit(op::MaximumAttributes{}, {x, number(0, x)});
    return emit_.emit(op::MinimumAttributes{}, {above, number(last_, x)});
  }
  ValueId polynomial(ValueId r, std::initializer_list<double> coefficients) {
    ValueId sum = kNoValue;
    for (const double* c = coefficients.end(); c-- != coefficients.begin();)
      sum = sum == kNoValue ? number(*c, r) : emit_.add(emit_.mul(sum, r), number(*c, r));
    return sum;
  }
  /// The phase of x in the reflection, a triangle wave of period 2 range_.
  ValueId phase(ValueId x) {
    const ValueId distance = emit_.emit(op::AbsAttributes{}, {offset(x, -low_)});
    return emit_.emit(op::ModAttributes{}, {distance, number(2 * range_, x)});
  }
  ValueId reflected(ValueId x) {
    if (range_ <= 0) return emit_.mul(x, number(0, x));
    const ValueId there = phase(x);
    const ValueId back = emit_.sub(number(2 * range_, x), there);
    return offset(emit_.emit(op::MinimumAttributes{}, {there, back}), low_);
  }
  ValueId reflection_sign(ValueId x) {
    if (range_ <= 0) return number(0, x);
    const ValueId side = emit_.emit(op::SignAttributes{}, {offset(x, -low_)});
    return emit_.mul(side, emit_.emit(op::SignAttributes{}, {emit_.sub(number(range_, x), phase(x))}));
  }

  Tap tap(ValueId position, ValueId weight, ValueId derivative) {
    if (attributes_.padding == op::GridSamplePadding::Reflection) position = reflected(position);
    const ValueId inside = clamped(position);
    if (attributes_.padding == op::GridSamplePadding::Zeros) {
      const ValueId same = emit_.emit(op::EqualAttributes{}, {position, inside});
      weight = keep_where(emit_, same, weight);
      if (derivative != kNoValue) derivative = keep_where(emit_, same, derivative);
    }
    return {emit_.cast(inside, DType::I64), weight, derivative};
  }

  Emitter& emit_;
  const op::GridSampleAttributes& attributes_;
  double last_, low_, range_;
  ValueId position_ = kNoValue, step_ = kNoValue;
};

class GridGradient {
 public:
  explicit GridGradient(GradContext& context)
      : context_(context), emit_(context.emit), x_(context.input(0)), grid_(context.input(1)) {}

  void run() {
    const auto& attributes = context_.node.as<op::GridSampleAttributes>();
    const std::vector<Dim> dims = emit_.value(x_).dims;
    const auto k = static_cast<int64_t>(dims.size()) - 2;
    for (int64_t d = 0; d <= k; ++d)
      if (!dims[static_cast<size_t>(d + 1)].is_known())
        return emit_.fail(unsupported("the gradient of GridSample needs static image extents"));
    const ValueId flat = emit_.reshape(grid_, with_points(k));
    grad_ = emit_.reshape(context_.grad(), with_points(dims.back().extent));
    std::vector<GridAxis> axes;
    for (int64_t d = 0; d < k; ++d) {
      axes.emplace_back(emit_, attributes, sliced(emit_, flat, 2, k - 1 - d),
                        dims[static_cast<size_t>(d + 1)].extent);
      taps_.push_back(axes.back().taps());
    }
    batch_ = batch_indices();
    if (context_.needs(0))
      grad_x_ = emit_.emit(op::ExpandAttributes{}, {emit_.scalar_like(0, x_), shape_value(emit_, x_)});
    grad_positions_.assign(axes.size(), kNoValue);
    std::vector<size_t> chosen(axes.size(), 0);
    combine(chosen, 0);
    if (context_.needs(0)) context_.set(0, grad_x_);
    if (!context_.needs(1) || grad_positions_[0] == kNoValue) return;
    std::vector<ValueId> parts;
    for (size_t d = axes.size(); d-- > 0;) parts.push_back(emit_.mul(grad_positions_[d], axes[d].step()));
    context_.set(1, emit_.reshape(concatenated(emit_, parts, 2), shape_value(emit_, grid_)));
  }

 private:
  /// [N, points, last] as a shape operand.
  ValueId with_points(int64_t last) {
    const Dim batch = emit_.value(x_).dims[0];
    if (batch.is_known()) return emit_.ints(std::array{batch.extent, int64_t{-1}, last});
    op::ShapeAttributes first;
    first.end = 1;
    const ValueId parts[] = {emit_.emit(first, {x_}), emit_.ints(std::array{int64_t{-1}, last})};
    return concatenated(emit_, parts, 0);
  }
  /// The batch index of each point, i64 [N,P,1].
  ValueId batch_indices() {
    const ValueId ones = emit_.emit(op::ExpandAttributes{},
                                    {emit_.scalar(1, DType::I64), shape_value(emit_, taps_[0][0].index)});
    op::CumSumAttributes count;
    count.exclusive = true;
    return emit_.emit(count, {ones});
  }

  void combine(std::vector<size_t>& chosen, size_t axis) {
    if (axis == chosen.size()) return take(chosen);
    for (chosen[axis] = 0; chosen[axis] < taps_[axis].size(); ++chosen[axis]) combine(chosen, axis + 1);
  }

  /// The product of the taps' weights, that of `axis` replaced by its derivative.
  ValueId factor(const std::vector<size_t>& chosen, size_t axis) {
    ValueId product = kNoValue;
    for (size_t d = 0; d < chosen.size(); ++d) {
      const Tap& tap = taps_[d][chosen[d]];
      const ValueId one = d == axis ? tap.derivative : tap.weight;
      product = product == kNoValue ? one : emit_.mul(product, one);
    }
    return product;
  }

  void take(const std::vector<size_t>& chosen) {
    std::vector<ValueId> place{batch_};
    for (size_t d = 0; d < chosen.size(); ++d) place.push_back(taps_[d][chosen[d]].index);
    const ValueId indices = concatenated(emit_, place, 2);
    if (context_.needs(0)) {
      op::ScatterNDAttributes add;
      add.reduction = op::ScatterReduction::Add;
      const ValueId weight = in_type_of(emit_, factor(chosen, chosen.size()), grad_);
      grad_x_ = emit_.emit(add, {grad_x_, indices, emit_.mul(grad_, weight)});
    }
    if (!context_.needs(1) || taps_[0][0].derivative == kNoValue) return;
    const ValueId values = emit_.emit(op::GatherNDAttributes{}, {x_, indices});
    const ValueId dot = in_type_of(emit_, reduced(emit_, emit_.mul(values, grad_), 2), grid_);
    for (size_t d = 0; d < chosen.size(); ++d) {
      const ValueId part = emit_.mul(dot, factor(chosen, d));
      grad_positions_[d] = grad_positions_[d] == kNoValue ? part : emit_.add(grad_positions_[d], part);
    }
  }

  GradContext& context_;
  Emitter& emit_;
  ValueId x_, grid_;
  ValueId grad_ = kNoValue, batch_ = kNoValue, grad_x_ = kNoValue;
  std::vector<std::vector<Tap>> taps_;
  std::vector<ValueId> grad_positions_;
};

// --- Resize: along one axis the result is a matrix times x

std::span<const float> constant_floats(const Emitter& emit, ValueId id) {
  if (id == kNoValue || emit.value(id).role != Role::Constant) return {};
  const Value& value = emit.value(id);
  return {static_cast<const float*>(static_cast<const void*>(value.data.data)),
          static_cast<size_t>(value.info().elements())};
}

/// [output, input] of an axis.
ValueId interpolation_matrix(Emitter& emit, const ResizeAxis& axis, const op::ResizeAttributes& attributes,
                             int taps, DType dtype) {
  const ResizeTable table = resize_table(axis, attributes, taps);
  std::vector<float> matrix(container_size(static_cast<uint64_t>(axis.output * axis.input)));
  for (size_t i = 0; i < table.index.size(); ++i)
    if (table.index[i] >= 0)
      matrix[i / static_cast<size_t>(taps) * static_cast<size_t>(axis.input) +
             static_cast<size_t>(table.index[i])] += static_cast<float>(table.weight[i]);
  const ValueId constant = emit.constant({.dtype = DType::F32, .shape = {axis.output, axis.input}},
                                         Blob::copy_of(matrix.data(), matrix.size() * sizeof(float)));
  return dtype == DType::F32 ? constant : emit.cast(constant, dtype);
}

}  // namespace

void grid_sample_gradient(GradContext& context) {
  GridGradient(context).run();
}

void resize_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const auto& attributes = context.node.as<op::ResizeAttributes>();
  const std::vector<Dim> dims = emit.value(context.input(0)).dims;
  const std::vector<Dim> result = emit.value(context.output()).dims;
  Shape shape{1};
  std::vector<int64_t> sizes;
  bool known = true;
  for (size_t d = 1; d < dims.size(); ++d) {
    known = known && dims[d].is_known() && result[d].is_known();
    shape.push_back(dims[d].extent);
    if (d + 1 < dims.size()) sizes.push_back(result[d].extent);
  }
  const auto scales = constant_floats(emit, context.input(2)), roi = constant_floats(emit, context.input(3));
  if (!known) return emit.fail(unsupported("the gradient of Resize needs static image extents"));
  if ((context.input(2) != kNoValue && scales.empty()) || (context.input(3) != kNoValue && roi.empty()))
    return emit.fail(unsupported("the gradient of Resize needs scales and a region that are constants"));
  auto geometry = resize_geometry(shape, attributes, sizes, scales, roi);
  if (!geometry.ok()) return emit.fail(std::move(geometry).status());
  ValueId grad = context.grad();
  int64_t inner = shape.back();
  for (int i = geometry->rank - 1; i >= 0; --i) {
    const ResizeAxis& axis = geometry->axes[static_cast<size_t>(i)];
    const ValueId matrix =
        interpolation_matrix(emit, axis, attributes, geometry->taps, emit.value(grad).dtype);
    op::MatMulAttributes matmul;
    matmul.transpose_a = true;
    const ValueId rows = emit.reshape(grad, emit.ints(std::array{int64_t{-1}, axis.output, inner}));
    grad = emit.emit(std::move(matmul), {matrix, rows});
    inner *= axis.input;
  }
  context.set(0, emit.reshape(grad, shape_value(emit, context.input(0))));
}

}  // namespace librt::ops
