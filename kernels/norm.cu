// Normalization. Statistics take two passes in f32: the mean, then the squared deviations, because E[x^2] -
// E[x]^2 cancels. Sums over the samples are computed in parts, combined in order by the kernel that needs
// them.
#include "kernels/norm.h"

#include <algorithm>

#include "kernels/row.cuh"

namespace librt::cuda {
namespace {

constexpr int kLanes = 32, kRows = 8, kThreads = kLanes * kRows;

/// f(TypeTag<T>{}, TypeTag<P>{}) with the types of x and of the parameters.
template <class F>
cudaError_t with_types(const NormTypes& types, F&& f) {
  return with_float(types.x, [&](auto x) {
    using T = typename decltype(x)::type;
    return types.parameters == ElementType::F32 ? f(TypeTag<T>{}, TypeTag<float>{})
                                                : f(TypeTag<T>{}, TypeTag<T>{});
  });
}

// --- per-channel functions

/// batch_norm per channel: (x - mean) factor + bias.
template <class P>
struct FixedStatistics {
  const P *scale, *bias, *mean, *variance;
  float epsilon;

  struct Channel {
    float mean, factor, bias;
    RT_DEVICE float operator()(float x, float) const { return (x - mean) * factor + bias; }
  };
  RT_DEVICE Channel channel(int64_t c) const {
    return {to_float(mean[c]), to_float(scale[c]) / sqrtf(to_float(variance[c]) + epsilon),
            to_float(bias[c])};
  }
};

/// g a + x b + c; without g: x b + c.
struct Combination {
  const float* coefficients;  ///< [3][channels]
  int64_t channels;

