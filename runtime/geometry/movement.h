// Geometry of data movement: Slice, Pad, and Reshape with -1.
//
// Knows: attributes, shape operands and shapes. Must not know: values, kernels. Pages and backends share it.
#pragma once

#include <array>
#include <span>

#include "runtime/core/shape.h"
#include "runtime/core/status.h"
#include "runtime/graph/op.h"

namespace librt {

/// output[i] along each axis is x[start + i step].
struct SliceGeometry {
  std::array<int64_t, kMaxRank> start{};
  std::array<int64_t, kMaxRank> step{};
  Shape result;
};
/// ONNX's Slice: starts and ends are clamped to the axis, negative ones count from its end; axes not listed
/// are kept whole. Empty axes: the first ones; empty steps: 1.
Result<SliceGeometry> slice_geometry(const Shape& x, const op::SliceAttributes& attributes,
                                     std::span<const int64_t> starts, std::span<const int64_t> ends);

/// x is first cropped to [start, start + extent) by the negative pads, then padded: output[i] along each axis
/// is cropped[i - before] where that is inside it, else as the mode defines (see pad_source).
struct PadGeometry {
  std::array<int64_t, kMaxRank> start{};
  std::array<int64_t, kMaxRank> extent{};  ///< may be negative with PadMode::Constant: nothing is left of x
  std::array<int64_t, kMaxRank> before{};
  Shape result;
};
/// pads: all begins, then all ends.
Result<PadGeometry> pad_geometry(const Shape& x, op::PadMode mode, std::span<const int64_t> pads);
/// The position in x along `axis` that output position i reads, or -1 for the constant.
int64_t pad_source(const PadGeometry& geometry, op::PadMode mode, int axis, int64_t i) noexcept;

/// Reshape's result: `shape` with its one -1 resolved.
Result<Shape> reshape_result(const Shape& x, std::span<const int64_t> shape);

}  // namespace librt
