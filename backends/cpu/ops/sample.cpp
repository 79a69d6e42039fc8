// GridSample and RoiAlign in f32. Channels are contiguous, so that an input point is a run; coordinates are
// computed once for all channels.
#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/resize.h"
#include "backends/cpu/simd/rows.h"
#include "runtime/geometry/sample.h"

namespace librt::cpu {
namespace {

constexpr int kMostAxes = kMaxRank - 2;

constexpr int64_t kMostTaps = 4096;  // of 4 points along each axis
static_assert(kMostAxes == 6);

/// The points around some coordinates and their weights, as ResizeLoops takes them: all combinations of the
/// taps along the axes, the last axis innermost. A point outside has weight 0.
struct PointTaps {
  std::array<int32_t, kMostTaps> index;
  std::array<float, kMostTaps> weight;

  /// Of coordinate i of n. axes: the taps along each, of the input's extents.
  void set(int64_t i, int64_t n, std::span<const SampleTaps> axes, const int64_t* extents) noexcept {
    combine(i, n, axes, extents, 0, 1);
  }

 private:
  /// Combinations from number i of n on; returns the number after them.
  int64_t combine(int64_t i, int64_t n, std::span<const SampleTaps> axes, const int64_t* extents,
                  int64_t point, double product) noexcept {
    const SampleTaps& taps = axes[0];
    for (size_t t = 0; t < static_cast<size_t>(taps.count); ++t) {
      const bool inside = point >= 0 && taps.index[t] >= 0;
      const int64_t next = inside ? point * *extents + taps.index[t] : -1;
      const double both = product * taps.weight[t];
      if (axes.size() > 1) {
        i = combine(i, n, axes.subspan(1), extents + 1, next, both);
      } else {
        index[static_cast<size_t>(i)] = inside ? static_cast<int32_t>(next) : 0;
        weight[static_cast<size_t>(i)] = inside ? static_cast<float>(both) : 0.0f;
        i += n;
      }
    }
    return i;
  }
};

Status supports_f32(const CpuDevice&, const NodeView& node) {
  if (node.dtype(1) != DType::F32)
    return unsupported("coordinates of ", name_of(node.dtype(1)), "; only f32");
  if (const int64_t points = node.shape(0).elements(1, node.shape(0).rank() - 1);
      points > std::numeric_limits<int32_t>::max())
    return unsupported("images of ", points, " points; only 31-bit indices");
  return {};
}

LinearGrid linear_grid(const Shape& x, const op::GridSampleAttributes& attributes) {
  LinearGrid grid{.axes = x.rank() - 2, .to_border = attributes.padding == op::GridSamplePadding::Border};
  for (int d = 0; d < grid.axes; ++d) {
    const auto size = static_cast<double>(x[d + 1]);
    grid.extent[d] = static_cast<int32_t>(x[d + 1]);
    grid.scale[d] = (attributes.align_corners ? size - 1 : size) / 2;
    grid.shift[d] = (size - 1) / 2;
  }
  return grid;
}

Result<KernelPtr> create_grid_sample(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const int axes = x.rank() - 2;
  std::array<int64_t, kMostAxes> extents{};
  int64_t combinations = 1;
  const op::GridSampleAttributes attributes = node.as<op::GridSampleAttributes>();
  const int64_t along = attributes.mode == op::ResizeMode::Nearest ? 1
                        : attributes.mode == op::ResizeMode::Cubic ? 4
                                                                   : 2;
  for (int d = 0; d < axes; ++d) {
    extents[static_cast<size_t>(d)] = x[d + 1];
    combinations *= along;
  }
  const int64_t points = node.input(1).elements() / axes, in_image = points / std::max<int64_t>(x[0], 1);
  const int64_t image = x.elements(1, x.rank()), channels = x.back();
  // A vector loop computes what nets use most.
  const bool is_linear =
      attributes.mode == op::ResizeMode::Linear && attributes.padding != op::GridSamplePadding::Reflection;
  const LinearGrid linear = linear_grid(x, attributes);
  const int64_t block = std::clamp<int64_t>(kMostTaps / combinations, 1, kMostGridPoints);
  return make_kernel([=, &loops = device.simd().loops<ResizeLoops>()](const Call& call) noexcept {
    const float *data = call.in<float>(0), *grid = call.in<float>(1);
    float* y = call.out<float>();
    parallel_for(points, combinations * (channels + 8), 1, [&](int64_t begin, int64_t end) noexcept {
      PointTaps taps;
      std::array<SampleTaps, kMostAxes> along_axes;
      for (int64_t i = begin, count; i < end; i += count) {
        count = std::min({block, end - i, in_image - i % in_image});
        if (is_linear)
          loops.linear_taps(grid + i * axes, linear, count, taps.index.data(), taps.weight.data());
        else
          for (int64_t k = 0; k < count; ++k) {
            for (int d = 0; d < axes; ++d)
              along_axes[static_cast<size_t>(d)] =
                  grid_taps(static_cast<double>(grid[(i + k) * axes + axes - 1 - d]),
                            extents[static_cast<size_t>(d)], attributes);
            taps.set(k, count, std::span(along_axes).first(static_cast<size_t>(axes)), extents.data());
          }
        const float* from = data + i / in_image * image;
        if (channels == 1)
          loops.resize_row(from, taps.index.data(), taps.weight.data(), combinations, y + i, count);
        else
          loops.resize_points(from, taps.index.data(), taps.weight.data(), combinations, count, channels,
                              y + i * channels);
      }
    });
  });
}

// --- RoiAlign

/// NaN if either is.
float larger(float a, float b) noexcept {
  return a > b || a != a ? a : b;
}

/// Combines one sampling point's weighted neighbours with the maximum so far.
void take_maximum(const float* image, int64_t width, int64_t channels, const SampleTaps& v,
                  const SampleTaps& u, bool first, float* y) noexcept {
  for (int64_t c = 0; c < channels; ++c) {
    float value = 0;
    for (size_t i = 0; i < 2 && v.count > 0 && u.count > 0; ++i)
      for (size_t j = 0; j < 2; ++j) {
        const float part = static_cast<float>(v.weight[i] * u.weight[j]) *
                           image[(v.index[i] * width + u.index[j]) * channels + c];
        value = i + j == 0 ? part : larger(part, value);
      }
    y[c] = first ? value : larger(value, y[c]);
  }
}

struct Roi {
  int64_t height, width, channels, bins_v, bins_u;
  bool maximum;

