// Geometry of GridSample and RoiAlign: the input positions and weights of a sample along one axis.
//
// Knows: ONNX's coordinates, paddings and weights. Must not know: values, kernels. The weights along several
// axes multiply.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/graph/op.h"

namespace librt {

struct SampleTaps {
  int count = 0;
  std::array<int64_t, 4> index{};  ///< inside the extent, or -1 for a zero outside
  std::array<double, 4> weight{};
};

/// Taps of a grid coordinate, where -1 to 1 spans the extent. Nearest rounds half to even.
SampleTaps grid_taps(double coordinate, int64_t extent, const op::GridSampleAttributes& attributes) noexcept;

/// Copies all attributes between RoiAlign and its gradient.
template <class To, class From>
To same_regions(const From& from) {
  To to;
  to.height = from.height;
  to.width = from.width;
  to.sampling_ratio = from.sampling_ratio;
  to.spatial_scale = from.spatial_scale;
  to.maximum = from.maximum;
  to.half_pixel = from.half_pixel;
  return to;
}

/// Along one axis of a region: bin b has `samples` sampling points, point i at
/// start + (b + (i + 1/2) / samples) bin. In f32, in which the number of points is computed.
struct RoiAxis {
  float start = 0;
  float bin = 0;
  int64_t samples = 0;

  float position(int64_t b, int64_t i) const noexcept {
    return start + static_cast<float>(b) * bin +
           (static_cast<float>(i) + 0.5f) * bin / static_cast<float>(samples);
  }
};
RoiAxis roi_axis(float begin, float end, int64_t bins, const op::RoiAlignAttributes& attributes) noexcept;

/// The points of bin b that may matter, [begin, end): those inside [-1, extent], which are neighbours, and
/// one on either side in place of all others there, whose samples are 0. A region far larger than the image
/// has too many of these to visit.
struct RoiPoints {
  int64_t begin = 0, end = 0;
};
RoiPoints roi_points(const RoiAxis& axis, int64_t b, int64_t extent) noexcept;

/// No taps for a position outside [-1, extent]: such a sample is 0.
SampleTaps roi_taps(float position, int64_t extent) noexcept;

}  // namespace librt
