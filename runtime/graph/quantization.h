// Which scale belongs to which element, and the geometry of the integer products.
//
// Knows: attributes and shapes of the quantized operators. Must not know: values, kernels. Pages and backends
// share it.
#pragma once

#include "runtime/core/shape.h"
#include "runtime/core/status.h"
#include "runtime/graph/geometry.h"
#include "runtime/graph/op.h"

namespace rt {

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

/// A scale of one element belongs to the whole tensor, a vector along `axis` to slices; with block_size > 0
/// the scale has x's shape but for ceil(extent / block_size) along the axis.
Result<ScaleGroups> scale_groups(const Shape& x, const Shape& scale, int64_t axis, int64_t block_size);

/// The convolution that a ConvInteger is, but for types and zero points.
op::ConvAttributes as_conv(const op::ConvIntegerAttributes& attributes);
/// The sums that a QuantizedConv requantizes.
op::ConvIntegerAttributes as_integer(const op::QuantizedConvAttributes& attributes);

}  // namespace rt
