// Normalization. Statistics of rows take two passes in registers: the mean, around the first value, then the
// squared deviations, because E[x^2] - E[x]^2 cancels. Statistics of channels take one pass over memory: mean
// and squared deviations of a few samples, joined to those before by the formula of Chan, Golub and LeVeque.
// Samples are divided into parts, whose results are joined in order by the kernel that needs them.
#include "kernels/norm.h"

#include <algorithm>

#include "kernels/row.cuh"

namespace librt::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;

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
  template <int kWidth>
  RT_DEVICE void load(int64_t c, Channel (&of)[kWidth]) const {
    const auto scales = load_vector<kWidth>(scale + c), biases = load_vector<kWidth>(bias + c),
               means = load_vector<kWidth>(mean + c), variances = load_vector<kWidth>(variance + c);
    RT_UNROLL
    for (int k = 0; k < kWidth; ++k)
      of[k] = {to_float(means[k]), to_float(scales[k]) / sqrtf(to_float(variances[k]) + epsilon),
               to_float(biases[k])};
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
  template <int kWidth>
  RT_DEVICE void load(int64_t at, Channel (&of)[kWidth]) const {
    const auto a = load_vector<kWidth>(coefficients + at),
               b = load_vector<kWidth>(coefficients + channels + at),
               c = load_vector<kWidth>(coefficients + 2 * channels + at);
    RT_UNROLL
    for (int k = 0; k < kWidth; ++k) of[k] = {a[k], b[k], c[k]};
  }
};

constexpr int kSamples = 4;  // per thread, which loads the coefficients of its channels once

/// y = f(x, g) for [samples,channels], a multiple of kWidth; g may be null, which counts as 0. A thread has
/// kWidth channels of the samples s, s + step, ..
template <int kWidth, class T, class Function>
__global__ void __launch_bounds__(kElementwiseThreads, 3)
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
    const int64_t at = (sample + i * step) * channels + channel;
    if (sample + i * step >= samples) break;
    loaded_x[i] = load_packed<kWidth>(x + at);
    if (g != nullptr) loaded_g[i] = load_packed<kWidth>(g + at);
  }
  typename Function::Channel of[kWidth];
  function.load(channel, of);
  RT_UNROLL
  for (int i = 0; i < kSamples; ++i) {
    if (sample + i * step >= samples) break;
    const auto from_x = unpacked<T, kWidth>(loaded_x[i]), from_g = unpacked<T, kWidth>(loaded_g[i]);
    Vector<T, kWidth> result;
    RT_UNROLL
    for (int k = 0; k < kWidth; ++k)
      result[k] = from_float<T>(of[k](to_float(from_x[k]), to_float(from_g[k])));
    store_vector(y + (sample + i * step) * channels + channel, result);
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
  constexpr int kWidth = kVectorWidth<T>;
  return channels % kWidth == 0 ? run(channels_kernel<kWidth, T, Function>, kWidth)
                                : run(channels_kernel<1, T, Function>, 1);
}

// --- sums over the samples

/// Per channel, the mean and the sum of the squared deviations from it; or the sums of g and of g (x - mean),
/// or of g and of g (x - mean) inverse with the [2] statistics of each sample.
enum class Terms : int { Moments, Products, RowProducts };
struct Pair {
  float first = 0, second = 0;
};

/// The pair of `count` samples becomes that of `count + more`.
template <Terms kTerms>
RT_DEVICE void join(Pair& to, float count, const Pair& from, float more) {
  if constexpr (kTerms != Terms::Moments) {
    to.first += from.first;
    to.second += from.second;
  } else {
    const float share = more > 0 ? more / (count + more) : 0.0f, apart = from.first - to.first;
    to.first += apart * share;
    to.second += from.second + apart * apart * (count * share);
  }
}

/// Adjacent threads with adjacent channels, kWidth each, and the channels of a block.
template <int kWidth>
inline constexpr int kLanes = kWidth == 1 ? 32 : 8;
template <int kWidth>
inline constexpr int kColumns = kLanes<kWidth>* kWidth;
constexpr int kFlight = 4;  // samples that a thread loads before it needs the first