  RoiPoints points_down(const RoiAxis& rows, int64_t bin) const noexcept {
    return roi_points(rows, bin / bins_u, height);
  }
  RoiPoints points_across(const RoiAxis& columns, int64_t bin) const noexcept {
    return roi_points(columns, bin % bins_u, width);
  }
  void bin(const Simd& simd, const float* image, const RoiAxis& rows, const RoiAxis& columns, int64_t bin,
           float* y) const noexcept {
    std::fill(y, y + channels, 0.0f);
    const double share = 1 / static_cast<double>(std::max<int64_t>(rows.samples * columns.samples, 1));
    const RoiPoints down = points_down(rows, bin), across = points_across(columns, bin);
    for (int64_t i = down.begin; i < down.end; ++i) {
      const SampleTaps v = roi_taps(rows.position(bin / bins_u, i), height);
      for (int64_t j = across.begin; j < across.end; ++j) {
        const SampleTaps u = roi_taps(columns.position(bin % bins_u, j), width);
        if (maximum) {
          take_maximum(image, width, channels, v, u, i == down.begin && j == across.begin, y);
          continue;
        }
        for (size_t p = 0; p < 2 && v.count > 0 && u.count > 0; ++p)
          for (size_t q = 0; q < 2; ++q)
            simd.loops<RowLoops>().axpy(y, image + (v.index[p] * width + u.index[q]) * channels,
                                        static_cast<float>(v.weight[p] * u.weight[q] * share), channels);
      }
    }
  }
};

int64_t batch_of(const Call& call, bool wide, int64_t roi, int64_t images) noexcept {
  const int64_t index = wide ? call.in<int64_t>(2)[roi] : call.in<int32_t>(2)[roi];
  return index < 0 ? 0 : std::min(index, std::max<int64_t>(images - 1, 0));
}

Result<KernelPtr> create_roi_align(CpuDevice& device, const NodeView& node, Producers) {
  const op::RoiAlignAttributes attributes = node.as<op::RoiAlignAttributes>();
  const Shape& x = node.shape(0);
  const Shape& result = node.output(0).shape;
  const Roi roi{x[1], x[2], x[3], result[1], result[2], attributes.maximum};
  const int64_t bins = result[1] * result[2], rois = result[0], images = x[0];
  return make_kernel([=, wide = node.dtype(2) == DType::I64,
                      &simd = device.simd()](const Call& call) noexcept {
    const float *data = call.in<float>(0), *corners = call.in<float>(1);
    float* y = call.out<float>();
    parallel_for(rois * bins, roi.channels * 16, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t r = i / bins;
        const float* corner = corners + r * 4;
        const float* image = data + batch_of(call, wide, r, images) * roi.height * roi.width * roi.channels;
        roi.bin(simd, image, roi_axis(corner[1], corner[3], roi.bins_v, attributes),
                roi_axis(corner[0], corner[2], roi.bins_u, attributes), i % bins, y + i * roi.channels);
      }
    });
  });
}

// --- RoiAlignGrad: regions may overlap, so threads split the channels

