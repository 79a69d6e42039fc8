// What attention is computed through, for those who ask for more than its result.
//
// Knows: the values between query and result. Must not know: file formats.
#pragma once

#include <span>

#include "runtime/graph/emitter.h"

namespace rt::ops {

/// Values of [B, H, S, T] where nothing else is said, 16-bit inputs widened to f32.
struct AttentionParts {
  ValueId query = kNoValue;    ///< [B, H, S, D], scaled
  ValueId key = kNoValue;      ///< [B, G, T, D]
  ValueId value = kNoValue;    ///< [B, G, T, E]
  ValueId product = kNoValue;  ///< scale q k
  ValueId capped = kNoValue;   ///< after softcap; the product without one
  ValueId masked = kNoValue;   ///< -infinity where a key is hidden
  ValueId weights = kNoValue;  ///< softmax over the keys, 0 for a query that sees none
  ValueId result = kNoValue;   ///< [B, H, S, E], in the query's type
};

/// Emits the body of Attention with its inputs (kNoValue for absent ones). The softmax is taken in
/// `softmax_type` where that is wider than the scores.
AttentionParts emit_attention(Emitter& emit, const op::AttentionAttributes& attributes,
                              std::span<const ValueId> inputs, DType softmax_type = DType::F32);

}  // namespace rt::ops