/// The pair of each channel over the samples of one part, blockIdx.y: partial [parts][2][channels].
template <class T, class P, Terms kTerms, int kWidth>
__global__ void __launch_bounds__(kThreads, 3)
    sum_channels(const T* x, const T* g, const P* mean, float* partial, int64_t samples, int64_t channels,
                 int64_t part) {
  constexpr int kRows = kThreads / kLanes<kWidth>;
  __shared__ Pair shared[kWarps][kColumns<kWidth>];
  __shared__ float counts[kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kLanes<kWidth>, row = thread / kLanes<kWidth>;
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kColumns<kWidth> + lane * kWidth;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * part;
  const int64_t last = channel >= channels ? 0 : first + part < samples ? first + part : samples;
  Pair pairs[kWidth];
  float count = 0, around[kWidth];
  if constexpr (kTerms == Terms::Products) {
    RT_UNROLL
    for (int k = 0; k < kWidth; ++k) around[k] = channel < channels ? to_float(mean[channel + k]) : 0.0f;
  }
  const auto value_of = [](const Packed<T, kWidth>& loaded, int k) {
    return to_float(unpacked<T, kWidth>(loaded)[k]);
  };
#pragma unroll 1
  for (int64_t s = first + row; s < last; s += kRows * kFlight) {
    Packed<T, kWidth> loaded_x[kFlight] = {}, loaded_g[kFlight] = {};
    RT_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      const int64_t at = (s + i * kRows) * channels + channel;
      if (s + i * kRows >= last) break;
      loaded_x[i] = load_packed<kWidth>(x + at);
      if (kTerms != Terms::Moments) loaded_g[i] = load_packed<kWidth>(g + at);
    }
    if constexpr (kTerms == Terms::Products) {  // absent samples have g = 0, and an x that is a number
      RT_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        RT_UNROLL
        for (int i = 0; i < kFlight; ++i) {
          const float gradient = value_of(loaded_g[i], k);
          pairs[k].first += gradient;
          pairs[k].second += gradient * (value_of(loaded_x[i], k) - around[k]);
        }
      }
    } else if constexpr (kTerms == Terms::RowProducts) {
      RT_UNROLL
      for (int i = 0; i < kFlight; ++i) {
        if (s + i * kRows >= last) break;
        const P* of = mean + 2 * (s + i * kRows);
        RT_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          const float gradient = value_of(loaded_g[i], k);
          pairs[k].first += gradient;
          pairs[k].second += gradient * ((value_of(loaded_x[i], k) - of[0]) * of[1]);
        }
      }
    } else if (s + (kFlight - 1) * kRows < last) {
      RT_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        Pair few;
        RT_UNROLL
        for (int i = 0; i < kFlight; ++i) few.first += value_of(loaded_x[i], k);
        few.first *= 1.0f / kFlight;
        RT_UNROLL
        for (int i = 0; i < kFlight; ++i) {
          const float apart = value_of(loaded_x[i], k) - few.first;
          few.second += apart * apart;
        }
        join<kTerms>(pairs[k], count, few, kFlight);
      }
      count += kFlight;
    } else {
      RT_UNROLL
      for (int i = 0; i < kFlight; ++i) {
        if (s + i * kRows >= last) break;
        RT_UNROLL
        for (int k = 0; k < kWidth; ++k) join<kTerms>(pairs[k], count, {value_of(loaded_x[i], k), 0.0f}, 1);
        count += 1;
      }
    }
  }
  RT_UNROLL
  for (int apart = kLanes<kWidth>; apart < kWarpSize; apart *= 2) {
    const float more = __shfl_xor_sync(kFullMask, count, apart);
    RT_UNROLL
    for (Pair& pair : pairs) {
      const Pair other{__shfl_xor_sync(kFullMask, pair.first, apart),
                       __shfl_xor_sync(kFullMask, pair.second, apart)};
      join<kTerms>(pair, count, other, more);
    }
    count += more;
  }
  const int warp = thread / kWarpSize;
  if (thread % kWarpSize < kLanes<kWidth>) {
    RT_UNROLL
    for (int k = 0; k < kWidth; ++k) shared[warp][lane * kWidth + k] = pairs[k];
  }
  if (thread % kWarpSize == 0) counts[warp] = count;
  __syncthreads();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns<kWidth> + thread;
  if (thread >= kColumns<kWidth> || column >= channels) return;
  Pair total = shared[0][thread];
  float joined = counts[0];
  RT_UNROLL
  for (int i = 1; i < kWarps; ++i) {
    join<kTerms>(total, joined, shared[i][thread], counts[i]);
    joined += counts[i];
  }
  float* to = partial + static_cast<int64_t>(blockIdx.y) * 2 * channels + column;
  to[0] = total.first;
  to[channels] = total.second;
}

