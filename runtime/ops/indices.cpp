#include "runtime/ops/indices.h"

#include "runtime/core/element.h"

namespace librt::ops {

Status expect_indexable(const NodeView& node, const Shape& x, int axis) {
  if (x[axis] != 0 || node.input(1).elements() == 0) return {};
  return invalid_argument("expected an axis with elements to index, found axis ", axis, " of ", x,
                          " and indices ", node.shape(1), "; pass no indices, or a longer axis");
}

Result<int64_t> checked_index(const ConstTensorView& indices, int64_t position, int64_t extent) {
  const int64_t index = load_integer(indices.data, indices.info.dtype, position);
  if (index < -extent || index >= extent)
    return invalid_argument("expected indices in [", -extent, ", ", extent, "), found ", index,
                            " at position ", position);
  return index < 0 ? index + extent : index;
}

}  // namespace librt::ops
