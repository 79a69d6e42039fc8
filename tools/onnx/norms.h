// Normalizations that several operators' importers write.
#pragma once

#include "tools/onnx/node.h"

namespace librt::onnx {

struct RmsNormalized {
  ValueId y = kNoValue;
  ValueId inverse_root = kNoValue;  ///< 1 / sqrt(mean(x^2) + epsilon), in f32 if `wide`
};

/// x / sqrt(mean(x^2) + epsilon) scale, the mean taken over [axis, rank). wide: computed in f32. The result
/// has the scale's type, or x's without a scale.
RmsNormalized rms_normalized(NodeContext& c, ValueId x, ValueId scale, int axis, float epsilon, bool wide);

/// x [N,C,S..] less its mean, over its deviation, over each group of channels and all of S: [N,G,C/G,S..].
ValueId group_normalized(NodeContext& c, ValueId x, int64_t groups, float epsilon);

}  // namespace librt::onnx
