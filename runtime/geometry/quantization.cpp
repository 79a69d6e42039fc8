#include "runtime/geometry/quantization.h"

namespace librt {

Result<ScaleGroups> scale_groups(const Shape& x, const Shape& scale, int64_t axis, int64_t block_size) {
  if (block_size < 0) return invalid_argument("expected a block size of 0 or more, found ", block_size);
  if (block_size == 0 && scale.rank() <= 1 && scale.elements() == 1)
    return ScaleGroups{.inner = x.elements()};
  const auto normal = normalized_axis(axis, x.rank());
  if (!normal) return invalid_argument("expected an axis of the rank ", x.rank(), ", found ", axis);
  ScaleGroups groups{
      .outer = x.elements(0, *normal), .extent = x[*normal], .inner = x.elements(*normal + 1, x.rank())};
  if (block_size == 0) {
    if (scale != Shape{groups.extent})
      return invalid_argument("expected a scale of one element, or of ", groups.extent, " along axis ",
                              *normal, ", found ", scale);
    groups.block_stride = 1;
    return groups;
  }
  const int64_t blocks = groups.extent / block_size + (groups.extent % block_size != 0 ? 1 : 0);
  Shape expected = x;
  expected[*normal] = blocks;
  if (scale != expected)
    return invalid_argument("expected a scale ", expected, " for blocks of ", block_size, " along axis ",
                            *normal, ", found ", scale);
  groups.block = block_size;
  groups.outer_stride = blocks * groups.inner;
  groups.block_stride = groups.inner;
  groups.inner_stride = 1;
  return groups;
}

op::ConvAttributes as_conv(const op::ConvIntegerAttributes& attributes) {
  return same_window<op::ConvAttributes>(attributes);
}

op::ConvIntegerAttributes as_integer(const op::QuantizedConvAttributes& attributes) {
  return same_window<op::ConvIntegerAttributes>(attributes);
}

}  // namespace librt
