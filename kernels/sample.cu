// A group of lanes shares a sample: all compute its taps, in double as in runtime/geometry/sample.h,
// and each sums some of the channels.
#include "kernels/sample.h"

#include <algorithm>

#include "kernels/index.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

constexpr int kMaxTaps = 4;
constexpr unsigned kSampleThreads = 128;

/// Taps along one axis; an index of -1 is a zero outside.
struct Taps {
  int count = 0;
  int64_t index[kMaxTaps];
  double weight[kMaxTaps];
};

RT_DEVICE double clamped(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

RT_DEVICE double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double distance = fmod(fabs(x - low), 2 * range);
  return low + (distance > range ? 2 * range - distance : distance);
}

RT_DEVICE int64_t padded(double x, double last, SamplePadding padding, double low, double high) {
  if (x >= 0 && x <= last) return static_cast<int64_t>(x);
  if (padding == SamplePadding::Zeros) return -1;
  return static_cast<int64_t>(
      clamped(padding == SamplePadding::Border ? x : reflected(x, low, high), 0.0, last));
}

/// Keys' cubic convolution kernel (1981) with a = -0.75.
RT_DEVICE double cubic(double distance) {
  constexpr double a = -0.75;
  const double d = fabs(distance);
  if (d >= 2) return 0;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

RT_DEVICE Taps grid_taps(double coordinate, int64_t extent, const GridSampleArguments& to) {
  const double size = static_cast<double>(extent), last = size - 1;
  const double low = to.align_corners ? 0 : -0.5, high = to.align_corners ? last : last + 0.5;
  double x = to.align_corners ? (coordinate + 1) / 2 * last : ((coordinate + 1) * size - 1) / 2;
  if (!(fabs(x) < 0x1p30)) x = to.padding == SamplePadding::Border && x > 0 ? last : -9;
  if (to.mode == SampleMode::Nearest) x = rint(x);
  if (x < low || x > high) {
    if (to.padding == SamplePadding::Border && to.mode != SampleMode::Cubic) x = clamped(x, 0.0, last);
    if (to.padding == SamplePadding::Reflection) x = reflected(x, low, high);
  }
  Taps taps;
  const double before = floor(x), r = x - before;
  double first = before;
  if (to.mode == SampleMode::Nearest) {
    taps.count = 1;
    taps.weight[0] = 1;
    first = x;
  } else if (to.mode == SampleMode::Linear) {
    taps.count = 2;
    taps.weight[0] = 1 - r;
    taps.weight[1] = r;
  } else {
    taps.count = 4;
    RT_UNROLL
    for (int t = 0; t < 4; ++t) taps.weight[t] = cubic(t - 1 - r);
    first = before - 1;
  }
  RT_UNROLL
  for (int t = 0; t < kMaxTaps; ++t)
    if (t < taps.count) taps.index[t] = padded(first + t, last, to.padding, low, high);
  return taps;
}

/// Lanes of a group process the channels lane, lane + lanes, ...
struct Group {
  int lanes;
  RT_DEVICE int64_t sample() const { return global_index() / lanes; }
  RT_DEVICE int64_t lane() const { return global_index() % lanes; }
};

template <int kRank>
__global__ void __launch_bounds__(kSampleThreads) sample_grid(GridSampleArguments to, Group group) {
  const int64_t i = group.sample();
  if (i >= to.batch * to.samples) return;
  Taps taps[kRank];
  int combinations = 1;
  RT_UNROLL
  for (int d = 0; d < kRank; ++d) {
    taps[d].count = 1;
    taps[d].index[0] = 0;
    taps[d].weight[0] = 1;
    if (d < to.rank)
      taps[d] = grid_taps(static_cast<double>(to.grid[(i + 1) * to.rank - 1 - d]), to.extents[d], to);
    combinations *= taps[d].count;
  }
  int64_t points = 1;
  for (int d = 0; d < to.rank; ++d) points *= to.extents[d];
  const float* image = to.data + i / to.samples * points * to.channels;
  for (int64_t c = group.lane(); c < to.channels; c += group.lanes) {
    float sum = 0;
    for (int combination = 0; combination < combinations; ++combination) {
      int64_t point = 0;
      double weight = 1;
      int rest = combination, stride = combinations;
      RT_UNROLL
      for (int d = 0; d < kRank; ++d) {
        stride /= taps[d].count;
        const int tap = rest / stride;
        rest %= stride;
        const int64_t index = taps[d].index[tap];
        point = point < 0 || index < 0 ? -1 : point * (d < to.rank ? to.extents[d] : 1) + index;
        weight *= taps[d].weight[tap];
      }
      if (point >= 0 && weight != 0) sum += static_cast<float>(weight) * image[point * to.channels + c];
    }
    to.result[i * to.channels + c] = sum;
  }
}

// --- RoiAlign

/// Bin b of an axis has `samples` points, point i at start + (b + (i + 1/2) / samples) bin.
struct RoiAxis {
  float start, bin;
  int64_t samples;

  RT_DEVICE RoiAxis(float begin, float end, int64_t bins, const RoiAlignArguments& to) {
    const float offset = to.half_pixel ? 0.5f : 0.0f;
    start = begin * to.spatial_scale - offset;
    float length = end * to.spatial_scale - offset - start;
    if (!to.half_pixel) length = Maximum{}(length, 1.0f);
    bin = length / static_cast<float>(bins);
    samples = to.sampling_ratio;
    if (samples <= 0)
      samples = bin > 0 && bin < INFINITY ? static_cast<int64_t>(ceilf(fminf(bin, 0x1p20f))) : 0;
  }
  RT_DEVICE float position(int64_t b, int64_t i) const {
    return start + static_cast<float>(b) * bin +
           (static_cast<float>(i) + 0.5f) * bin / static_cast<float>(samples);
  }
};

/// The points of bin b inside [-1, extent] and one on either side, whose samples are 0, as all others there:
/// see runtime/geometry/sample.h.
struct RoiPoints {
  int64_t begin = 0, end = 0;

  RT_DEVICE RoiPoints(const RoiAxis& axis, int64_t b, int64_t extent) {
    const bool descends = axis.bin < 0;
    const float low = -1, high = static_cast<float>(extent);
    for (int64_t last = axis.samples; begin < last;) {
      const int64_t middle = (begin + last) / 2;
      const float at = axis.position(b, middle);
      if (descends ? at <= high : at >= low)
        last = middle;
      else
        begin = middle + 1;
    }
    for (int64_t last = axis.samples; end < last;) {
      const int64_t middle = (end + last) / 2;
      const float at = axis.position(b, middle);
      if (descends ? !(at >= low) : !(at <= high))
        last = middle;
      else
        end = middle + 1;
    }
    end = min(max(begin, end) + 1, axis.samples);
    begin = max(begin - 1, int64_t{0});
  }
};

struct RoiTaps {
  bool inside;
  int64_t index[2];
  double weight[2];

  RT_DEVICE RoiTaps(float position, int64_t extent) {
    inside = position >= -1.0f && position <= static_cast<float>(extent);
    const double x =
        clamped(inside ? static_cast<double>(position) : 0, 0.0, static_cast<double>(extent - 1));
    index[0] = static_cast<int64_t>(x);
    index[1] = min(index[0] + 1, extent - 1);
    weight[1] = x - static_cast<double>(index[0]);
    weight[0] = 1 - weight[1];
  }
};

__global__ void __launch_bounds__(kSampleThreads, 4) align_regions(RoiAlignArguments to, Group group) {
  const int64_t i = group.sample(), bins = to.rows * to.columns;
  if (i >= to.regions * bins) return;
  const int64_t region = i / bins;
  const float* corner = to.corners + region * 4;
  const Indices batch{to.batch, to.wide_batch};
  const int64_t image = max(int64_t{0}, min(batch[region], to.images - 1));
  const RoiAxis rows(corner[1], corner[3], to.rows, to), columns(corner[0], corner[2], to.columns, to);
  const double share = 1 / static_cast<double>(max(rows.samples * columns.samples, int64_t{1}));
  const RoiPoints down(rows, i % bins / to.columns, to.height), across(columns, i % to.columns, to.width);
  const float* from = to.data + image * to.height * to.width * to.channels;
  for (int64_t c = group.lane(); c < to.channels; c += group.lanes) {
    float result = 0;
    for (int64_t p = down.begin; p < down.end; ++p) {
      const RoiTaps v(rows.position(i % bins / to.columns, p), to.height);
      for (int64_t q = across.begin; q < across.end; ++q) {
        const RoiTaps u(columns.position(i % to.columns, q), to.width);
        float extreme = 0;
        RT_UNROLL
        for (int k = 0; k < 4; ++k) {
          if (!v.inside || !u.inside) continue;
          const double weight = v.weight[k / 2] * u.weight[k % 2];
          const float value = from[(v.index[k / 2] * to.width + u.index[k % 2]) * to.channels + c];
          if (to.maximum) {
            const float part = static_cast<float>(weight) * value;
            extreme = k == 0 ? part : Maximum{}(extreme, part);
          } else {
            result += static_cast<float>(weight * share) * value;
          }
        }
        if (to.maximum) result = p == down.begin && q == across.begin ? extreme : Maximum{}(result, extreme);
      }
    }
    to.result[i * to.channels + c] = result;
  }
}

/// One thread per row of one channel of an image, which accumulates the contributions of all regions.
struct RoiRow {
  const RoiAlignArguments& to;
  const float* image;  ///< of the row's image and channel
  const float* grad;   ///< of the region's channel
  float* row;          ///< of the gradient
  int64_t y;

  RT_DEVICE float grad_of(int64_t v, int64_t u) const { return grad[(v * to.columns + u) * to.channels]; }
  RT_DEVICE void add(int64_t x, double value) const { row[x * to.channels] += static_cast<float>(value); }

  RT_DEVICE void add_mean(const RoiAxis& rows, const RoiAxis& columns, int64_t v, int64_t p) const {
    const RoiTaps taps(rows.position(v, p), to.height);
    if (!taps.inside) return;
    const double own = (taps.index[0] == y ? taps.weight[0] : 0) + (taps.index[1] == y ? taps.weight[1] : 0);
    if (own == 0) return;
    const double share = own / static_cast<double>(rows.samples * columns.samples);
    for (int64_t u = 0; u < to.columns; ++u) {
      const RoiPoints across(columns, u, to.width);
      for (int64_t q = across.begin; q < across.end; ++q) {
        const RoiTaps other(columns.position(u, q), to.width);
        if (!other.inside) continue;
        RT_UNROLL
        for (int k = 0; k < 2; ++k) add(other.index[k], share * other.weight[k] * grad_of(v, u));
      }
    }
  }

  /// The whole gradient goes to the first of a bin's largest weighted values.
  RT_DEVICE void add_maximum(const RoiAxis& rows, const RoiAxis& columns, int64_t v, int64_t u) const {
    double best = 0, best_weight = 0;
    int64_t best_y = -1, best_x = 0;
    bool first = true;
    const RoiPoints down(rows, v, to.height), across(columns, u, to.width);
    for (int64_t p = down.begin; p < down.end; ++p)
      for (int64_t q = across.begin; q < across.end; ++q) {
        const RoiTaps a(rows.position(v, p), to.height), b(columns.position(u, q), to.width);
        const bool inside = a.inside && b.inside;
        for (int k = 0; k < (inside ? 4 : 1); ++k) {
          const double weight = inside ? a.weight[k / 2] * b.weight[k % 2] : 0;
          const double value =
              inside ? weight * image[(a.index[k / 2] * to.width + b.index[k % 2]) * to.channels] : 0;
          if (!first && !(value > best)) continue;
          first = false;
          best = value;
          best_weight = weight;
          best_y = a.index[k / 2];
          best_x = b.index[k % 2];
        }
      }
    if (best_y == y && best_weight != 0) add(best_x, best_weight * grad_of(v, u));
  }

  RT_DEVICE bool touched(const RoiAxis& rows, int64_t v) const {
    const RoiPoints down(rows, v, to.height);
    for (int64_t p = down.begin; p < down.end; ++p) {
      const RoiTaps taps(rows.position(v, p), to.height);
      if (taps.inside && (taps.index[0] == y || taps.index[1] == y)) return true;
    }
    return false;
  }
};

__global__ void __launch_bounds__(kSampleThreads, 4)
    // NOLINTNEXTLINE(readability-non-const-parameter): written by way of RoiRow
    align_regions_back(RoiAlignArguments to, const float* grad_output, float* grad_data) {
  const int64_t i = global_index();
  if (i >= to.images * to.height * to.channels) return;
  const int64_t channel = i % to.channels, y = i / to.channels % to.height,
                image = i / to.channels / to.height;
  RoiRow own{to, to.data + image * to.height * to.width * to.channels + channel, nullptr,
             grad_data + (image * to.height + y) * to.width * to.channels + channel, y};
  for (int64_t x = 0; x < to.width; ++x) own.row[x * to.channels] = 0;
  const Indices batch{to.batch, to.wide_batch};
  for (int64_t region = 0; region < to.regions; ++region) {
    if (max(int64_t{0}, min(batch[region], to.images - 1)) != image) continue;
    const float* corner = to.corners + region * 4;
    const RoiAxis rows(corner[1], corner[3], to.rows, to), columns(corner[0], corner[2], to.columns, to);
    own.grad = grad_output + region * to.rows * to.columns * to.channels + channel;
    for (int64_t v = 0; v < to.rows; ++v) {
      if (!to.maximum) {
        const RoiPoints down(rows, v, to.height);
        for (int64_t p = down.begin; p < down.end; ++p) own.add_mean(rows, columns, v, p);
      } else if (own.touched(rows, v)) {
        for (int64_t u = 0; u < to.columns; ++u) own.add_maximum(rows, columns, v, u);
      }
    }
  }
}

Group group_of(int64_t channels) {
  Group group{1};
  while (group.lanes < 32 && group.lanes < channels) group.lanes *= 2;
  return group;
}

}  // namespace