  struct Channel {
    float a, b, c;
    RT_DEVICE float operator()(float x, float g) const { return x * b + c + g * a; }
  };
  RT_DEVICE Channel channel(int64_t c) const {
    return {coefficients[c], coefficients[channels + c], coefficients[2 * channels + c]};
  }
};

constexpr int kSamples = 4;  // per thread, which loads the coefficients of its channels once

/// y = f(x, g) for [samples,channels], a multiple of kWidth; g may be null, which counts as 0. A thread has
/// kWidth channels of the samples s, s + step, ..
template <int kWidth, class T, class Function>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    channels_kernel(const T* x, const T* g, T* y, int64_t samples, int64_t channels, Function function) {
  const int64_t groups = channels / kWidth, step = ceil_div(samples, kSamples), index = global_index();
  const bool narrow_index = groups * step <= 0xffffffffll;
  const int64_t sample =
      narrow_index ? static_cast<uint32_t>(index) / static_cast<uint32_t>(groups) : index / groups;
  if (sample >= step) return;
  const int64_t channel = (index - sample * groups) * kWidth;
  Packed<T, kWidth> loaded_x[kSamples] = {}, loaded_g[kSamples] = {};
  RT_UNROLL
  for (int i = 0; i < kSamples; ++i) {
    const int64_t at = sample + i * step;
    if (at >= samples) break;
    loaded_x[i] = load_packed<kWidth>(x + at * channels + channel);
    if (g != nullptr) loaded_g[i] = load_packed<kWidth>(g + at * channels + channel);
  }
  typename Function::Channel of[kWidth];
  RT_UNROLL
  for (int k = 0; k < kWidth; ++k) of[k] = function.channel(channel + k);
  RT_UNROLL
  for (int i = 0; i < kSamples; ++i) {
    const int64_t at = sample + i * step;
    if (at >= samples) break;
    const auto from_x = unpacked<T, kWidth>(loaded_x[i]), from_g = unpacked<T, kWidth>(loaded_g[i]);
    Vector<T, kWidth> result;
    RT_UNROLL
    for (int k = 0; k < kWidth; ++k)
      result[k] = from_float<T>(of[k](to_float(from_x[k]), to_float(from_g[k])));
    store_vector(y + at * channels + channel, result);
  }
}

template <class T, class Function>
cudaError_t for_channels(const void* x, const void* g, void* y, int64_t samples, int64_t channels,
                         const Function& function, cudaStream_t stream) {
  const auto run = [&](auto kernel, int width) {
    return launch(kernel, launch_each(channels / width * ceil_div(samples, kSamples), stream),
                  static_cast<const T*>(x), static_cast<const T*>(g), static_cast<T*>(y), samples, channels,
                  function);
  };
  constexpr int kWidth = 4;
  return channels % kWidth == 0 ? run(channels_kernel<kWidth, T, Function>, kWidth)
                                : run(channels_kernel<1, T, Function>, 1);
}

// --- sums over the samples

enum class Terms : int { Plain, Squares, Products };  ///< x; (x - center)^2; g and g (x - center)

/// partial [parts][1 or 2][channels], one part per blockIdx.y.
template <class T, class P, Terms kTerms>
__global__ void __launch_bounds__(kThreads)
    sum_channels(const T* x, const T* g, const float* center, const P* mean, float* partial, int64_t samples,
                 int64_t channels, int64_t part) {
  constexpr int kSums = kTerms == Terms::Products ? 2 : 1;
  __shared__ float shared[kSums][kRows][kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, row = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kLanes + lane;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * part;
  const int64_t last = first + part < samples ? first + part : samples;
  float sum = 0, second = 0;
  if (channel < channels) {
    float around = 0;
    if (kTerms == Terms::Squares) around = center[channel];
    if (kTerms == Terms::Products) around = to_float(mean[channel]);
    for (int64_t i = first + row; i < last; i += kRows) {
      const float value = to_float(x[i * channels + channel]) - around;
      if constexpr (kTerms == Terms::Plain) sum += value;
      if constexpr (kTerms == Terms::Squares) sum += value * value;
      if constexpr (kTerms == Terms::Products) {
        const float gradient = to_float(g[i * channels + channel]);
        sum += gradient;
        second += gradient * value;
      }
    }
  }
  shared[0][row][lane] = sum;
  if constexpr (kSums == 2) shared[1][row][lane] = second;
  __syncthreads();
  if (row < kSums && channel < channels) {
    float total = 0;
    RT_UNROLL
    for (int i = 0; i < kRows; ++i) total += shared[row][i][lane];
    partial[(static_cast<int64_t>(blockIdx.y) * kSums + row) * channels + channel] = total;
  }
}

RT_DEVICE float sum_parts(const float* partial, int parts, int64_t stride, int64_t at) {
  float total = 0;
  for (int i = 0; i < parts; ++i) total += partial[i * stride + at];
  return total;
}

/// Per-channel sums: the location of the parts and of the per-channel coefficients a, b, c.
struct Sums {
  float* partial;
  float* coefficients;  ///< [3][channels]
  int parts;
  int64_t samples, channels;
};

__global__ void __launch_bounds__(kElementwiseThreads) mean_kernel(Sums sums) {
  const int64_t c = global_index();
  if (c >= sums.channels) return;
  sums.coefficients[c] =
      sum_parts(sums.partial, sums.parts, sums.channels, c) / static_cast<float>(sums.samples);
}

template <class P>
struct TrainStatistics {
  const P *scale, *bias, *running_mean, *running_variance;
  P *new_mean, *new_variance, *batch_mean, *batch_inverse;
  float epsilon, momentum, correction;
};
template <class P>
__global__ void __launch_bounds__(kElementwiseThreads) statistics_kernel(Sums sums, TrainStatistics<P> s) {
  const int64_t c = global_index();
  if (c >= sums.channels) return;
  const float mean = sums.coefficients[c];
  const float variance =
      sum_parts(sums.partial, sums.parts, sums.channels, c) / static_cast<float>(sums.samples);
  const float inverse = 1.0f / sqrtf(variance + s.epsilon);
  const float momentum = s.momentum;
  const float old_mean = to_float(s.running_mean[c]), old_variance = to_float(s.running_variance[c]);
  const float factor = to_float(s.scale[c]) * inverse;
  s.batch_mean[c] = from_float<P>(mean);
  s.batch_inverse[c] = from_float<P>(inverse);
  s.new_mean[c] = from_float<P>(momentum * old_mean + (1.0f - momentum) * mean);
  s.new_variance[c] = from_float<P>(momentum * old_variance + (1.0f - momentum) * variance * s.correction);
  sums.coefficients[sums.channels + c] = factor;
  sums.coefficients[2 * sums.channels + c] = to_float(s.bias[c]) - mean * factor;
}

template <class P>
__global__ void __launch_bounds__(kElementwiseThreads)
    gradient_kernel(Sums sums, const P* scale, const P* mean, const P* inverse, P* grad_scale, P* grad_bias) {
  const int64_t c = global_index();
  if (c >= sums.channels) return;
  const float n = static_cast<float>(sums.samples), i = to_float(inverse[c]);
  const float for_bias = sum_parts(sums.partial, sums.parts, 2 * sums.channels, c);
  const float for_scale = sum_parts(sums.partial, sums.parts, 2 * sums.channels, sums.channels + c) * i;
  grad_bias[c] = from_float<P>(for_bias);
  grad_scale[c] = from_float<P>(for_scale);
  const float a = to_float(scale[c]) * i, b = -a * i * for_scale / n;
  sums.coefficients[c] = a;
  sums.coefficients[sums.channels + c] = b;
  sums.coefficients[2 * sums.channels + c] = -a * for_bias / n - b * to_float(mean[c]);
}

int parts_of(int64_t samples, int64_t channels) {
  const int64_t wanted = 1024 / std::max<int64_t>(ceil_div(channels, kLanes), 1);
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, samples / 64), 1, 1024));
}

