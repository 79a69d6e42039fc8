// The heads of attention: apart for the product with each other's keys, side by side outside.
#pragma once

#include "tools/rtconvert/onnx/node.h"

namespace rt::onnx {

/// x [B,S,H D] as [B,H,S,D]; an error where the width is no multiple of the heads.
Result<ValueId> split_heads(Emitter& emit, ValueId x, int64_t heads);
/// x [B,H,S,D] as [B,S,H D].
ValueId merge_heads(Emitter& emit, ValueId x);

/// 0, 1, .., one for each entry of x along an axis, as i64.
ValueId positions_along(Emitter& emit, ValueId x, int axis);

/// What to do about keys that a mask has no column for.
enum class ShortMask { Refuse, RepeatLast };
/// A mask whose last axis has a column for each of the keys [B,H,T,D], also where the extents are known by
/// different names. Columns after them are dropped; a single one is broadcast.
ValueId columns_for(Emitter& emit, ValueId mask, ValueId key, ShortMask short_mask);

}  // namespace rt::onnx
