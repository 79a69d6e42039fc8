// Index operands of gathers and scatters: their types, the rule for an axis without elements, and reading one
// with a check.
#pragma once

#include "runtime/ops/page_support.h"

namespace librt::ops {

inline constexpr DTypeSet kIndexTypes{DType::I32, DType::I64};

/// Input 1 has no indices if `axis` of x, which they address, has no elements: none of them could be valid.
Status expect_indexable(const NodeView& node, const Shape& x, int axis);

/// Entry `position` counted from the start.
Result<int64_t> checked_index(const ConstTensorView& indices, int64_t position, int64_t extent);

}  // namespace librt::ops
