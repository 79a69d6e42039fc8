// MaxPool, MaxPoolIndices, AveragePool, and their gradients.
//
// A window of padding only (possible with dilations or large pads) gives the lowest value, or an average of
// 0.
#include <cmath>
#include <limits>

#include "runtime/geometry/windows.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"
#include "runtime/ops/windows.h"

namespace librt::ops {
namespace {

/// Types whose values int64 or double hold exactly and in order.
constexpr DTypeSet kMaxPoolTypes =
    kFloats | DTypeSet{DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64};

template <class Attributes>
Status infer_pool(const NodeView& node, std::vector<TensorInfo>& outputs, DTypeSet types) {
  RT_TRY(expect_dtype(node, 0, "x", types));
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), node.as<Attributes>()));
  return add_output(outputs, node.dtype(0), geometry.output_shape());
}

double pool_steps(const Result<PoolGeometry>& geometry) {
  if (!geometry.ok()) return 0;
  double steps =
      static_cast<double>(geometry->taps()) * static_cast<double>(geometry->batch * geometry->channels);
  for (const WindowAxis& axis : geometry->axes) steps *= static_cast<double>(axis.output);
  return steps;
}

Cost pool_cost(const NodeView& node, const Result<PoolGeometry>& geometry) {
  Cost cost = elementwise_cost(node, 0);
  cost.flops = pool_steps(geometry);
  // The counts of elements in the windows along a row.
  if (geometry.ok())
    cost.tables = sizeof(int64_t) * static_cast<double>(geometry->axes[kMaxSpatialRank - 1].output);
  return cost;
}

// --- MaxPool
// --------------------------------------------------------------------------------------------------

Status infer_max_pool(const NodeView& node, std::vector<TensorInfo>& outputs) {
  return infer_pool<op::MaxPoolAttributes>(node, outputs, kMaxPoolTypes);
}

template <class T>
bool greater(T a, T b) {
  return a > b;
}
template <>
bool greater<double>(double a, double b) {
  return a > b || std::isnan(a);  // a NaN wins and stays
}

/// The flat input position of each window's first largest element, per image and channel; -1 for padding
/// only. Of equal values, also +0 and -0, the first.
template <class T>
void max_pool_image(const PoolGeometry& g, const T* x, T lowest, T* best, int64_t* where) {
  const int64_t count = output_positions(g.axes) * g.channels;
  std::fill_n(best, count, lowest);
  if (where != nullptr) std::fill_n(where, count, int64_t{-1});
  std::vector<bool> seen(static_cast<size_t>(count), false);
  for_each_tap(g.axes, [&](int64_t window, int64_t, int64_t position) {
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t at = window * g.channels + c;
      const T value = x[position * g.channels + c];
      if (seen[static_cast<size_t>(at)] && (best[at] != best[at] || !greater(value, best[at]))) continue;
      seen[static_cast<size_t>(at)] = true;
      best[at] = value;
      if (where != nullptr) where[at] = position;
    }
  });
}

template <class T>
void max_pool(const PoolGeometry& g, const std::vector<T>& x, T lowest, std::vector<T>& y) {
  if (y.empty()) return;
  for (int64_t n = 0; n < g.batch; ++n)
    max_pool_image<T>(g, x.data() + n * input_positions(g.axes) * g.channels, lowest,
                      y.data() + n * output_positions(g.axes) * g.channels, nullptr);
}

int64_t lowest_of(DType dtype) {
  switch (dtype) {
    case DType::I8: return std::numeric_limits<int8_t>::min();
    case DType::I16: return std::numeric_limits<int16_t>::min();
    case DType::I32: return std::numeric_limits<int32_t>::min();
    case DType::I64: return std::numeric_limits<int64_t>::min();
    default: return 0;
  }
}

