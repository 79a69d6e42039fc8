// Normalizations that several operators' importers write.
#pragma once

#include "tools/rtconvert/onnx/node.h"

namespace rt::onnx {

struct RmsNormalized {
  ValueId y = kNoValue;
  ValueId inverse_root = kNoValue;  ///< 1 / sqrt(mean(x^2) + epsilon), in f32 where x is wide
};

/// x / sqrt(mean(x^2) + epsilon) scale, the mean taken over [axis, rank). wide: f32 inside. The result has
/// the scale's type; without a scale x's.
RmsNormalized rms_normalized(NodeContext& c, ValueId x, ValueId scale, int axis, float epsilon, bool wide);

}  // namespace rt::onnx