Sums sums_of(float* scratch, int64_t samples, int64_t channels) {
  const int parts = parts_of(samples, channels);
  return {scratch, scratch + static_cast<int64_t>(parts) * 2 * channels, parts, samples, channels};
}

template <class T, class P, Terms kTerms>
cudaError_t sum(const Sums& sums, const T* x, const T* g, const P* mean, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(ceil_div(sums.channels, kLanes)), static_cast<unsigned>(sums.parts));
  return launch(sum_channels<T, P, kTerms>, {grid, dim3(kThreads), 0, stream}, x, g, sums.coefficients, mean,
                sums.partial, sums.samples, sums.channels, ceil_div(sums.samples, sums.parts));
}

// --- LayerNorm

/// The parameters of `kWidth` columns; with stride 0 one for all.
template <int kWidth, class P>
RT_DEVICE Vector<P, kWidth> parameters_of(const P* parameters, int64_t column, int64_t stride) {
  if (stride != 0) return load_vector<kWidth>(parameters + column);
  Vector<P, kWidth> same;
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) same[i] = *parameters;
  return same;
}

template <class Row, class T, class P>
__global__ void __launch_bounds__(kRowThreads, 3)
    layer_norm_kernel(const T* x, T* y, const P* scale, const P* bias, int64_t rows, int64_t columns,
                      int64_t scale_stride, int64_t bias_stride, float epsilon) {
  __shared__ float shared[kWarpSize];
  Row row(x, rows, columns);
  const float n = static_cast<float>(columns);
  float part = 0;
  row.each([&](float value) { part += value; });
  const float mean = Row::combined(part, Sum{}, shared) / n;
  part = 0;
  row.each([&](float value) { part += (value - mean) * (value - mean); });
  const float inverse = 1.0f / sqrtf(Row::combined(part, Sum{}, shared) / n + epsilon);
  row.store(y, [&](int64_t column, auto& values) {
    constexpr int kWidth = Row::kElements;
    for (float& value : values) value = (value - mean) * inverse;
    if (scale != nullptr) {
      const auto factors = parameters_of<kWidth>(scale, column, scale_stride);
      RT_UNROLL
      for (int i = 0; i < kWidth; ++i) values[i] *= to_float(factors[i]);
    }
    if (bias != nullptr) {
      const auto offsets = parameters_of<kWidth>(bias, column, bias_stride);
      RT_UNROLL
      for (int i = 0; i < kWidth; ++i) values[i] += to_float(offsets[i]);
    }
  });
}

}  // namespace

size_t batch_norm_scratch_bytes(int64_t samples, int64_t channels) {
  return static_cast<size_t>(channels) * static_cast<size_t>(2 * parts_of(samples, channels) + 3) *
         sizeof(float);
}

#define RT_CHECK(call)                                          \
  if (const cudaError_t error = (call); error != cudaSuccess) { \
    return error;                                               \
  }

