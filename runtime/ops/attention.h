// The intermediate values of attention, for callers that need more than its result.
//
// Knows: the values from query to result. Must not know: file formats.
#pragma once

#include <span>

#include "runtime/graph/emitter.h"

namespace librt::ops {

/// Values of [B, H, S, T] unless noted, 16-bit inputs widened to f32.
struct AttentionParts {
  ValueId query = kNoValue;    ///< [B, H, S, D], scaled
  ValueId key = kNoValue;      ///< [B, G, T, D]
  ValueId value = kNoValue;    ///< [B, G, T, E]
  ValueId matmul = kNoValue;   ///< scale q k
  ValueId capped = kNoValue;   ///< after softcap; without one the product
  ValueId masked = kNoValue;   ///< -infinity where a key is masked
  ValueId weights = kNoValue;  ///< softmax over the keys, 0 for a query with all keys masked
  ValueId result = kNoValue;   ///< [B, H, S, E], in the query's type
};

/// Emits the body of Attention with its inputs (kNoValue for absent ones). The softmax is computed in
/// `softmax_type` where that is wider than the scores.
AttentionParts emit_attention(Emitter& emit, const op::AttentionAttributes& attributes,
                              std::span<const ValueId> inputs, DType softmax_type = DType::F32);

}  // namespace librt::ops