Status eval_max_pool(const NodeView& node, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs) {
  RT_ASSIGN(const PoolGeometry geometry,
            pool_geometry(inputs[0].info.shape, node.as<op::MaxPoolAttributes>()));
  const auto size = static_cast<size_t>(outputs[0].info.elements());
  const DType dtype = inputs[0].info.dtype;
  if (is_float(dtype)) {
    std::vector<double> y(size);
    max_pool(geometry, load_all<double>(inputs[0]), -std::numeric_limits<double>::infinity(), y);
    store_all<double>(outputs[0], y);
    return {};
  }
  const std::vector<uint64_t> bits = load_all<uint64_t>(inputs[0]);
  std::vector<int64_t> y(size);
  max_pool(geometry, std::vector<int64_t>(bits.begin(), bits.end()), lowest_of(dtype), y);
  for (size_t i = 0; i < size; ++i) store_integer(outputs[0].data, dtype, static_cast<int64_t>(i), y[i]);
  return {};
}

// --- MaxPoolIndices

Status infer_max_pool_indices(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", kMaxPoolTypes));
  RT_ASSIGN(const PoolGeometry geometry,
            pool_geometry(node.shape(0), node.as<op::MaxPoolIndicesAttributes>()));
  return add_output(outputs, DType::I64, geometry.output_shape());
}

/// -1 for a window in the padding.
template <class T>
void max_pool_positions(const PoolGeometry& g, const std::vector<T>& x, T lowest, bool column_major,
                        int64_t* to) {
  const int64_t points = input_positions(g.axes), windows = output_positions(g.axes) * g.channels;
  std::vector<T> best(static_cast<size_t>(windows));
  const auto& [a, b, c] = g.axes;
  for (int64_t n = 0; n < g.batch && windows > 0; ++n, to += windows) {
    max_pool_image<T>(g, x.data() + n * points * g.channels, lowest, best.data(), to);
    for (int64_t i = 0; i < windows; ++i) {
      if (to[i] < 0) continue;
      if (column_major)
        to[i] = to[i] / c.input / b.input + (to[i] / c.input % b.input + to[i] % c.input * b.input) * a.input;
      to[i] += (n * g.channels + i % g.channels) * points;
    }
  }
}

Status eval_max_pool_indices(const NodeView& node, std::span<const ConstTensorView> inputs,
                             std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::MaxPoolIndicesAttributes>();
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(inputs[0].info.shape, attributes));
  const DType dtype = inputs[0].info.dtype;
  int64_t* to = outputs[0].as<int64_t>();
  if (is_float(dtype)) {
    max_pool_positions(geometry, load_all<double>(inputs[0]), -std::numeric_limits<double>::infinity(),
                       attributes.column_major, to);
  } else {
    const std::vector<uint64_t> bits = load_all<uint64_t>(inputs[0]);
    max_pool_positions(geometry, std::vector<int64_t>(bits.begin(), bits.end()), lowest_of(dtype),
                       attributes.column_major, to);
  }
  return {};
}

Status infer_max_pool_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_pair(node, "x", "grad_output", kFloats));
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), node.as<op::MaxPoolGradAttributes>()));
  RT_TRY(expect_shape(node, 1, "grad_output", geometry.output_shape()));
  return add_output(outputs, node.dtype(0), node.shape(0));
}

Status eval_max_pool_grad(const NodeView& node, std::span<const ConstTensorView> inputs,
                          std::span<const TensorView> outputs) {
  RT_ASSIGN(const PoolGeometry g, pool_geometry(inputs[0].info.shape, node.as<op::MaxPoolGradAttributes>()));
  const std::vector<double> x = load_all<double>(inputs[0]);
  const std::vector<double> grad = load_all<double>(inputs[1]);
  std::vector<double> result(x.size());
  const int64_t windows = output_positions(g.axes) * g.channels;
  std::vector<double> best(static_cast<size_t>(windows));
  std::vector<int64_t> where(static_cast<size_t>(windows));
  for (int64_t n = 0; n < g.batch && !x.empty(); ++n) {
    const int64_t image = n * input_positions(g.axes) * g.channels;
    max_pool_image<double>(g, x.data() + image, -std::numeric_limits<double>::infinity(), best.data(),
                           where.data());
    for (int64_t i = 0; i < windows; ++i) {
      const int64_t position = where[static_cast<size_t>(i)];
      if (position >= 0)
        result[static_cast<size_t>(image + position * g.channels + i % g.channels)] +=
            grad[static_cast<size_t>(n * windows + i)];
    }
  }
  store_all<double>(outputs[0], result);
  return {};
}

