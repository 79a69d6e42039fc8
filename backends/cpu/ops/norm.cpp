// Batch, layer and RMS normalization. Channels are the last axis; batch normalization also works in
// kBlocked16.
//
// Sums over all rows are accumulated in one part per thread (scratch), combined in order. Variances are
// accumulated around the means of blocks, because the difference of squares cancels.
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/norm.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/support/channel_planes.h"
#include "runtime/geometry/norm.h"

namespace librt::cpu {
namespace {

LayoutId layout_of(const NodeView& node, Producers producers) {
  const bool blocked = !producers.empty() && producers[0] == kBlocked16 && can_block(node.input(0));
  return blocked ? kBlocked16 : kDense;
}

/// y = x a + b with a and b by channel.
void scale_shift(const Simd& simd, const ChannelPlanes& planes, const float* x, float* y, const float* a,
                 const float* b) noexcept {
  planes.for_rows(1, [&](int64_t plane, int64_t first, int64_t end) noexcept {
    const int64_t channel = planes.channel_of(plane);
    for (int64_t row = first; row < end; ++row) {
      const int64_t at = planes.offset(plane, row);
      simd.loops<RowLoops>().scale_shift(x + at, y + at, a + channel, b + channel, planes.width);
    }
  });
}

/// y = x a + b with a = scale / sqrt(variance + epsilon), b = bias - mean a; a and b in scratch.
Result<KernelPtr> create_batch_norm(CpuDevice& device, const NodeView& node, Producers producers) {
  const LayoutId layout = layout_of(node, producers);
  const auto planes = ChannelPlanes::of(node.shape(0), layout);
  const int64_t channels = node.shape(0).back();
  const float epsilon = node.as<op::BatchNormAttributes>().epsilon;
  Requirements requirements = in_place();
  requirements.scratch = static_cast<size_t>(2 * channels) * sizeof(float);
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float *scale = call.in<float>(1), *bias = call.in<float>(2), *mean = call.in<float>(3),
                    *variance = call.in<float>(4);
        float* a = call.scratch<float>();
        float* b = a + channels;
        for (int64_t c = 0; c < channels; ++c) {
          a[c] = scale[c] / std::sqrt(variance[c] + epsilon);
          b[c] = bias[c] - mean[c] * a[c];
        }
        scale_shift(simd, planes, call.in<float>(0), call.out<float>(), a, b);
      },
      requirements, {layout, 1, 1});
}

/// Calls add(sums, plane, first_row, end_row) on every thread with its own `width` accumulators, zeroed.
template <class Add>
void for_parts(const ChannelPlanes& planes, float* sums, int64_t width, int parts, const Add& add) {
  const int64_t rows = planes.planes * planes.rows;
  parallel_parts(parts, [&](int part) noexcept {
    float* own = sums + part * width;
    std::fill(own, own + width, 0.0f);
    const Range range = part_of(rows, part, parts);
    for (int64_t at = range.begin; at < range.end;) {
      const int64_t plane = at / planes.rows, row = at % planes.rows;
      const int64_t count = std::min(planes.rows - row, range.end - at);
      add(own, plane, row, row + count);
      at += count;
    }
  });
}

/// Count, mean and sum of squares around the mean of a channel.
struct Moments {
  float count, mean, squares;
  void accumulate(const Moments& more) noexcept {
    const float total = count + more.count;
    if (total == 0) return;
    const float difference = more.mean - mean, share = more.count / total;
    mean += difference * share;
    squares += more.squares + difference * difference * count * share;
    count = total;
  }
};

int parts_for(const CpuDevice& device, const Shape& x) noexcept {
  return x.elements() < kSerialWork ? 1 : device.info().threads;
}

