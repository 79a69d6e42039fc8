// Geometry of Resize: extents, and which input positions with which weights make each output position of an
// axis.
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

namespace rt {

struct ResizeAxis {
  int64_t input = 1;
  int64_t output = 1;
  double scale = 1;  ///< as given, or output / input
};

struct ResizeGeometry {
  int rank = 0;  ///< spatial axes: all but the first and last
  std::array<ResizeAxis, kMaxRank> axes{};
  Shape result;
};

/// Exactly one of sizes and scales is not empty.
Result<ResizeGeometry> resize_geometry(const Shape& x, const op::ResizeAttributes& attributes,
                                       std::span<const int64_t> sizes, std::span<const float> scales);

/// The position in the input that output position i stands for.
double resize_coordinate(const ResizeAxis& axis, op::ResizeCoordinates coordinates, int64_t i) noexcept;

/// y[i] = sum over t < taps of weight[i taps + t] x[index[i taps + t]]; indices are inside the input.
struct ResizeTable {
  int taps = 1;  ///< 1 nearest, 2 linear, 4 cubic
  std::vector<int64_t> index;
  std::vector<double> weight;
};
ResizeTable resize_table(const ResizeAxis& axis, const op::ResizeAttributes& attributes);

}  // namespace rt