// --- AveragePool
// ----------------------------------------------------------------------------------------------

Status infer_average_pool(const NodeView& node, std::vector<TensorInfo>& outputs) {
  return infer_pool<op::AveragePoolAttributes>(node, outputs, kFloats);
}

/// 1 / count of each window, 0 for an empty one.
std::vector<double> inverse_counts(const PoolGeometry& g, bool count_include_pad) {
  std::vector<double> factors(static_cast<size_t>(output_positions(g.axes)));
  for_each_window(g.axes, [&](int64_t window, int64_t i, int64_t j, int64_t k) {
    const int64_t count = average_count(g.axes[0], i, count_include_pad) *
                          average_count(g.axes[1], j, count_include_pad) *
                          average_count(g.axes[2], k, count_include_pad);
    factors[static_cast<size_t>(window)] = count > 0 ? 1.0 / static_cast<double>(count) : 0.0;
  });
  return factors;
}

Status eval_average_pool(const NodeView& node, std::span<const ConstTensorView> inputs,
                         std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::AveragePoolAttributes>();
  RT_ASSIGN(const PoolGeometry g, pool_geometry(inputs[0].info.shape, attributes));
  const std::vector<double> x = load_all<double>(inputs[0]);
  std::vector<double> y(static_cast<size_t>(outputs[0].info.elements()));
  if (y.empty()) return {};
  const std::vector<double> factors = inverse_counts(g, attributes.count_include_pad);
  for (int64_t n = 0; n < g.batch; ++n) {
    const double* x_image = x.data() + n * input_positions(g.axes) * g.channels;
    double* y_image = y.data() + n * output_positions(g.axes) * g.channels;
    for_each_tap(g.axes, [&](int64_t window, int64_t, int64_t position) {
      for (int64_t c = 0; c < g.channels; ++c)
        y_image[window * g.channels + c] += x_image[position * g.channels + c];
    });
    for (int64_t i = 0; i < output_positions(g.axes) * g.channels; ++i)
      y_image[i] *= factors[static_cast<size_t>(i / g.channels)];
  }
  store_all<double>(outputs[0], y);
  return {};
}

Status infer_average_pool_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 1, "grad_output", kFloats));
  RT_ASSIGN(const Shape shape, shape_value(node, 0, "input_shape"));
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(shape, node.as<op::AveragePoolGradAttributes>()));
  RT_TRY(expect_shape(node, 1, "grad_output", geometry.output_shape()));
  return add_output(outputs, node.dtype(1), shape);
}

Status eval_average_pool_grad(const NodeView& node, std::span<const ConstTensorView> inputs,
                              std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::AveragePoolGradAttributes>();
  RT_ASSIGN(const PoolGeometry g, pool_geometry(outputs[0].info.shape, attributes));
  const std::vector<double> grad = load_all<double>(inputs[1]);
  std::vector<double> result(static_cast<size_t>(outputs[0].info.elements()));
  if (result.empty()) return {};
  const std::vector<double> factors = inverse_counts(g, attributes.count_include_pad);
  for (int64_t n = 0; n < g.batch; ++n) {
    const double* grad_image = grad.data() + n * output_positions(g.axes) * g.channels;
    double* image = result.data() + n * input_positions(g.axes) * g.channels;
    for_each_tap(g.axes, [&](int64_t window, int64_t, int64_t position) {
      const double factor = factors[static_cast<size_t>(window)];
      for (int64_t c = 0; c < g.channels; ++c)
        image[position * g.channels + c] += factor * grad_image[window * g.channels + c];
    });
  }
  store_all<double>(outputs[0], result);
  return {};
}

