// Conv, ConvTranspose and ConvWeightGrad: one geometry, three loops over the same (window, tap) pairs.
#include "runtime/geometry/windows.h"
#include "runtime/ops/epilogue.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"
#include "runtime/ops/windows.h"

namespace librt::ops {
namespace {

Cost cost_of_geometry(const NodeView& node, const Result<ConvGeometry>& geometry, const Shape& result,
                      const op::EpilogueAttributes* epilogue) {
  const double elements = static_cast<double>(result.elements());
  return {.flops = geometry.ok() ? 2 * geometry->multiply_adds() + epilogue_flops(epilogue, elements) : 0,
          .bytes = input_bytes(node) + elements * static_cast<double>(size_of(node.dtype(0)))};
}

// --- Conv
// -----------------------------------------------------------------------------------------------------

Status infer_conv(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::ConvAttributes>();
  RT_TRY(expect_pair(node, "x", "weight", kNumericTypes));
  RT_ASSIGN(const ConvGeometry geometry, conv_geometry(node.shape(0), node.shape(1), attributes));
  const Shape result = geometry.output_shape();
  RT_TRY(check_epilogue(node, attributes.epilogue.get(), node.dtype(0), result, true));
  return add_output(outputs, node.dtype(0), result);
}

/// Weight [O,K..,C/g] as [K, g, C/g, O/g], so that the innermost loop runs over output channels.
template <class T>
std::vector<T> outputs_last(const std::vector<T>& weight, const ConvGeometry& g) {
  const int64_t taps = tap_count(g.axes), c = g.input_channels_per_group(), o = g.output_channels_per_group();
  std::vector<T> packed(weight.size());
  size_t from = 0;
  for (int64_t group = 0; group < g.groups; ++group)
    for (int64_t j = 0; j < o; ++j)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t i = 0; i < c; ++i)
          packed[static_cast<size_t>(((tap * g.groups + group) * c + i) * o + j)] = weight[from++];
  return packed;
}

template <class T>
std::vector<T> convolve(const ConvGeometry& g, const std::vector<T>& x, const std::vector<T>& weight) {
  std::vector<T> y(static_cast<size_t>(g.output_shape().elements()));
  if (y.empty()) return y;
  const std::vector<T> packed = outputs_last(weight, g);
  const int64_t c = g.input_channels_per_group(), o = g.output_channels_per_group();
  const int64_t tap_size = g.groups * c * o;
  for (int64_t n = 0; n < g.batch; ++n) {
    const T* x_image = x.data() + n * input_positions(g.axes) * g.input_channels;
    T* y_image = y.data() + n * output_positions(g.axes) * g.output_channels;
    for_each_tap(g.axes, [&](int64_t window, int64_t tap, int64_t position) {
      const T* source = x_image + position * g.input_channels;
      const T* factors = packed.data() + tap * tap_size;
      T* sums = y_image + window * g.output_channels;
      for (int64_t group = 0; group < g.groups; ++group, sums += o)
        for (int64_t i = 0; i < c; ++i, factors += o) {
          const T value = *source++;
          for (int64_t j = 0; j < o; ++j) sums[j] += value * factors[j];
        }
    });
  }
  return y;
}

Status eval_conv(const NodeView& node, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::ConvAttributes>();
  RT_ASSIGN(const ConvGeometry geometry,
            conv_geometry(inputs[0].info.shape, inputs[1].info.shape, attributes));
  with_values(inputs[0].info.dtype, [&]<class T>() {
    finish<T>(node, attributes.epilogue.get(), inputs,
              convolve(geometry, load_all<T>(inputs[0]), load_all<T>(inputs[1])), outputs[0]);
  });
  return {};
}

Cost cost_conv(const NodeView& node) {
  const auto& attributes = node.as<op::ConvAttributes>();
  const auto geometry = conv_geometry(node.shape(0), node.shape(1), attributes);
  return cost_of_geometry(node, geometry, geometry.ok() ? geometry->output_shape() : Shape{0},
                          attributes.epilogue.get());
}

// --- ConvTranspose
// --------------------------------------------------------------------------------------------

Result<ConvGeometry> transpose_geometry(const NodeView& node) {
  const auto& attributes = node.as<op::ConvTransposeAttributes>();
  if (!node.has(2)) return conv_transpose_geometry(node.shape(0), node.shape(1), attributes, std::nullopt);
  RT_ASSIGN(const auto output_size, shape_operand(node, 2, "output_size"));
  return conv_transpose_geometry(node.shape(0), node.shape(1), attributes, output_size);
}

Status infer_conv_transpose(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_pair(node, "x", "weight", kNumericTypes));
  RT_ASSIGN(const ConvGeometry geometry, transpose_geometry(node));
  if (node.has(3)) {
    RT_TRY(expect_same_dtype(node, 3, "bias", 0, "x"));
    if (node.shape(3) != Shape{geometry.input_channels})
      return invalid_argument("expected a bias [", geometry.input_channels, "], found ", node.shape(3));
  }
  return add_output(outputs, node.dtype(0), geometry.input_shape());
}