/// (x, scale, bias, running_mean, running_variance) -> (y, new_mean, new_variance, batch_mean,
/// batch_inverse_stddev)
Result<KernelPtr> create_train(CpuDevice& device, const NodeView& node, Producers producers) {
  const LayoutId layout = layout_of(node, producers);
  const auto planes = ChannelPlanes::of(node.shape(0), layout);
  const int64_t channels = node.shape(0).back();
  const int64_t count = channels == 0 ? 0 : node.shape(0).elements() / channels;
  const auto& attributes = node.as<op::BatchNormTrainAttributes>();
  const float epsilon = attributes.epsilon, momentum = attributes.momentum;
  const float divisor = static_cast<float>(std::max<int64_t>(count, 1));
  const float correction =
      attributes.unbiased && count > 1 ? static_cast<float>(count) / static_cast<float>(count - 1) : 1.0f;
  const int parts = parts_for(device, node.shape(0));
  Requirements requirements = in_place();
  static constexpr InPlace kStatistics[] = {{3, 1}, {4, 2}};
  requirements.more_in_place = kStatistics;
  requirements.scratch = static_cast<size_t>((3 * parts + 2) * channels) * sizeof(float);
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float *x = call.in<float>(0), *scale = call.in<float>(1), *bias = call.in<float>(2);
        const float *old_mean = call.in<float>(3), *old_variance = call.in<float>(4);
        float *y = call.out<float>(0), *new_mean = call.out<float>(1), *new_variance = call.out<float>(2);
        float *mean = call.out<float>(3), *inverse = call.out<float>(4);
        float* sums = call.scratch<float>();
        float *a = sums + 3 * parts * channels, *b = a + channels;
        for_parts(
            planes, sums, 3 * channels, parts, [&](float* own, int64_t plane, int64_t first, int64_t end) {
              float* of_plane = own + planes.channel_of(plane);
              simd.loops<NormLoops>().add_moments(x + planes.offset(plane, first), end - first, planes.width,
                                                  of_plane, of_plane + channels, of_plane + 2 * channels);
            });
        for (int64_t c = 0; c < channels; ++c) {
          Moments all{};
          for (int part = 0; part < parts; ++part) {
            const float* own = sums + part * 3 * channels + c;
            all.accumulate({own[0], own[channels], own[2 * channels]});
          }
          mean[c] = all.mean;
          const float variance = all.squares / divisor;
          inverse[c] = 1.0f / std::sqrt(variance + epsilon);
          new_mean[c] = momentum * old_mean[c] + (1.0f - momentum) * mean[c];
          new_variance[c] = momentum * old_variance[c] + (1.0f - momentum) * variance * correction;
          a[c] = scale[c] * inverse[c];
          b[c] = bias[c] - mean[c] * a[c];
        }
        scale_shift(simd, planes, x, y, a, b);
      },
      requirements, {layout, 1, 1});
}

/// With xh = (x - mean) inverse: grad_bias = sum g, grad_scale = sum g xh,
/// grad_x = scale inverse (g - grad_bias / n - xh grad_scale / n) = a g + b x + c per channel.
Result<KernelPtr> create_grad(CpuDevice& device, const NodeView& node, Producers producers) {
  LayoutId layout = kDense;
  if (producers.size() > 1 && (producers[0] == kBlocked16 || producers[1] == kBlocked16) &&
      can_block(node.input(0)))
    layout = kBlocked16;
  const auto planes = ChannelPlanes::of(node.shape(0), layout);
  const int64_t channels = node.shape(0).back();
  const int64_t count = channels == 0 ? 0 : node.shape(0).elements() / channels;
  const int parts = parts_for(device, node.shape(0));
  Requirements requirements = in_place(1, 0);
  requirements.scratch = static_cast<size_t>((2 * parts + 3) * channels) * sizeof(float);
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float *x = call.in<float>(0), *g = call.in<float>(1), *scale = call.in<float>(2),
                    *mean = call.in<float>(3), *inverse = call.in<float>(4);
        float *grad_x = call.out<float>(0), *grad_scale = call.out<float>(1), *grad_bias = call.out<float>(2);
        float* sums = call.scratch<float>();
        float *a = sums + 2 * parts * channels, *b = a + channels, *c = b + channels;
        for_parts(
            planes, sums, 2 * channels, parts, [&](float* own, int64_t plane, int64_t first, int64_t end) {
              const int64_t channel = planes.channel_of(plane);
              for (int64_t row = first; row < end; ++row) {
                const int64_t at = planes.offset(plane, row);
                simd.loops<RowLoops>().accumulate_products(own + channel, own + channels + channel, g + at,
                                                           x + at, mean + channel, planes.width);
              }
            });
        for (int part = 1; part < parts; ++part)
          simd.loops<RowLoops>().accumulate[static_cast<int>(ReduceFunction::Sum)](
              sums, sums + part * 2 * channels, 2 * channels);
        const float n = static_cast<float>(std::max<int64_t>(count, 1));
        for (int64_t k = 0; k < channels; ++k) {
          grad_bias[k] = sums[k];
          grad_scale[k] = sums[channels + k] * inverse[k];
          a[k] = scale[k] * inverse[k];
          b[k] = -a[k] * inverse[k] * grad_scale[k] / n;
          c[k] = -a[k] * grad_bias[k] / n - b[k] * mean[k];
        }
        planes.for_rows(2, [&](int64_t plane, int64_t first, int64_t end) noexcept {
          const int64_t channel = planes.channel_of(plane);
          for (int64_t row = first; row < end; ++row) {
            const int64_t at = planes.offset(plane, row);
            simd.loops<RowLoops>().combine(grad_x + at, g + at, x + at, a + channel, b + channel, c + channel,
                                           planes.width);
          }
        });
      },
      requirements, {layout, 3, 1});
}