/// Per-channel sums: the location of the parts and of the per-channel coefficients a, b, c.
struct Sums {
  float* partial;
  float* coefficients;  ///< [3][channels]
  int parts;
  int64_t samples, channels, part;
};

constexpr int kJoinLanes = 8, kJoinRows = kThreads / kJoinLanes;

/// The parts of channel kJoinLanes blockIdx.x + threadIdx.x, for the first kJoinLanes threads; called by all.
template <Terms kTerms>
RT_DEVICE Pair joined_parts(const Sums& sums) {
  __shared__ Pair shared[kThreads];
  __shared__ float counts[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kJoinLanes + thread % kJoinLanes;
  Pair total;
  float count = 0;
  for (int64_t i = thread / kJoinLanes; i < sums.parts && c < sums.channels; i += kJoinRows) {
    const int64_t left = sums.samples - i * sums.part;
    const auto more = static_cast<float>(left < 0 ? 0 : left < sums.part ? left : sums.part);
    const float* from = sums.partial + i * 2 * sums.channels + c;
    join<kTerms>(total, count, {from[0], from[sums.channels]}, more);
    count += more;
  }
  shared[thread] = total;
  counts[thread] = count;
  __syncthreads();
  for (int apart = kThreads / 2; apart >= kJoinLanes; apart /= 2) {
    if (thread < apart) {
      join<kTerms>(total, count, shared[thread + apart], counts[thread + apart]);
      count += counts[thread + apart];
      shared[thread] = total;
      counts[thread] = count;
    }
    __syncthreads();
  }
  return total;
}

template <class P>
struct TrainStatistics {
  const P *scale, *bias, *running_mean, *running_variance;
  P *new_mean, *new_variance, *batch_mean, *batch_inverse;
  float epsilon, momentum, correction;
};
template <class P>
__global__ void __launch_bounds__(kThreads) statistics_kernel(Sums sums, TrainStatistics<P> s) {
  const Pair moments = joined_parts<Terms::Moments>(sums);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kJoinLanes + threadIdx.x;
  if (threadIdx.x >= kJoinLanes || c >= sums.channels) return;
  const float mean = moments.first, variance = moments.second / static_cast<float>(sums.samples);
  const float inverse = 1.0f / sqrtf(variance + s.epsilon);
  const float momentum = s.momentum;
  const float old_mean = to_float(s.running_mean[c]), old_variance = to_float(s.running_variance[c]);
  const float factor = to_float(s.scale[c]) * inverse;
  s.batch_mean[c] = from_float<P>(mean);
  s.batch_inverse[c] = from_float<P>(inverse);
  s.new_mean[c] = from_float<P>(momentum * old_mean + (1.0f - momentum) * mean);
  s.new_variance[c] = from_float<P>(momentum * old_variance + (1.0f - momentum) * variance * s.correction);
  sums.coefficients[c] = 0;
  sums.coefficients[sums.channels + c] = factor;
  sums.coefficients[2 * sums.channels + c] = to_float(s.bias[c]) - mean * factor;
}

template <class P>
__global__ void __launch_bounds__(kThreads)
    gradient_kernel(Sums sums, const P* scale, const P* mean, const P* inverse, P* grad_scale, P* grad_bias) {
  const Pair products = joined_parts<Terms::Products>(sums);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kJoinLanes + threadIdx.x;
  if (threadIdx.x >= kJoinLanes || c >= sums.channels) return;
  const float n = static_cast<float>(sums.samples), i = to_float(inverse[c]);
  const float for_bias = products.first, for_scale = products.second * i;
  grad_bias[c] = from_float<P>(for_bias);
  grad_scale[c] = from_float<P>(for_scale);
  const float a = to_float(scale[c]) * i, b = -a * i * for_scale / n;
  sums.coefficients[c] = a;
  sums.coefficients[sums.channels + c] = b;
  sums.coefficients[2 * sums.channels + c] = -a * for_bias / n - b * to_float(mean[c]);
}

int width_of(const NormTypes& types, int64_t channels) {
  const int width = types.x == ElementType::F32 ? 4 : 8;
  return channels % width == 0 ? width : 1;
}

int64_t columns_of(int width) {
  return width == 8 ? kColumns<8> : width == 4 ? kColumns<4> : kColumns<1>;
}

int parts_of(const NormTypes& types, int64_t samples, int64_t channels) {
  const int64_t blocks = ceil_div(channels, columns_of(width_of(types, channels)));
  const int64_t wanted = 1024 / std::max<int64_t>(blocks, 1);
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, samples / 64), 1, 1024));
}

