#include "kernels/resize.h"

#include "kernels/common.cuh"
#include "kernels/index.cuh"

namespace librt::cuda {
namespace {

/// The taps of each axis for one result point.
template <int kRank>
struct PointTaps {
  const ResizeTap* axis[kRank];
  bool inside = true;

  RT_DEVICE PointTaps(const ResizeArguments& to, int64_t point) {
    const ResizeTap* table = to.table;
    int64_t stride = to.results;
    RT_UNROLL
    for (int d = 0; d < kRank; ++d) {
      stride /= to.outputs[d];
      axis[d] = table + point / stride % to.outputs[d] * to.taps;
      inside = inside && axis[d]->index >= 0;
      table += to.outputs[d] * to.taps;
    }
  }
};

template <int kRank, class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    copy_points(const Unit* data, Unit* result, ResizeArguments to, Unit fill) {
  const int64_t i = global_index();
  if (i >= to.batch * to.results * to.channels) return;
  const int64_t at = i / to.channels;
  const PointTaps<kRank> taps(to, at % to.results);
  int64_t point = at / to.results * to.points;
  RT_UNROLL
  for (int d = 0; d < kRank; ++d) point += taps.axis[d]->index;
  result[i] = taps.inside ? data[point * to.channels + i % to.channels] : fill;
}

template <int kRank, class T>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    sum_points(const T* data, T* result, ResizeArguments to) {
  const int64_t i = global_index();
  if (i >= to.batch * to.results * to.channels) return;
  const int64_t at = i / to.channels;
  const PointTaps<kRank> taps(to, at % to.results);
  if (!taps.inside) {
    result[i] = narrow<T>(to.extrapolation);
    return;
  }
  const T* image = data + at / to.results * to.points * to.channels + i % to.channels;
  int64_t combinations = 1;
  RT_UNROLL
  for (int d = 0; d < kRank; ++d) combinations *= to.taps;
  float sum = 0;
  for (int64_t combination = 0; combination < combinations; ++combination) {
    int64_t point = 0, rest = combination;
    float weight = 1;
    RT_UNROLL
    for (int d = kRank - 1; d >= 0; --d) {
      const ResizeTap& tap = taps.axis[d][rest % to.taps];
      point += tap.index;
      weight *= tap.weight;
      rest /= to.taps;
    }
    if (weight != 0) sum += weight * widen(image[point * to.channels]);
  }
  result[i] = narrow<T>(sum);
}

/// f(std::integral_constant) with the number of axes.
template <class F>
cudaError_t with_rank(int rank, F&& f) {
  switch (rank) {
    case 2: return f(std::integral_constant<int, 2>{});
    case 3: return f(std::integral_constant<int, 3>{});
    case kMaxResizeAxes: return f(std::integral_constant<int, kMaxResizeAxes>{});
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t resize_nearest(const ResizeArguments& arguments, cudaStream_t stream) {
  const LaunchConfig config = launch_each(arguments.batch * arguments.results * arguments.channels, stream);
  return with_size(static_cast<size_t>(arguments.unit), [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    return with_rank(arguments.rank, [&](auto rank) {
      return launch(copy_points<rank(), Unit>, config, static_cast<const Unit*>(arguments.data),
                    static_cast<Unit*>(arguments.result), arguments, static_cast<Unit>(arguments.fill));
    });
  });
}

cudaError_t resize_sum(const ResizeArguments& arguments, cudaStream_t stream) {
  const LaunchConfig config = launch_each(arguments.batch * arguments.results * arguments.channels, stream);
  return with_float(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return with_rank(arguments.rank, [&](auto rank) {
      return launch(sum_points<rank(), T>, config, static_cast<const T*>(arguments.data),
                    static_cast<T*>(arguments.result), arguments);
    });
  });
}

}  // namespace librt::cuda