/// The largest weighted neighbour over all sampling points of a bin gets the whole gradient.
void scatter_to_largest(const float* image, float* grad_image, const RoiAxis& rows, const RoiAxis& columns,
                        const Roi& roi, int64_t bin, const float* grad, int64_t c) noexcept {
  float best = -std::numeric_limits<float>::infinity(), weight = 0;
  int64_t at = -1;
  const RoiPoints down = roi.points_down(rows, bin), across = roi.points_across(columns, bin);
  for (int64_t i = down.begin; i < down.end; ++i) {
    const SampleTaps v = roi_taps(rows.position(bin / roi.bins_u, i), roi.height);
    for (int64_t j = across.begin; j < across.end; ++j) {
      const SampleTaps u = roi_taps(columns.position(bin % roi.bins_u, j), roi.width);
      if (v.count == 0 || u.count == 0) {
        if (best < 0) best = 0, weight = 0, at = -1;  // a sample outside is 0
        continue;
      }
      for (size_t k = 0; k < 4; ++k) {
        const auto share = static_cast<float>(v.weight[k / 2] * u.weight[k % 2]);
        const int64_t point = (v.index[k / 2] * roi.width + u.index[k % 2]) * roi.channels + c;
        if (share * image[point] > best) best = share * image[point], weight = share, at = point;
      }
    }
  }
  if (at >= 0) grad_image[at] += weight * grad[c];
}

/// Adds a bin's contribution to channels [begin, end) of grad_image.
void scatter_mean(float* grad_image, const RoiAxis& rows, const RoiAxis& columns, const Roi& roi, int64_t bin,
                  const float* grad, int64_t begin, int64_t end) noexcept {
  const double share = 1 / static_cast<double>(std::max<int64_t>(rows.samples * columns.samples, 1));
  const RoiPoints down = roi.points_down(rows, bin), across = roi.points_across(columns, bin);
  for (int64_t i = down.begin; i < down.end; ++i) {
    const SampleTaps v = roi_taps(rows.position(bin / roi.bins_u, i), roi.height);
    for (int64_t j = across.begin; j < across.end && v.count > 0; ++j) {
      const SampleTaps u = roi_taps(columns.position(bin % roi.bins_u, j), roi.width);
      for (size_t k = 0; k < 4 && u.count > 0; ++k) {
        const auto weight = static_cast<float>(v.weight[k / 2] * u.weight[k % 2] * share);
        float* to = grad_image + (v.index[k / 2] * roi.width + u.index[k % 2]) * roi.channels;
        for (int64_t c = begin; c < end; ++c) to[c] += weight * grad[c];
      }
    }
  }
}

Result<KernelPtr> create_roi_align_grad(CpuDevice&, const NodeView& node, Producers) {
  const auto attributes = same_regions<op::RoiAlignAttributes>(node.as<op::RoiAlignGradAttributes>());
  const Shape& x = node.shape(0);
  const Roi roi{x[1], x[2], x[3], attributes.height, attributes.width, attributes.maximum};
  const int64_t bins = roi.bins_v * roi.bins_u, rois = node.shape(2)[0], images = x[0];
  return make_kernel([=, wide = node.dtype(2) == DType::I64](const Call& call) noexcept {
    const float *data = call.in<float>(0), *corners = call.in<float>(1), *grad = call.in<float>(3);
    float* grad_x = call.out<float>();
    const int64_t image = roi.height * roi.width * roi.channels;
    std::fill_n(grad_x, images * image, 0.0f);
    parallel_for(roi.channels, rois * bins * 16, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = 0; i < rois * bins; ++i) {
        const int64_t r = i / bins, first = batch_of(call, wide, r, images) * image;
        const RoiAxis rows = roi_axis(corners[r * 4 + 1], corners[r * 4 + 3], roi.bins_v, attributes);
        const RoiAxis columns = roi_axis(corners[r * 4], corners[r * 4 + 2], roi.bins_u, attributes);
        const float* from = grad + i * roi.channels;
        if (!roi.maximum)
          scatter_mean(grad_x + first, rows, columns, roi, i % bins, from, begin, end);
        else
          for (int64_t c = begin; c < end; ++c)
            scatter_to_largest(data + first, grad_x + first, rows, columns, roi, i % bins, from, c);
      }
    });
  });
}

}  // namespace

std::span<const KernelRow> rows_sample();
std::span<const KernelRow> rows_sample() {
  constexpr DTypeSet kF32{DType::F32};
  static constexpr KernelRow kRows[] = {
      row<create_grid_sample, supports_f32>(OpKind::GridSample, "grid_sample", kF32),
      row<create_roi_align>(OpKind::RoiAlign, "roi_align", kF32),
      row<create_roi_align_grad>(OpKind::RoiAlignGrad, "roi_align_grad", kF32),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