Sums sums_of(const NormTypes& types, float* scratch, int64_t samples, int64_t channels) {
  const int parts = parts_of(types, samples, channels);
  return {scratch,  scratch + static_cast<int64_t>(parts) * 2 * channels,
          parts,    samples,
          channels, ceil_div(samples, parts)};
}

template <class T, class P, Terms kTerms>
cudaError_t sum(const Sums& sums, const T* x, const T* g, const P* mean, cudaStream_t stream) {
  const auto run = [&](auto kernel, int width) {
    const dim3 grid(static_cast<unsigned>(ceil_div(sums.channels, columns_of(width))),
                    static_cast<unsigned>(sums.parts));
    return launch(kernel, {grid, dim3(kThreads), 0, stream}, x, g, mean, sums.partial, sums.samples,
                  sums.channels, sums.part);
  };
  constexpr int kWidth = kVectorWidth<T>;
  return sums.channels % kWidth == 0 ? run(sum_channels<T, P, kTerms, kWidth>, kWidth)
                                     : run(sum_channels<T, P, kTerms, 1>, 1);
}

LaunchConfig join_config(const Sums& sums, cudaStream_t stream) {
  return {dim3(static_cast<unsigned>(ceil_div(sums.channels, kJoinLanes))), dim3(kThreads), 0, stream};
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

struct RowStatistics {
  float mean, inverse;
};
/// The mean counts as 0 unless `centered`. shared: of 32 values.
template <class Row>
RT_DEVICE RowStatistics statistics_of(Row& row, float n, float epsilon, bool centered, float* shared) {
  float part = 0, mean = 0;
  if (centered) {
    // A sum of values far from 0 loses the digits in which they differ; infinity - infinity is no mean.
    float origin = static_cast<float>(row.first());
    if (!(fabsf(origin) < INFINITY)) origin = 0.0f;
    row.each([&](float value) { part += value - origin; });
    mean = origin + Row::combined(part, Sum{}, shared) / n;
    part = 0;
  }
  row.each([&](float value) { part += (value - mean) * (value - mean); });
  return {mean, 1.0f / sqrtf(Row::combined(part, Sum{}, shared) / n + epsilon)};
}

template <class Row, class T, class P>
__global__ void __launch_bounds__(kRowThreads, 3)
    layer_norm_kernel(const T* x, T* y, const P* scale, const P* bias, int64_t rows, int64_t columns,
                      int64_t scale_stride, int64_t bias_stride, float epsilon, bool centered) {
  __shared__ float shared[kWarpSize];
  Row row(x, rows, columns);
  const RowStatistics statistics = statistics_of(row, static_cast<float>(columns), epsilon, centered, shared);
  const float mean = statistics.mean, inverse = statistics.inverse;
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

/// With s = g scale and z = (x - mean) inverse: (s - mean(s) - z mean(s z)) inverse, without mean(s) unless
/// centered; the row's mean and inverse go to `statistics` [rows][2].
template <class Row, class T, class P>
__global__ void __launch_bounds__(kRowThreads, 2)
    layer_norm_grad_kernel(const T* x, const T* g, T* grad, const P* scale, float* statistics, int64_t rows,
                           int64_t columns, int64_t scale_stride, float epsilon, bool centered) {
  constexpr int kWidth = Row::kElements;
  __shared__ float shared[kWarpSize];
  Row row(x, rows, columns);
  const T* from = g + row.offset();
  const float n = static_cast<float>(columns);
  const RowStatistics of = statistics_of(row, n, epsilon, centered, shared);
  const auto scaled = [&](int64_t column, float(&to)[kWidth]) {
    const auto gradients = load_vector<kWidth>(from + column);
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i) to[i] = to_float(gradients[i]);
    if (scale == nullptr) return;
    const auto factors = parameters_of<kWidth>(scale, column, scale_stride);
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i) to[i] *= to_float(factors[i]);
  };
  float first = 0, second = 0;
  row.each_group([&](int64_t column, float(&values)[kWidth]) {
    float s[kWidth];
    scaled(column, s);
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      first += s[i];
      second += s[i] * ((values[i] - of.mean) * of.inverse);
    }
  });
  first = centered ? Row::combined(first, Sum{}, shared) / n : 0.0f;
  second = Row::combined(second, Sum{}, shared) / n;
  row.store(grad, [&](int64_t column, float(&values)[kWidth]) {
    float s[kWidth];
    scaled(column, s);
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i)
      values[i] = (s[i] - (first + (values[i] - of.mean) * of.inverse * second)) * of.inverse;
  });
  const int64_t index = global_index(), at = index / Row::kLanesPerRow;
  if (index % Row::kLanesPerRow != 0 || at >= rows) return;
  statistics[2 * at] = of.mean;
  statistics[2 * at + 1] = of.inverse;
}

