// Geometry of Resize: extents, and the input positions and weights of each output position along an axis.
//
// Knows: ONNX's coordinate transformations and interpolation weights. Must not know: values, kernels. A
// backend can use the tables as they are.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/shape.h"
#include "runtime/core/status.h"
#include "runtime/graph/op.h"

namespace librt {

struct ResizeAxis {
  int64_t input = 1;
  int64_t output = 1;
  double scale = 1;                   ///< as given, else output / input
  double roi_start = 0, roi_end = 1;  ///< the region of the input that TfCropAndResize reads
};

struct ResizeGeometry {
  int rank = 0;  ///< spatial axes: all but the first and last
  std::array<ResizeAxis, kMaxRank> axes{};
  Shape result;
  int taps = 1;  ///< along every axis
};

/// sizes: the result's extents; empty: those that scales give, floor(extent scale) in f32. scales: the ratio
/// of positions; empty: that of the extents. One of them may be empty. roi: empty, or all starts, then all
/// ends.
Result<ResizeGeometry> resize_geometry(const Shape& x, const op::ResizeAttributes& attributes,
                                       std::span<const int64_t> sizes, std::span<const float> scales,
                                       std::span<const float> roi);

/// The input coordinate of output position i.
double resize_coordinate(const ResizeAxis& axis, op::ResizeCoordinates coordinates, int64_t i) noexcept;

/// Keys' cubic convolution (1981) at the distances 1 + r, r, 1 - r, 2 - r.
std::array<double, 4> cubic_weights(double r, double a) noexcept;

/// y[i] = sum over t < taps of weight[i taps + t] x[index[i taps + t]]. Indices are inside the input, or all
/// -1 where TfCropAndResize samples outside: there the result is the extrapolation value. Taps are 1 for
/// nearest, 2 for linear and 4 for cubic, and more where antialiasing stretches the filter; an axis that
/// needs fewer than another is padded with weights of 0.
struct ResizeTable {
  std::vector<int64_t> index;
  std::vector<double> weight;
};
ResizeTable resize_table(const ResizeAxis& axis, const op::ResizeAttributes& attributes, int taps);

}  // namespace librt
