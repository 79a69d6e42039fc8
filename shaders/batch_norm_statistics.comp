#version 450
#extension GL_GOOGLE_include_directive : require
// From a batch's mean and variance: the inverse standard deviation and the running statistics,
// new = momentum old + (1 - momentum) batch, the variance divided by n - 1 where `correction` = n / (n - 1).
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer Mean { float mean[]; };
layout(set = 0, binding = 1, std430) readonly buffer Variance { float variance[]; };
layout(set = 0, binding = 2, std430) readonly buffer OldMean { float old_mean[]; };
layout(set = 0, binding = 3, std430) readonly buffer OldVariance { float old_variance[]; };
layout(set = 0, binding = 4, std430) writeonly buffer NewMean { float new_mean[]; };
layout(set = 0, binding = 5, std430) writeonly buffer NewVariance { float new_variance[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Inverse { float inverse[]; };
layout(push_constant) uniform P { uint count; float epsilon; float momentum; float rest; float correction; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  inverse[i] = 1.0 / sqrt(variance[i] + epsilon);
  new_mean[i] = momentum * old_mean[i] + rest * mean[i];
  new_variance[i] = momentum * old_variance[i] + rest * (variance[i] * correction);
}