cudaError_t grid_sample(const GridSampleArguments& arguments, cudaStream_t stream) {
  const Group group = group_of(arguments.channels);
  const LaunchConfig config =
      launch_each(arguments.batch * arguments.samples * group.lanes, stream, kSampleThreads);
  if (arguments.rank <= 2) return launch(sample_grid<2>, config, arguments, group);
  if (arguments.rank == 3) return launch(sample_grid<3>, config, arguments, group);
  return launch(sample_grid<kMaxSampleAxes>, config, arguments, group);
}

cudaError_t roi_align(const RoiAlignArguments& arguments, cudaStream_t stream) {
  if (arguments.images == 0) return cudaSuccess;
  const Group group = group_of(arguments.channels);
  const int64_t bins = arguments.regions * arguments.rows * arguments.columns;
  return launch(align_regions, launch_each(bins * group.lanes, stream, kSampleThreads), arguments, group);
}

cudaError_t roi_align_grad(const RoiAlignArguments& arguments, const float* grad_output, float* grad_data,
                           cudaStream_t stream) {
  const int64_t rows = arguments.images * arguments.height * arguments.channels;
  return launch(align_regions_back, launch_each(rows, stream, kSampleThreads), arguments, grad_output,
                grad_data);
}

}  // namespace librt::cuda
