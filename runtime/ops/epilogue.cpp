#include "runtime/ops/epilogue.h"

#include "runtime/geometry/function.h"
#include "runtime/geometry/function_value.h"
#include "runtime/graph/in_build.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {

using op::Activation;

EpilogueInputs epilogue_inputs(const op::EpilogueAttributes* epilogue, size_t input_count) noexcept {
  EpilogueInputs inputs;
  if (epilogue == nullptr) return inputs;
  inputs.has_bias = epilogue->has_bias;
  inputs.has_residual = epilogue->has_residual;
  if (input_count > 0) inputs.residual = input_count - 1;
  return inputs;
}

double activate(const op::EpilogueAttributes& epilogue, double x) noexcept {
  return function_value(function_call(&epilogue), x);
}

Status check_activation(Activation activation) {
  if (activation < Activation::MIN || activation > Activation::MAX)
    return invalid_argument("expected a known activation, found value ", static_cast<int>(activation));
  if (build::kTrimmed && !in_build(function_of(activation)))
    return not_in_build(op::EnumNameActivation(activation));
  return {};
}

Status check_epilogue(const NodeView& node, const op::EpilogueAttributes* epilogue, DType dtype,
                      const Shape& result, bool channels_only) {
  const EpilogueInputs inputs = epilogue_inputs(epilogue, node.input_count());
  size_t found = 0;
  for (size_t i = 2; i < node.input_count(); ++i) found += node.has(i) ? 1 : 0;
  const size_t expected = (inputs.has_bias ? 1u : 0u) + (inputs.has_residual ? 1u : 0u);
  if (found != expected)
    return invalid_argument("expected ", expected, " operands of the epilogue (bias and residual), found ",
                            found);
  if (epilogue == nullptr) return {};
  RT_TRY(check_activation(epilogue->activation));
  if (!is_float(dtype) && epilogue->activation != Activation::None &&
      epilogue->activation != Activation::Relu && epilogue->activation != Activation::Clip)
    return invalid_argument("expected a float type for activation ",
                            op::EnumNameActivation(epilogue->activation), ", found ", name_of(dtype));
  if (epilogue->activation == Activation::Clip && !(epilogue->alpha <= epilogue->beta))
    return invalid_argument("expected Clip with alpha <= beta, found ", epilogue->alpha, " and ",
                            epilogue->beta);
  if (inputs.has_bias) {
    if (!node.has(inputs.bias)) return invalid_argument("expected the bias as input 2, found none");
    RT_TRY(expect_same_dtype(node, inputs.bias, "bias", 0, "input 0"));
    const Shape& bias = node.shape(inputs.bias);
    if (channels_only) {
      if (bias.rank() != 1 || bias[0] != result.back())
        return invalid_argument("expected a bias [", result.back(), "], found ", bias);
    } else if (broadcast(bias, result) != result) {
      return invalid_argument("expected a bias that broadcasts to ", result, ", found ", bias);
    }
  }
  if (inputs.has_residual) {
    if (!node.has(inputs.residual))
      return invalid_argument("expected the residual as last input, found none");
    RT_TRY(expect_same_dtype(node, inputs.residual, "residual", 0, "input 0"));
    if (node.shape(inputs.residual) != result)
      return invalid_argument("expected a residual of the result's shape ", result, ", found ",
                              node.shape(inputs.residual));
  }
  return {};
}

namespace {

template <class T>
void add_broadcast(std::vector<T>& values, const Shape& shape, const std::vector<T>& bias,
                   const Shape& bias_shape) {
  if (values.empty()) return;
  if (shape.rank() == 0) {
    values[0] += bias[0];
    return;
  }
  const int shift = shape.rank() - bias_shape.rank();
  const auto strides = strides_of(bias_shape);
  const auto stride = [&](int axis) {
    return axis < shift || bias_shape[axis - shift] == 1 ? 0 : strides[static_cast<size_t>(axis - shift)];
  };
  const int last = shape.rank() - 1;
  const int64_t row = shape[last], step = stride(last);
  const int64_t rows = shape.elements(0, last);
  T* to = values.data();
  for (int64_t r = 0; r < rows; ++r, to += row) {
    int64_t base = 0, rest = r;
    for (int axis = last - 1; axis >= 0; rest /= shape[axis], --axis)
      base += rest % shape[axis] * stride(axis);
    for (int64_t j = 0; j < row; ++j) to[j] += bias[static_cast<size_t>(base + j * step)];
  }
}

}  // namespace

template <class T>
void finish(const NodeView& node, const op::EpilogueAttributes* epilogue,
            std::span<const ConstTensorView> inputs, std::vector<T> values, const TensorView& output) {
  const EpilogueInputs where = epilogue_inputs(epilogue, node.input_count());
  if (where.has_bias)
    add_broadcast(values, output.info.shape, load_all<T>(inputs[where.bias]), inputs[where.bias].info.shape);
  if (where.has_residual) {
    const std::vector<T> residual = load_all<T>(inputs[where.residual]);
    for (size_t i = 0; i < values.size(); ++i) values[i] += residual[i];
  }
  const bool active = epilogue != nullptr && epilogue->activation != Activation::None;
  if constexpr (std::is_same_v<T, double>) {
    if (active)
      for (double& value : values) value = activate(*epilogue, value);
    store_all<T>(output, values);
  } else {
    // The sum wraps to the stored type first, as it does when the activation is a separate node.
    store_all<T>(output, values);
    if (!active) return;
    for (int64_t i = 0; i < output.info.elements(); ++i)
      store_element(output.data, output.info.dtype, i,
                    activate(*epilogue, load_element(output.data, output.info.dtype, i)));
  }
}

template void finish<double>(const NodeView&, const op::EpilogueAttributes*, std::span<const ConstTensorView>,
                             std::vector<double>, const TensorView&);
template void finish<uint64_t>(const NodeView&, const op::EpilogueAttributes*,
                               std::span<const ConstTensorView>, std::vector<uint64_t>, const TensorView&);

double epilogue_flops(const op::EpilogueAttributes* epilogue, double elements) noexcept {
  if (epilogue == nullptr) return 0;
  const int steps = (epilogue->has_bias ? 1 : 0) + (epilogue->has_residual ? 1 : 0) +
                    (epilogue->activation != Activation::None ? 1 : 0);
  return steps * elements;
}

ValueId epilogue_gradient(GradContext& context, const op::EpilogueAttributes* epilogue) {
  if (epilogue != nullptr && epilogue->activation != Activation::None) {
    context.emit.fail(unsupported(
        "expected a ", name_of(context.node.kind()), " without fused activation to differentiate, found ",
        op::EnumNameActivation(epilogue->activation),
        "; the graph is optimized for inference: train what it was converted from"));
    return kNoValue;
  }
  const EpilogueInputs where = epilogue_inputs(epilogue, context.node.inputs.size());
  // Autodiff sums a gradient of the result's shape to the operand's.
  if (where.has_bias && context.needs(where.bias)) context.set(where.bias, context.grad());
  if (where.has_residual && context.needs(where.residual)) context.set(where.residual, context.grad());
  return context.grad();
}

}  // namespace librt::ops
