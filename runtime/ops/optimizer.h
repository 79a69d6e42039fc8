// What the pages of the optimizer steps share: operand checks.
//
// Knows: the conventions of the steps in schema/ops.fbs. Must not know: any step's formula.
#pragma once

#include "runtime/ops/page_support.h"

namespace librt::ops {

/// Input i has the parameter's shape, and its type or f32.
Status expect_moment(const NodeView& node, size_t i, Label what);
/// Inputs 0 and 1.
Status expect_parameter_and_gradient(const NodeView& node);
/// Input i is present, a scalar of this type.
Status expect_scalar(const NodeView& node, size_t i, Label what, DType dtype);
/// The optional inputs [gradient_scale] and [skip] that every step ends with.
Status expect_scale_and_skip(const NodeView& node, size_t gradient_scale);
/// Input i is the codebook of block-quantized values: f32 [2..256].
Status expect_codebook(const NodeView& node, size_t i);
/// Elements per scale: sums with a number of elements stay far from the end of int64.
inline constexpr int64_t kMostBlockSize = int64_t{1} << 30;
Status check_block_size(int64_t block_size);
/// The rate is in [0, 1).
Status expect_decay_rate(Label what, float rate);

}  // namespace librt::ops
