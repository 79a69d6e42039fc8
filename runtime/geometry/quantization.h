// The mapping of elements to scales, and attribute conversions between the convolution variants.
//
// Knows: attributes and shapes of the quantized operators. Must not know: values, kernels. Pages and backends
// share it.
#pragma once

#include "runtime/core/shape.h"
#include "runtime/core/status.h"
#include "runtime/geometry/windows.h"
#include "runtime/graph/op.h"

namespace librt {

/// A tensor seen as [outer, extent, inner]; element (o, e, i) has scale
/// o * outer_stride + e / block * block_stride + i * inner_stride.
struct ScaleGroups {
  int64_t outer = 1, extent = 1, inner = 1;
  int64_t block = 1;
  int64_t outer_stride = 0, block_stride = 0, inner_stride = 0;

  bool per_tensor() const noexcept { return block_stride == 0 && inner_stride == 0; }
  int64_t scale_of(int64_t o, int64_t e, int64_t i) const noexcept {
    return o * outer_stride + e / block * block_stride + i * inner_stride;
  }
};

/// A scale of one element is per tensor, a vector is per slice along `axis`; with block_size > 0 the scale
/// has x's shape except for ceil(extent / block_size) along the axis.
Result<ScaleGroups> scale_groups(const Shape& x, const Shape& scale, int64_t axis, int64_t block_size);

/// The Conv with a ConvInteger's geometry (without types and zero points).
op::ConvAttributes as_conv(const op::ConvIntegerAttributes& attributes);
/// The ConvInteger whose accumulators a QuantizedConv requantizes.
op::ConvIntegerAttributes as_integer(const op::QuantizedConvAttributes& attributes);

}  // namespace librt