template <class P>
__global__ void __launch_bounds__(kThreads) parameters_kernel(Sums sums, P* grad_scale, P* grad_bias) {
  const Pair products = joined_parts<Terms::Products>(sums);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kJoinLanes + threadIdx.x;
  if (threadIdx.x >= kJoinLanes || c >= sums.channels) return;
  grad_bias[c] = from_float<P>(products.first);
  grad_scale[c] = from_float<P>(products.second);
}

}  // namespace

size_t batch_norm_scratch_bytes(const NormTypes& types, int64_t samples, int64_t channels) {
  return static_cast<size_t>(channels) * static_cast<size_t>(2 * parts_of(types, samples, channels) + 3) *
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
    const Sums sums = sums_of(a.types, a.scratch, a.samples, a.channels);
    const auto* x = static_cast<const T*>(a.x);
    RT_CHECK((sum<T, P, Terms::Moments>(sums, x, nullptr, nullptr, stream)))
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
    RT_CHECK(launch(statistics_kernel<P>, join_config(sums, stream), sums, statistics))
    return for_channels<T>(x, nullptr, a.y, a.samples, a.channels, Combination{sums.coefficients, a.channels},
                           stream);
  });
}

cudaError_t batch_norm_grad(const BatchNormGradArguments& a, cudaStream_t stream) {
  return with_types(a.types, [&](auto x_tag, auto parameter_tag) {
    using T = typename decltype(x_tag)::type;
    using P = typename decltype(parameter_tag)::type;
    const Sums sums = sums_of(a.types, a.scratch, a.samples, a.channels);
    const auto *x = static_cast<const T*>(a.x), *g = static_cast<const T*>(a.grad_y);
    const auto* mean = static_cast<const P*>(a.mean);
    RT_CHECK((sum<T, P, Terms::Products>(sums, x, g, mean, stream)))
    RT_CHECK(launch(gradient_kernel<P>, join_config(sums, stream), sums, static_cast<const P*>(a.scale), mean,
                    static_cast<const P*>(a.inverse), static_cast<P*>(a.grad_scale),
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
                    a.rows, a.columns, a.scale_stride, a.bias_stride, a.epsilon, a.centered);
    });
  });
}

size_t layer_norm_grad_scratch_bytes(const NormTypes& types, int64_t rows, int64_t columns) {
  return batch_norm_scratch_bytes(types, rows, columns) + static_cast<size_t>(2 * rows) * sizeof(float);
}

cudaError_t layer_norm_grad(const LayerNormGradArguments& arguments, cudaStream_t stream) {
  const LayerNormArguments& a = arguments.norm;
  return with_types(a.types, [&](auto x_tag, auto parameter_tag) {
    using T = typename decltype(x_tag)::type;
    using P = typename decltype(parameter_tag)::type;
    float* statistics = arguments.scratch;
    const auto *x = static_cast<const T*>(a.x), *g = static_cast<const T*>(arguments.grad_y);
    const Sums sums = sums_of(a.types, statistics + 2 * a.rows, a.rows, a.columns);
    const auto rows = [&](auto row, const LaunchConfig& config) {
      return launch(layer_norm_grad_kernel<typename decltype(row)::type, T, P>, config, x, g,
                    static_cast<T*>(a.y), static_cast<const P*>(a.scale), statistics, a.rows, a.columns,
                    a.scale_stride, a.epsilon, a.centered);
    };
    RT_CHECK(launch_rows<T>(a.rows, a.columns, stream, rows))
    RT_CHECK((sum<T, float, Terms::RowProducts>(sums, x, g, statistics, stream)))
    return launch(parameters_kernel<P>, join_config(sums, stream), sums,
                  static_cast<P*>(arguments.grad_scale), static_cast<P*>(arguments.grad_bias));
  });
}

}  // namespace librt::cuda
