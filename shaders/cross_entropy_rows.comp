#version 450
#extension GL_GOOGLE_include_directive : require
// Rows of x [rows,classes], one workgroup per row; formulas: cross_entropy.glsl.
// variants: cross_entropy_rows
// variants: cross_entropy_rows_grad GRADIENT
#include "cross_entropy.glsl"
shared float partial[gl_WorkGroupSize.x];

/// Maximum or sum over all lanes.
float over_lanes(float value, bool sum) {
  barrier();
  uint lane = gl_LocalInvocationID.x;
  partial[lane] = value;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width)
      partial[lane] = sum ? partial[lane] + partial[lane + width] : max_keep_nan(partial[lane], partial[lane + width]);
  }
  barrier();
  return partial[0];
}

void main() {
  uint row = group_index(), lane = gl_LocalInvocationID.x;
  uint base = row * classes;
#ifdef GRADIENT
  float all_shares = 0.0;
  if (kWeights && kSmoothing) {
    for (uint c = lane; c < classes; c += gl_WorkGroupSize.x) all_shares += share_of(c);
    all_shares = over_lanes(all_shares, true);
  }
  if (row >= rows) return;
  Slope slope = slope_of(row, all_shares);
  for (uint c = lane; c < classes; c += gl_WorkGroupSize.x) y[base + c] = gradient_at(slope, c, x[base + c]);
#else
  int label = row < rows ? label_of(row) : -1;
  uint length = label < 0 ? 0 : classes;
  float maximum = -kInfinity;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) maximum = max_keep_nan(maximum, x[base + c]);
  maximum = over_lanes(maximum, false);
  float sum = 0.0;
  for (uint c = lane; c < length; c += gl_WorkGroupSize.x) sum += exact_exp(x[base + c] - maximum);
  sum = over_lanes(sum, true);
  if (is_nan(sum)) maximum = sum;
  float log_sum = exact_log(sum), smoothed = 0.0;
  if (kSmoothing) {
    for (uint c = lane; c < length; c += gl_WorkGroupSize.x)
      smoothed += share_of(c) * ((x[base + c] - maximum) - log_sum);
    smoothed = over_lanes(smoothed, true);
  }
  if (lane == 0 && row < rows)
    store_loss(row, label, label < 0 ? 0.0 : x[base + uint(label)], maximum, log_sum, smoothed);
#endif
}