template <class Attributes>
Cost cost_pool(const NodeView& node) {
  return pool_cost(node, pool_geometry(node.shape(0), node.as<Attributes>()));
}
Cost cost_average_pool_grad(const NodeView& node) {
  Shape shape;
  if (!node.outputs.empty()) shape = node.output(0).shape;
  return pool_cost(node, pool_geometry(shape, node.as<op::AveragePoolGradAttributes>()));
}

// --- gradients
// ------------------------------------------------------------------------------------------------

template <class To, class From>
To same_windows(const From& from) {
  To to;
  to.kernel = from.kernel;
  to.strides = from.strides;
  to.pads = from.pads;
  to.dilations = from.dilations;
  to.ceil_mode = from.ceil_mode;
  if constexpr (requires { to.count_include_pad; }) to.count_include_pad = from.count_include_pad;
  return to;
}

void max_pool_gradient(GradContext& context) {
  auto attributes = same_windows<op::MaxPoolGradAttributes>(context.node.as<op::MaxPoolAttributes>());
  context.set(0, context.emit.emit(std::move(attributes), {context.input(0), context.grad()}));
}

void average_pool_gradient(GradContext& context) {
  auto attributes = same_windows<op::AveragePoolGradAttributes>(context.node.as<op::AveragePoolAttributes>());
  context.set(0, context.emit.emit(std::move(attributes),
                                   {shape_value(context.emit, context.input(0)), context.grad()}));
}

// Linear: the gradient of a transposed average is the average.
void average_pool_grad_gradient(GradContext& context) {
  auto attributes = same_windows<op::AveragePoolAttributes>(context.node.as<op::AveragePoolGradAttributes>());
  context.set(1, context.emit.emit(std::move(attributes), {context.grad()}));
}

}  // namespace

RT_PAGE(MaxPool) = {.kind = OpKind::MaxPool,
                    .infer = infer_max_pool,
                    .cost = cost_pool<op::MaxPoolAttributes>,
                    .extents = ExtentRule::Own};

RT_PAGE(MaxPoolIndices) = {.kind = OpKind::MaxPoolIndices,
                           .infer = infer_max_pool_indices,
                           .cost = cost_pool<op::MaxPoolIndicesAttributes>,
                           .extents = ExtentRule::Own};

RT_PAGE(MaxPoolGrad) = {.kind = OpKind::MaxPoolGrad,
                        .inputs = {2, 2},
                        .infer = infer_max_pool_grad,
                        .cost = cost_pool<op::MaxPoolGradAttributes>,
                        .extents = ExtentRule::LikeFirst};

RT_PAGE(AveragePool) = {.kind = OpKind::AveragePool,
                        .infer = infer_average_pool,
                        .cost = cost_pool<op::AveragePoolAttributes>,
                        .extents = ExtentRule::Own};

RT_PAGE(AveragePoolGrad) = {.kind = OpKind::AveragePoolGrad,
                            .inputs = {2, 2},
                            .shape_operands = 1u << 0,
                            .infer = infer_average_pool_grad,
                            .cost = cost_average_pool_grad,
                            .extents = ExtentRule::Own};

RT_COMPILER_PAGE(MaxPool) = {.eval = eval_max_pool, .gradient = max_pool_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(MaxPoolIndices) = {
    .eval = eval_max_pool_indices, .no_gradient = "integer output", .tolerance = {0, 0}};
RT_COMPILER_PAGE(MaxPoolGrad) = {
    .eval = eval_max_pool_grad,
    .no_gradient = "second derivatives of a maximum need its positions, which are not stored",
    .tolerance = {1e-5, 1e-5}};
RT_COMPILER_PAGE(AveragePool) = {
    .eval = eval_average_pool, .gradient = average_pool_gradient, .tolerance = {1e-5, 1e-5}};
RT_COMPILER_PAGE(AveragePoolGrad) = {
    .eval = eval_average_pool_grad, .gradient = average_pool_grad_gradient, .tolerance = {1e-5, 1e-5}};

}  // namespace librt::ops