cudaError_t batch_norm(const BatchNormArguments& a, cudaStream_t stream) {
  return with_types(a.types, [&](auto x_tag, auto parameter_tag) {
    using T = typename decltype(x_tag)::type;
    using P = typename decltype(parameter_tag)::type;
    const FixedStatistics<P> statistics{static_cast<const P*>(a.scale), static_cast<const P*>(a.bias),
                                        static_cast<const P*>(a.mean), static_cast<const P*>(a.variance),
                                        a.epsilon};
    return for_channels<T>(a.x, nullptr, a.y, a.samples, a.channels, statistics, stream);
  });
}

cudaError_t batch_norm_train(const BatchNormTrainArguments& a, cudaStream_t stream) {
  return with_types(a.types, [&](auto x_tag, auto parameter_tag) {
    using T = typename decltype(x_tag)::type;
    using P = typename decltype(parameter_tag)::type;
    const Sums sums = sums_of(a.scratch, a.samples, a.channels);
    const auto* x = static_cast<const T*>(a.x);
    const auto each_channel = launch_each(a.channels, stream);
    RT_CHECK((sum<T, P, Terms::Plain>(sums, x, nullptr, nullptr, stream)))
    RT_CHECK(launch(mean_kernel, each_channel, sums))
    RT_CHECK((sum<T, P, Terms::Squares>(sums, x, nullptr, nullptr, stream)))
    const auto n = static_cast<float>(a.samples);
    const TrainStatistics<P> statistics{.scale = static_cast<const P*>(a.scale),
                                        .bias = static_cast<const P*>(a.bias),
                                        .running_mean = static_cast<const P*>(a.running_mean),
                                        .running_variance = static_cast<const P*>(a.running_variance),
                                        .new_mean = static_cast<P*>(a.new_mean),
                                        .new_variance = static_cast<P*>(a.new_variance),
                                        .batch_mean = static_cast<P*>(a.batch_mean),
                                        .batch_inverse = static_cast<P*>(a.batch_inverse),
                                        .epsilon = a.epsilon,
                                        .momentum = a.momentum,
                                        .correction = a.unbiased && a.samples > 1 ? n / (n - 1) : 1.0f};
    RT_CHECK(launch(statistics_kernel<P>, each_channel, sums, statistics))
    return for_channels<T>(x, nullptr, a.y, a.samples, a.channels, Combination{sums.coefficients, a.channels},
                           stream);
  });
}

cudaError_t batch_norm_grad(const BatchNormGradArguments& a, cudaStream_t stream) {
  return with_types(a.types, [&](auto x_tag, auto parameter_tag) {
    using T = typename decltype(x_tag)::type;
    using P = typename decltype(parameter_tag)::type;
    const Sums sums = sums_of(a.scratch, a.samples, a.channels);
    const auto *x = static_cast<const T*>(a.x), *g = static_cast<const T*>(a.grad_y);
    const auto* mean = static_cast<const P*>(a.mean);
    RT_CHECK((sum<T, P, Terms::Products>(sums, x, g, mean, stream)))
    RT_CHECK(launch(gradient_kernel<P>, launch_each(a.channels, stream), sums, static_cast<const P*>(a.scale),
                    mean, static_cast<const P*>(a.inverse), static_cast<P*>(a.grad_scale),
                    static_cast<P*>(a.grad_bias)))
    return for_channels<T>(x, g, a.grad_x, a.samples, a.channels, Combination{sums.coefficients, a.channels},
                           stream);
  });
}

cudaError_t layer_norm(const LayerNormArguments& a, cudaStream_t stream) {
  return with_types(a.types, [&](auto x_tag, auto parameter_tag) {
    using T = typename decltype(x_tag)::type;
    using P = typename decltype(parameter_tag)::type;
    return launch_rows<T>(a.rows, a.columns, stream, [&](auto row, const LaunchConfig& config) {
      return launch(layer_norm_kernel<typename decltype(row)::type, T, P>, config, static_cast<const T*>(a.x),
                    static_cast<T*>(a.y), static_cast<const P*>(a.scale), static_cast<const P*>(a.bias),
                    a.rows, a.columns, a.scale_stride, a.bias_stride, a.epsilon);
    });
  });
}

}  // namespace librt::cuda
