// Attention heads: a separate axis in the matmuls, concatenated along the width elsewhere.
#pragma once

#include "tools/onnx/node.h"

namespace librt::onnx {

/// x [B,S,H D] as [B,H,S,D]; an error where the width is no multiple of the heads.
Result<ValueId> split_heads(Emitter& emit, ValueId x, int64_t heads);
/// x [B,H,S,D] as [B,S,H D].
ValueId merge_heads(Emitter& emit, ValueId x);

/// Positions 0, 1, .. along an axis of x, i64.
ValueId positions_along(Emitter& emit, ValueId x, int axis);

/// Handling of keys that a mask has no column for.
enum class ShortMask { Refuse, RepeatLast };
/// The mask with one column on its last axis for each of the keys [B,H,T,D], also where the two extents have
/// different symbols. Columns after them are dropped; a single one is broadcast.
ValueId columns_for(Emitter& emit, ValueId mask, ValueId key, ShortMask short_mask);

}  // namespace librt::onnx
