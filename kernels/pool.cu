// Pools: one thread per result, adjacent threads along channels. Gradients gather: each input element
// accumulates the contributions of the windows over it, in the windows' order, without atomics.
#include "kernels/pool.h"

#include <algorithm>

#include "kernels/common.cuh"

namespace librt::cuda {
namespace {

struct Coordinates {
  int64_t sample;
  int channel, at[3];
};

/// f(coordinates, element) for the elements of [N,S1,S2,S3,C] of this thread: one position in every
/// gridDim.y-th sample.
template <class F>
RT_DEVICE void for_elements(const PoolExtents& w, const int (&extent)[3], F f) {
  const auto channels = static_cast<unsigned>(w.channels);
  const unsigned count = static_cast<unsigned>(extent[0]) * extent[1] * extent[2] * channels;
  const unsigned index = blockIdx.x * kElementwiseThreads + threadIdx.x;
  if (index >= count) return;
  Coordinates coordinates;
  unsigned rest = index / channels;
  coordinates.channel = static_cast<int>(index % channels);
  RT_UNROLL
  for (int i = 2; i >= 0; --i) {
    const auto length = static_cast<unsigned>(extent[i]);
    coordinates.at[i] = static_cast<int>(rest % length);
    rest /= length;
  }
  for (coordinates.sample = blockIdx.y; coordinates.sample < w.batch; coordinates.sample += gridDim.y)
    f(coordinates, coordinates.sample * count + index);
}

/// The taps of one axis that are inside the input.
struct Taps {
  int start, first, last;
};
RT_DEVICE Taps taps_of(const PoolExtents& w, int axis, int window) {
  Taps taps{window * w.stride[axis] - w.pad[axis], 0, w.kernel[axis]};
  if (taps.start < 0) taps.first = (-taps.start + w.dilation[axis] - 1) / w.dilation[axis];
  const int remaining = w.input[axis] - taps.start;
  const int inside = remaining <= 0 ? 0 : (remaining + w.dilation[axis] - 1) / w.dilation[axis];
  if (inside < taps.last) taps.last = inside;
  return taps;
}

/// f(point) for every input point of a window, in order; points count over the three spatial axes.
template <class F>
RT_DEVICE void for_points(const PoolExtents& w, const int (&window)[3], F f) {
  const Taps z = taps_of(w, 0, window[0]), y = taps_of(w, 1, window[1]), x = taps_of(w, 2, window[2]);
  for (int i = z.first; i < z.last; ++i)
    for (int j = y.first; j < y.last; ++j) {
      const int row =
          ((z.start + i * w.dilation[0]) * w.input[1] + y.start + j * w.dilation[1]) * w.input[2] + x.start;
      for (int k = x.first; k < x.last; ++k) f(row + k * w.dilation[2]);
    }
}

RT_DEVICE int64_t points_of(const int (&extent)[3]) {
  return static_cast<int64_t>(extent[0]) * extent[1] * extent[2];
}

/// The first maximum of a window, NaN being the largest; -1 where the window has no point.
template <class T>
RT_DEVICE int find_maximum(const T* image, const PoolExtents& w, const int (&window)[3], Wide<T>& best) {
  int where = -1;
  for_points(w, window, [&](int point) {
    const Wide<T> value = widen(image[point * w.channels]);
    if (where < 0 || value > best || (value != value && best == best)) {
      best = value;
      where = point;
    }
  });
  return where;
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads, 4) max_pool_kernel(const T* x, T* y, PoolExtents w) {
  for_elements(w, w.output, [&](const Coordinates& p, int64_t i) {
    Wide<T> best{};
    if constexpr (std::is_floating_point_v<Wide<T>>) best = static_cast<Wide<T>>(-INFINITY);
    find_maximum(x + p.sample * points_of(w.input) * w.channels + p.channel, w, p.at, best);
    y[i] = narrow<T>(best);
  });
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    max_where_kernel(const T* x, int32_t* where, PoolExtents w) {
  for_elements(w, w.output, [&](const Coordinates& p, int64_t i) {
    Wide<T> best{};
    where[i] = find_maximum(x + p.sample * points_of(w.input) * w.channels + p.channel, w, p.at, best);
  });
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    max_indices_kernel(const T* x, int64_t* y, PoolExtents w, bool column_major) {
  for_elements(w, w.output, [&](const Coordinates& p, int64_t i) {
    Wide<T> best{};
    int point = find_maximum(x + p.sample * points_of(w.input) * w.channels + p.channel, w, p.at, best);
    if (point < 0) point = 0;
    if (column_major) {
      const int c = point % w.input[2], b = point / w.input[2] % w.input[1],
                a = point / w.input[2] / w.input[1];
      point = (c * w.input[1] + b) * w.input[0] + a;
    }
    y[i] = (p.sample * w.channels + p.channel) * points_of(w.input) + point;
  });
}

/// The number of taps in the average's divisor.
RT_DEVICE int counted(const PoolExtents& w, const int (&window)[3]) {
  int product = 1;
  RT_UNROLL
  for (int axis = 0; axis < 3; ++axis) {
    int taps = 0;
    for (int t = 0; t < w.kernel[axis]; ++t) {
      const int at = window[axis] * w.stride[axis] - w.pad[axis] + t * w.dilation[axis];
      taps += at >= w.count_first[axis] && at < w.count_last[axis] ? 1 : 0;
    }
    product *= taps;
  }
  return product;
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    average_pool_kernel(const T* x, T* y, PoolExtents w) {
  for_elements(w, w.output, [&](const Coordinates& p, int64_t i) {
    const T* image = x + p.sample * points_of(w.input) * w.channels + p.channel;
    Wide<T> sum{};
    for_points(w, p.at, [&](int point) { sum += widen(image[point * w.channels]); });
    y[i] = narrow<T>(sum / static_cast<Wide<T>>(counted(w, p.at)));
  });
}

/// The windows of one axis that may have a tap at `position`.
struct Range {
  int first, last;
};
RT_DEVICE Range windows_over(const PoolExtents& w, int axis, int position) {
  const int end = position + w.pad[axis], begin = end - (w.kernel[axis] - 1) * w.dilation[axis];
  Range range{begin <= 0 ? 0 : (begin + w.stride[axis] - 1) / w.stride[axis],
              end < 0 ? 0 : end / w.stride[axis] + 1};
  if (range.last > w.output[axis]) range.last = w.output[axis];
  return range;
}
RT_DEVICE bool has_tap(const PoolExtents& w, int axis, int window, int position) {
  return (position + w.pad[axis] - window * w.stride[axis]) % w.dilation[axis] == 0;
}

/// f(window coordinates, element of the pool's output) for every window with a tap at an input position.
template <class F>
RT_DEVICE void for_windows(const PoolExtents& w, const Coordinates& p, F f) {
  const Range z = windows_over(w, 0, p.at[0]), y = windows_over(w, 1, p.at[1]),
              x = windows_over(w, 2, p.at[2]);
  int at[3];
  for (at[0] = z.first; at[0] < z.last; ++at[0]) {
    if (!has_tap(w, 0, at[0], p.at[0])) continue;
    for (at[1] = y.first; at[1] < y.last; ++at[1]) {
      if (!has_tap(w, 1, at[1], p.at[1])) continue;
      for (at[2] = x.first; at[2] < x.last; ++at[2])
        if (has_tap(w, 2, at[2], p.at[2]))
          f(at,
            (((p.sample * w.output[0] + at[0]) * w.output[1] + at[1]) * w.output[2] + at[2]) * w.channels +
                p.channel);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    max_grad_kernel(const int32_t* where, const T* grad, T* y, PoolExtents w) {
  for_elements(w, w.input, [&](const Coordinates& p, int64_t i) {
    const int point = (p.at[0] * w.input[1] + p.at[1]) * w.input[2] + p.at[2];
    Wide<T> sum{};
    for_windows(w, p, [&](const int(&)[3], int64_t element) {
      if (where[element] == point) sum += widen(grad[element]);
    });
    y[i] = narrow<T>(sum);
  });
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    average_grad_kernel(const T* grad, T* y, PoolExtents w) {
  for_elements(w, w.input, [&](const Coordinates& p, int64_t i) {
    Wide<T> sum{};
    for_windows(w, p, [&](const int(&window)[3], int64_t element) {
      sum += widen(grad[element]) / static_cast<Wide<T>>(counted(w, window));
    });
    y[i] = narrow<T>(sum);
  });
}

LaunchConfig grid_of(const PoolExtents& w, const int (&extent)[3], cudaStream_t stream) {
  const int64_t count = static_cast<int64_t>(extent[0]) * extent[1] * extent[2] * w.channels;
  LaunchConfig config = launch_each(count, stream);
  config.grid.y = static_cast<unsigned>(std::min<int64_t>(w.batch, 65535));
  return config;
}

template <class F>
cudaError_t with_any_float(ElementType type, F&& f) {
  return type == ElementType::F64 ? f(TypeTag<double>{}) : with_float(type, f);
}

}  // namespace

cudaError_t max_pool(const PoolArguments& a, cudaStream_t stream) {
  return with_number(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(max_pool_kernel<T>, grid_of(a.windows, a.windows.output, stream),
                  static_cast<const T*>(a.x), static_cast<T*>(a.y), a.windows);
  });
}

cudaError_t max_pool_indices(const PoolArguments& a, cudaStream_t stream) {
  return with_number(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(max_indices_kernel<T>, grid_of(a.windows, a.windows.output, stream),
                  static_cast<const T*>(a.x), static_cast<int64_t*>(a.y), a.windows, a.column_major);
  });
}

cudaError_t average_pool(const PoolArguments& a, cudaStream_t stream) {
  return with_any_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(average_pool_kernel<T>, grid_of(a.windows, a.windows.output, stream),
                  static_cast<const T*>(a.x), static_cast<T*>(a.y), a.windows);
  });
}

cudaError_t max_pool_grad(const PoolArguments& a, cudaStream_t stream) {
  return with_any_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const cudaError_t error = launch(max_where_kernel<T>, grid_of(a.windows, a.windows.output, stream),
                                     static_cast<const T*>(a.x), a.where, a.windows);
    if (error != cudaSuccess) return error;
    return launch(max_grad_kernel<T>, grid_of(a.windows, a.windows.input, stream),
                  static_cast<const int32_t*>(a.where), static_cast<const T*>(a.grad), static_cast<T*>(a.y),
                  a.windows);
  });
}

cudaError_t average_pool_grad(const PoolArguments& a, cudaStream_t stream) {
  return with_any_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(average_grad_kernel<T>, grid_of(a.windows, a.windows.input, stream),
                  static_cast<const T*>(a.grad), static_cast<T*>(a.y), a.windows);
  });
}

}  // namespace librt::cuda
