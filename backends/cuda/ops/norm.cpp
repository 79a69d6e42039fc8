// Batch and layer normalization. Channels are the last axis.
#include "kernels/norm.h"

#include "backends/cuda/kernel.h"
#include "runtime/geometry/norm.h"

namespace librt::cuda {
namespace {

struct Channels {
  int64_t samples, channels;
};
Channels channels_of(const Shape& x) {
  return {x.elements(0, x.rank() - 1), x.back()};
}

NormTypes types_of(const NodeView& node, size_t parameter) {
  const DType parameters = node.has(parameter) ? node.dtype(parameter) : node.dtype(0);
  return {element_type(node.dtype(0)), element_type(parameters)};
}

Result<KernelPtr> create_batch_norm(CudaDevice&, const NodeView& node) {
  const Channels of = channels_of(node.shape(0));
  BatchNormArguments arguments;
  arguments.types = types_of(node, 1);
  arguments.samples = of.samples;
  arguments.channels = of.channels;
  arguments.epsilon = node.as<op::BatchNormAttributes>().epsilon;
  return make_kernel(
      [arguments](const Call& call) {
        BatchNormArguments a = arguments;
        a.x = call.in(0);
        a.scale = call.in(1);
        a.bias = call.in(2);
        a.mean = call.in(3);
        a.variance = call.in(4);
        a.y = call.out();
        return batch_norm(a, call.stream);
      },
      in_place());
}

/// (x, scale, bias, running_mean, running_variance) -> (y, new_mean, new_variance, batch_mean,
/// batch_inverse_stddev)
Result<KernelPtr> create_train(CudaDevice&, const NodeView& node) {
  const Channels of = channels_of(node.shape(0));
  const auto& attributes = node.as<op::BatchNormTrainAttributes>();
  BatchNormTrainArguments arguments;
  arguments.types = types_of(node, 1);
  arguments.samples = of.samples;
  arguments.channels = of.channels;
  arguments.epsilon = attributes.epsilon;
  arguments.momentum = attributes.momentum;
  arguments.unbiased = attributes.unbiased;
  Requirements requirements = in_place();
  static constexpr InPlace kStatistics[] = {{3, 1}, {4, 2}};
  requirements.more_in_place = kStatistics;
  requirements.scratch = batch_norm_scratch_bytes(arguments.types, of.samples, of.channels);
  return make_kernel(
      [arguments](const Call& call) {
        BatchNormTrainArguments a = arguments;
        a.x = call.in(0);
        a.scale = call.in(1);
        a.bias = call.in(2);
        a.running_mean = call.in(3);
        a.running_variance = call.in(4);
        a.y = call.out(0);
        a.new_mean = call.out(1);
        a.new_variance = call.out(2);
        a.batch_mean = call.out(3);
        a.batch_inverse = call.out(4);
        a.scratch = call.scratch<float>();
        return batch_norm_train(a, call.stream);
      },
      requirements);
}

/// (x, grad_y, scale, batch_mean, batch_inverse_stddev) -> (grad_x, grad_scale, grad_bias)
Result<KernelPtr> create_grad(CudaDevice&, const NodeView& node) {
  const Channels of = channels_of(node.shape(0));
  BatchNormGradArguments arguments;
  arguments.types = types_of(node, 2);
  arguments.samples = of.samples;
  arguments.channels = of.channels;
  Requirements requirements = in_place(1, 0);
  requirements.scratch = batch_norm_scratch_bytes(arguments.types, of.samples, of.channels);
  return make_kernel(
      [arguments](const Call& call) {
        BatchNormGradArguments a = arguments;
        a.x = call.in(0);
        a.grad_y = call.in(1);
        a.scale = call.in(2);
        a.mean = call.in(3);
        a.inverse = call.in(4);
        a.grad_x = call.out(0);
        a.grad_scale = call.out(1);
        a.grad_bias = call.out(2);
        a.scratch = call.scratch<float>();
        return batch_norm_grad(a, call.stream);
      },
      requirements);
}

Status supports_norm(const CudaDevice&, const NodeView& node) {
  const auto form = norm_form(node);
  if (!form) return unsupported("an axis outside the input's rank");
  for (size_t i = form->scale; i < node.input_count(); ++i) {
    if (!node.has(i)) continue;
    if (!form->covers(node, i) && node.input(i).elements() != 1)
      return unsupported("scale and bias must cover the normalized axes, not ", node.input(i));
    if (node.has(form->scale) && node.dtype(i) != node.dtype(form->scale))
      return unsupported("scale and bias of different types");
  }
  return {};
}

LayerNormArguments norm_arguments(const NodeView& node) {
  const NormForm form = *norm_form(node);
  const auto stride_of = [&](size_t i) { return node.has(i) && node.input(i).elements() == 1 ? 0 : 1; };
  LayerNormArguments arguments;
  arguments.types = types_of(node, node.has(form.scale) ? form.scale : form.scale + 1);
  arguments.rows = form.rows;
  arguments.columns = form.columns;
  arguments.scale_stride = stride_of(form.scale);
  arguments.bias_stride = stride_of(form.scale + 1);
  arguments.epsilon = form.epsilon;
  arguments.centered = form.centered;
  return arguments;
}

/// (x, grad_y, [scale]) -> (grad_x, grad_scale, grad_bias)
Result<KernelPtr> create_layer_norm_grad(CudaDevice&, const NodeView& node) {
  LayerNormGradArguments arguments;
  arguments.norm = norm_arguments(node);
  Requirements requirements;
  requirements.scratch =
      layer_norm_grad_scratch_bytes(arguments.norm.types, arguments.norm.rows, arguments.norm.columns);
  return make_kernel(
      [arguments](const Call& call) {
        LayerNormGradArguments a = arguments;
        a.norm.x = call.in(0);
        a.norm.scale = call.in(2);
        a.norm.y = call.out(0);
        a.grad_y = call.in(1);
        a.grad_scale = call.out(1);
        a.grad_bias = call.out(2);
        a.scratch = call.scratch<float>();
        return layer_norm_grad(a, call.stream);
      },
      requirements);
}

Result<KernelPtr> create_norm(CudaDevice&, const NodeView& node) {
  return make_kernel(
      [arguments = norm_arguments(node)](const Call& call) {
        LayerNormArguments a = arguments;
        a.x = call.in(0);
        a.scale = call.in(1);
        a.bias = call.in(2);
        a.y = call.out();
        return layer_norm(a, call.stream);
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_norm();
std::span<const KernelRow> rows_norm() {
  static constexpr KernelRow kRows[] = {
      row<create_batch_norm>(OpKind::BatchNorm, "batch_norm", kShortFloats),
      row<create_train>(OpKind::BatchNormTrain, "batch_norm_train", kShortFloats),
      row<create_grad>(OpKind::BatchNormGrad, "batch_norm_grad", kShortFloats),
      row<create_norm, supports_norm>(OpKind::LayerNorm, "layer_norm", kShortFloats),
      row<create_norm, supports_norm>(OpKind::RmsNorm, "rms_norm", kShortFloats),
      row<create_layer_norm_grad, supports_norm>(OpKind::LayerNormGrad, "layer_norm_grad", kShortFloats),
  };
  return kRows;
}

}  // namespace librt::cuda