Result<KernelPtr> create_layer_norm(CpuDevice& device, const NodeView& node, Producers) {
  const NormForm form = *norm_form(node);
  const int64_t rows = form.rows, width = form.columns;
  return make_kernel(
      [=, &simd = device.simd(), epsilon = form.epsilon](const Call& call) noexcept {
        const float *in = call.in<float>(0), *scale = call.in<float>(1), *bias = call.in<float>(2);
        float* out = call.out<float>();
        parallel_for(rows, width * 4, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t row = begin; row < end; ++row)
            simd.loops<NormLoops>().layer_norm_row(in + row * width, out + row * width, width, scale, bias,
                                                   epsilon);
        });
      },
      in_place());
}

Result<KernelPtr> create_rms_norm(CpuDevice& device, const NodeView& node, Producers) {
  const NormForm form = *norm_form(node);
  const int64_t rows = form.rows, width = form.columns;
  return make_kernel(
      [=, &simd = device.simd(), epsilon = form.epsilon](const Call& call) noexcept {
        const float *in = call.in<float>(0), *scale = call.in<float>(1);
        float* out = call.out<float>();
        parallel_for(rows, width * 3, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t at = begin * width; at < end * width; at += width)
            simd.loops<NormLoops>().rms_norm_row(in + at, out + at, width, scale, epsilon);
        });
      },
      in_place());
}

/// (x, grad_y, [scale]) -> (grad_x, grad_scale, grad_bias). The sums of the first part are the results.
Result<KernelPtr> create_layer_norm_grad(CpuDevice& device, const NodeView& node, Producers) {
  const NormForm form = *norm_form(node);
  const int64_t rows = form.rows, width = form.columns;
  const auto parts = static_cast<int>(std::clamp<int64_t>(rows, 1, parts_for(device, node.shape(0))));
  Requirements requirements = in_place(1, 0);
  requirements.scratch = static_cast<size_t>((parts - 1) * 2 * width) * sizeof(float);
  return make_kernel(
      [=, &simd = device.simd(), epsilon = form.epsilon,
       centered = form.centered](const Call& call) noexcept {
        const float *in = call.in<float>(0), *g = call.in<float>(1), *scale = call.in<float>(2);
        float *grad = call.out<float>(0), *grad_scale = call.out<float>(1), *grad_bias = call.out<float>(2);
        const auto sums = [&](int part) noexcept {
          if (part == 0) return std::pair(grad_scale, grad_bias);
          float* own = call.scratch<float>() + (part - 1) * 2 * width;
          return std::pair(own, own + width);
        };
        parallel_parts(parts, [&](int part) noexcept {
          const auto [of_scale, of_bias] = sums(part);
          std::fill(of_scale, of_scale + width, 0.0f);
          std::fill(of_bias, of_bias + width, 0.0f);
          const Range range = part_of(rows, part, parts);
          for (int64_t at = range.begin * width; at < range.end * width; at += width)
            simd.loops<NormLoops>().layer_norm_grad_row(in + at, g + at, grad + at, width, scale, epsilon,
                                                        centered, of_scale, of_bias);
        });
        for (int part = 1; part < parts; ++part) {
          const auto [of_scale, of_bias] = sums(part);
          const auto add = simd.loops<RowLoops>().accumulate[static_cast<int>(ReduceFunction::Sum)];
          add(grad_scale, of_scale, width);
          add(grad_bias, of_bias, width);
        }
      },
      requirements);
}

Status supports_norm(const CpuDevice&, const NodeView& node) {
  const auto form = norm_form(node);
  for (size_t i = form ? form->scale : 0; form && i < node.input_count(); ++i)
    if (node.has(i) && !form->covers(node, i))
      return unsupported("scale and bias must cover the normalized axes, not ", node.input(i));
  return {};
}

}  // namespace

std::span<const KernelRow> rows_norm();
std::span<const KernelRow> rows_norm() {
  constexpr DTypeSet kF32{DType::F32};
  static constexpr KernelRow kRows[] = {
      row<create_batch_norm>(OpKind::BatchNorm, "batch_norm", kF32),
      row<create_train>(OpKind::BatchNormTrain, "batch_norm_train", kF32),
      row<create_grad>(OpKind::BatchNormGrad, "batch_norm_grad", kF32),
      row<create_layer_norm, supports_norm>(OpKind::LayerNorm, "layer_norm", kF32),
      row<create_rms_norm, supports_norm>(OpKind::RmsNorm, "rms_norm", kF32),
      row<create_layer_norm_grad, supports_norm>(OpKind::LayerNormGrad, "layer_norm_grad", kF32),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