/// Scatters x, on the convolution's output side, to its input side.
template <class T>
std::vector<T> scatter(const ConvGeometry& g, const std::vector<T>& x, const std::vector<T>& weight) {
  std::vector<T> y(static_cast<size_t>(g.input_shape().elements()));
  if (y.empty()) return y;
  const int64_t c = g.input_channels_per_group(), o = g.output_channels_per_group(), taps = tap_count(g.axes);
  for (int64_t n = 0; n < g.batch; ++n) {
    const T* x_image = x.data() + n * output_positions(g.axes) * g.output_channels;
    T* y_image = y.data() + n * input_positions(g.axes) * g.input_channels;
    for_each_tap(g.axes, [&](int64_t window, int64_t tap, int64_t position) {
      const T* source = x_image + window * g.output_channels;
      const T* factors = weight.data() + tap * c;
      T* sums = y_image + position * g.input_channels;
      for (int64_t group = 0; group < g.groups; ++group, sums += c)
        for (int64_t j = 0; j < o; ++j, factors += taps * c) {
          const T value = *source++;
          for (int64_t i = 0; i < c; ++i) sums[i] += value * factors[i];
        }
    });
  }
  return y;
}

Status eval_conv_transpose(const NodeView& node, std::span<const ConstTensorView> inputs,
                           std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::ConvTransposeAttributes>();
  std::optional<std::span<const int64_t>> output_size;
  if (node.has(2)) output_size = ints_of(inputs[2]);
  RT_ASSIGN(const ConvGeometry geometry,
            conv_transpose_geometry(inputs[0].info.shape, inputs[1].info.shape, attributes, output_size));
  with_values(inputs[0].info.dtype, [&]<class T>() {
    std::vector<T> y = scatter(geometry, load_all<T>(inputs[0]), load_all<T>(inputs[1]));
    if (node.has(3)) {
      const std::vector<T> bias = load_all<T>(inputs[3]);
      for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
    }
    store_all<T>(outputs[0], y);
  });
  return {};
}

Cost cost_conv_transpose(const NodeView& node) {
  const auto geometry = transpose_geometry(node);
  return cost_of_geometry(node, geometry, geometry.ok() ? geometry->input_shape() : Shape{0}, nullptr);
}

// --- ConvWeightGrad
// -------------------------------------------------------------------------------------------

Status infer_conv_weight_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_pair(node, "x", "grad_output", kFloats));
  RT_ASSIGN(const ConvGeometry geometry,
            conv_weight_grad_geometry(node.shape(0), node.shape(1), node.as<op::ConvWeightGradAttributes>()));
  return add_output(outputs, node.dtype(0), geometry.weight_shape());
}

Status eval_conv_weight_grad(const NodeView& node, std::span<const ConstTensorView> inputs,
                             std::span<const TensorView> outputs) {
  RT_ASSIGN(const ConvGeometry g, conv_weight_grad_geometry(inputs[0].info.shape, inputs[1].info.shape,
                                                            node.as<op::ConvWeightGradAttributes>()));
  const std::vector<double> x = load_all<double>(inputs[0]);
  const std::vector<double> grad = load_all<double>(inputs[1]);
  std::vector<double> result(static_cast<size_t>(outputs[0].info.elements()));
  const int64_t c = g.input_channels_per_group(), o = g.output_channels_per_group(), taps = tap_count(g.axes);
  for (int64_t n = 0; n < g.batch && !result.empty(); ++n) {
    const double* x_image = x.data() + n * input_positions(g.axes) * g.input_channels;
    const double* grad_image = grad.data() + n * output_positions(g.axes) * g.output_channels;
    for_each_tap(g.axes, [&](int64_t window, int64_t tap, int64_t position) {
      const double* source = x_image + position * g.input_channels;
      const double* factors = grad_image + window * g.output_channels;
      double* sums = result.data() + tap * c;
      for (int64_t group = 0; group < g.groups; ++group, source += c)
        for (int64_t j = 0; j < o; ++j, sums += taps * c) {
          const double factor = *factors++;
          for (int64_t i = 0; i < c; ++i) sums[i] += factor * source[i];
        }
    });
  }
  store_all<double>(outputs[0], result);
  return {};
}

Cost cost_conv_weight_grad(const NodeView& node) {
  const auto geometry =
      conv_weight_grad_geometry(node.shape(0), node.shape(1), node.as<op::ConvWeightGradAttributes>());
  return cost_of_geometry(node, geometry, geometry.ok() ? geometry->weight_shape() : Shape{0}, nullptr);
}

