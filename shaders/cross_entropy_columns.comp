#version 450
#extension GL_GOOGLE_include_directive : require
// Columns of x [outer,classes,inner], each of which is a row of classes, one invocation per column; formulas:
// cross_entropy.glsl.
// variants: cross_entropy_columns
// variants: cross_entropy_columns_grad GRADIENT
#include "cross_entropy.glsl"

void main() {
  uint row = invocation_index();
  if (row >= rows) return;
  uint base = row / inner * classes * inner + row % inner;
#ifdef GRADIENT
  float all_shares = 0.0;
  if (kWeights && kSmoothing)
    for (uint c = 0; c < classes; ++c) all_shares += share_of(c);
  Slope slope = slope_of(row, all_shares);
  for (uint c = 0, at = base; c < classes; ++c, at += inner) y[at] = gradient_at(slope, c, x[at]);
#else
  int label = label_of(row);
  uint length = label < 0 ? 0 : classes;
  float maximum = -kInfinity;
  for (uint c = 0; c < length; ++c) maximum = max_keep_nan(maximum, x[base + c * inner]);
  float sum = 0.0;
  for (uint c = 0; c < length; ++c) sum += exact_exp(x[base + c * inner] - maximum);
  if (is_nan(sum)) maximum = sum;
  float log_sum = exact_log(sum), smoothed = 0.0;
  if (kSmoothing)
    for (uint c = 0; c < length; ++c) smoothed += share_of(c) * ((x[base + c * inner] - maximum) - log_sum);
  store_loss(row, label, label < 0 ? 0.0 : x[base + uint(label) * inner], maximum, log_sum, smoothed);
#endif
}
