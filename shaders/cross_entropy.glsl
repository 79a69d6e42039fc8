// Cross-entropy of rows, and its gradient. With p = exp((x - maximum) - log_sum) and the share f = of_class w of each
// class:
//   loss = -of_label w[label] log p[label] - sum f log p
//   gradient = grad_loss ((factor p - f) - (of_label w[label] at the label)),
//   factor = of_label w[label] + sum f, which is 1 without weights.
// A row whose label does not count has zeros, whatever its logits are, which are not read in the forward direction.
#include "common.glsl"
#include "functions.glsl"
#include "indices.glsl"
layout(constant_id = 1) const bool kWeights = false;
layout(constant_id = 2) const bool kSmoothing = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer L { int labels[]; };
layout(set = 0, binding = 2, std430) readonly buffer W { float weights[]; };
#ifdef GRADIENT
layout(set = 0, binding = 3, std430) readonly buffer M { float maxima[]; };
layout(set = 0, binding = 4, std430) readonly buffer S { float log_sums[]; };
layout(set = 0, binding = 5, std430) readonly buffer G { float grad_loss[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Y { float y[]; };
#else
layout(set = 0, binding = 3, std430) writeonly buffer M { float maxima[]; };
layout(set = 0, binding = 4, std430) writeonly buffer S { float log_sums[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Y { float losses[]; };
layout(set = 0, binding = 6, std430) writeonly buffer V { float row_weights[]; };
#endif
layout(push_constant) uniform P {
  uint rows, classes, inner, label_words;
  int ignore_index;
  float of_label, of_class;
};

// Of a row; -1 if it does not count.
int label_of(uint row) {
  int label = RT_INTEGER(labels, label_words, row);
  return label >= 0 && label < int(classes) && label != ignore_index ? label : -1;
}
float weight_of(uint c) { return kWeights ? weights[c] : 1.0; }
float share_of(uint c) { return of_class * weight_of(c); }

#ifdef GRADIENT
// A row's part of the gradient.
struct Slope {
  float maximum, log_sum, grad, factor, of_label;
  int label;
};
Slope slope_of(uint row, float all_shares) {
  int label = label_of(row);
  float weighted = label < 0 ? 0.0 : of_label * weight_of(uint(label));
  return Slope(maxima[row], log_sums[row], grad_loss[row], kWeights ? weighted + all_shares : 1.0, weighted, label);
}
float gradient_at(Slope slope, uint c, float logit) {
  if (slope.label < 0) return 0.0;
  float d = slope.factor * exact_exp((logit - slope.maximum) - slope.log_sum);
  if (kSmoothing) d -= share_of(c);
  if (int(c) == slope.label) d -= slope.of_label;
  return slope.grad * d;
}
#else
// logit: the label's.
void store_loss(uint row, int label, float logit, float maximum, float log_sum, float smoothed) {
  bool counts = label >= 0;
  float weight = counts ? weight_of(uint(label)) : 0.0;
  losses[row] = counts ? (log_sum - (logit - maximum)) * weight * of_label - smoothed : 0.0;
  row_weights[row] = weight;
  maxima[row] = counts ? maximum : 0.0;
  log_sums[row] = counts ? log_sum : 0.0;
}
#endif