// --- gradients: the three operators are bilinear and are each other's gradients
// ---------------------------------

/// The gradient of a convolution's weight, whose extents must be known.
template <class From>
ValueId weight_gradient(GradContext& context, const From& from, ValueId x, ValueId grad, ValueId weight) {
  auto attributes = same_window<op::ConvWeightGradAttributes>(from);
  const std::vector<Dim> dims = context.emit.value(weight).dims;
  for (size_t i = 1; i + 1 < dims.size(); ++i) {
    if (!dims[i].is_known()) {
      context.emit.fail(
          unsupported("expected a weight of known extents to differentiate, found unknown ones"));
      return kNoValue;
    }
    attributes.kernel.push_back(dims[i].extent);
  }
  return context.emit.emit(std::move(attributes), {x, grad});
}

/// The gradient of a convolution's x, with x's extents.
template <class From>
ValueId data_gradient(Emitter& emit, const From& from, ValueId grad, ValueId weight, ValueId x) {
  op::ShapeAttributes spatial;
  spatial.start = 1;
  spatial.end = -1;
  return emit.emit(same_window<op::ConvTransposeAttributes>(from), {grad, weight, emit.emit(spatial, {x})});
}

void conv_gradient(GradContext& context) {
  const auto& attributes = context.node.as<op::ConvAttributes>();
  const ValueId grad = epilogue_gradient(context, attributes.epilogue.get());
  if (grad == kNoValue) return;
  const ValueId x = context.input(0), weight = context.input(1);
  if (context.needs(0)) context.set(0, data_gradient(context.emit, attributes, grad, weight, x));
  if (context.needs(1)) context.set(1, weight_gradient(context, attributes, x, grad, weight));
}

void conv_transpose_gradient(GradContext& context) {
  const auto& attributes = context.node.as<op::ConvTransposeAttributes>();
  for (size_t i = 0; i < attributes.output_padding.size(); ++i) {
    const int64_t stride = attributes.strides.empty() ? 1 : attributes.strides[i];
    if (attributes.output_padding[i] >= stride)
      return context.emit.fail(unsupported("expected an output_padding below the stride ", stride,
                                           " to differentiate, found ", attributes.output_padding[i]));
  }
  const ValueId x = context.input(0), weight = context.input(1);
  if (context.needs(0))
    context.set(0, context.emit.emit(same_window<op::ConvAttributes>(attributes), {context.grad(), weight}));
  if (context.needs(1)) context.set(1, weight_gradient(context, attributes, context.grad(), x, weight));
  if (context.needs(3)) context.set(3, context.grad());  // autodiff sums it to the bias's shape
}

void conv_weight_grad_gradient(GradContext& context) {
  const auto& attributes = context.node.as<op::ConvWeightGradAttributes>();
  const ValueId x = context.input(0), grad_output = context.input(1);
  if (context.needs(0))
    context.set(0, data_gradient(context.emit, attributes, grad_output, context.grad(), x));
  if (context.needs(1))
    context.set(1, context.emit.emit(same_window<op::ConvAttributes>(attributes), {x, context.grad()}));
}

}  // namespace

RT_PAGE(Conv) = {.kind = OpKind::Conv,
                 .inputs = {2, 4},
                 .infer = infer_conv,
                 .cost = cost_conv,
                 .arithmetic = Arithmetic::Matmul,
                 .extents = ExtentRule::Own};

RT_PAGE(ConvTranspose) = {.kind = OpKind::ConvTranspose,
                          .inputs = {2, 4},
                          .shape_operands = 1u << 2,
                          .infer = infer_conv_transpose,
                          .cost = cost_conv_transpose,
                          .arithmetic = Arithmetic::Matmul,
                          .extents = ExtentRule::Own};

RT_PAGE(ConvWeightGrad) = {.kind = OpKind::ConvWeightGrad,
                           .inputs = {2, 2},
                           .infer = infer_conv_weight_grad,
                           .cost = cost_conv_weight_grad,
                           .arithmetic = Arithmetic::Matmul,
                           .extents = ExtentRule::Own};

RT_COMPILER_PAGE(Conv) = {
    .eval = eval_conv, .gradient = conv_gradient, .domain = {-1, 1}, .tolerance = {1e-4, 1e-4}};
RT_COMPILER_PAGE(ConvTranspose) = {.eval = eval_conv_transpose,
                                   .gradient = conv_transpose_gradient,
                                   .domain = {-1, 1},
                                   .tolerance = {1e-4, 1e-4}};
RT_COMPILER_PAGE(ConvWeightGrad) = {.eval = eval_conv_weight_grad,
                                    .gradient = conv_weight_grad_gradient,
                                    .domain = {-1, 1},
                                    .tolerance = {1e-4, 1e-3}};

}  // namespace librt::ops
