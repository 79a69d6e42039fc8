#version 450
#extension GL_GOOGLE_include_directive : require
// Connectionist temporal classification, one workgroup per sequence; formulas: runtime/ops/ctc.cpp. log alpha and log
// beta are kept relative to the largest of the previous step, so that f32 suffices for any sequence length; the
// posteriors of a step, which add up to one, are a softmax of alpha + beta, whatever both are relative to.
#include "common.glsl"
#include "functions.glsl"
#include "indices.glsl"
layout(constant_id = 1) const bool kZeroInfinity = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };  // [steps,batch,classes]
layout(set = 0, binding = 1, std430) readonly buffer S { int labels[]; };
layout(set = 0, binding = 2, std430) readonly buffer I { int input_lengths[]; };
layout(set = 0, binding = 3, std430) readonly buffer L { int label_lengths[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Y { float loss[]; };
layout(set = 0, binding = 5, std430) writeonly buffer G { float gradient[]; };  // zero-initialized
layout(set = 0, binding = 6, std430) coherent buffer A { float alpha[]; };      // [batch,steps,states]
layout(set = 0, binding = 7, std430) coherent buffer B { float beta[]; };       // [batch,2,states]
layout(set = 0, binding = 8, std430) coherent buffer W { float posteriors[]; }; // [batch,states]
layout(set = 0, binding = 9, std430) coherent buffer N { uint links[]; };       // [batch,states]: see link()
layout(push_constant) uniform P {
  uint steps, batch, classes, max_labels;
  int blank;
  uint label_words, input_words, length_words;
};
const uint kFirst = 0x80000000u;
shared float lane_values[gl_WorkGroupSize.x];
uint sequence, states, max_states;

/// Maximum or sum over all lanes; also makes their earlier writes visible to all.
float over_lanes(float value, bool sum) {
  lane_values[gl_LocalInvocationID.x] = value;
  memoryBarrierBuffer();
  barrier();
  float result = lane_values[0];
  for (uint i = 1; i < gl_WorkGroupSize.x; ++i) {
    float other = lane_values[i];
    result = sum ? result + other : max_keep_nan(result, other);
  }
  barrier();
  return result;
}
float finite_or_zero(float maximum) { return maximum == -kInfinity ? 0.0 : maximum; }

float log_sum(float a, float b) {
  float high = max_keep_nan(a, b);
  if (high == -kInfinity) return high;
  return high + exact_log(1.0 + exact_exp((a < b ? a : b) - high));
}

int symbol(uint k) { return k % 2 == 0 ? blank : RT_INTEGER(labels, label_words, sequence * max_labels + k / 2); }
bool valid(int of) { return of >= 0 && of < int(classes); }
uint at(uint t, int of) { return (t * batch + sequence) * classes + uint(of); }
float log_probability(uint t, uint k) {
  int of = symbol(k);
  return valid(of) ? x[at(t, of)] : -kInfinity;
}
/// A path may leave out the blank between the labels at k - 2 and k.
bool may_skip_to(uint k) { return k >= 2 && k < states && symbol(k) != blank && symbol(k) != symbol(k - 2); }

/// Chains the positions of equal labels, so that one lane adds up their posteriors: the next position or 0, and kFirst.
void link() {
  for (uint k = gl_LocalInvocationID.x; k < states; k += gl_WorkGroupSize.x) {
    int label = symbol(k);
    uint chained = 0u;
    if (k % 2 == 1 && label != blank && valid(label)) {
      uint j = 1;
      while (j < k && symbol(j) != label) j += 2;
      if (j == k) chained = kFirst;
      j = k + 2;
      while (j < states && symbol(j) != label) j += 2;
      if (j < states) chained |= j;
    }
    links[sequence * max_states + k] = chained;
  }
}

void main() {
  sequence = group_index();
  if (sequence >= batch) return;
  uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
  uint length = uint(clamp(RT_INTEGER(input_lengths, input_words, sequence), 0, int(steps)));
  states = 2 * uint(clamp(RT_INTEGER(label_lengths, length_words, sequence), 0, int(max_labels))) + 1;
  max_states = 2 * max_labels + 1;
  uint alphas = sequence * steps * max_states, betas = sequence * 2 * max_states;
  uint first_posterior = sequence * max_states;
  link();

  float before = 0.0, rest = 0.0;  // compensated sum of all `maximum` so far, and its rounding error
  float maximum = 0.0;
  for (uint t = 0; t < length; ++t) {
    float term = maximum - rest, sum_before = before + term;
    rest = (sum_before - before) - term;
    before = sum_before;
    float best = -kInfinity;
    for (uint k = lane; k < states; k += lanes) {
      float sum = k < 2 ? 0.0 : -kInfinity;
      if (t > 0) {
        uint from = alphas + (t - 1) * max_states + k;
        sum = alpha[from];
        if (k >= 1) sum = log_sum(sum, alpha[from - 1]);
        if (may_skip_to(k)) sum = log_sum(sum, alpha[from - 2]);
        sum -= maximum;
      }
      sum += log_probability(t, k);
      alpha[alphas + t * max_states + k] = sum;
      best = max_keep_nan(best, sum);
    }
    maximum = finite_or_zero(over_lanes(best, false));
  }
  float total = states == 1 ? 0.0 : -kInfinity;
  if (length > 0) {
    uint last = alphas + (length - 1) * max_states + states - 1;
    total = alpha[last];
    if (states > 1) total = log_sum(total, alpha[last - 1]);
    total += before;
  }
  bool none = total == -kInfinity;
  bool dropped = none && kZeroInfinity;
  if (lane == 0) loss[sequence] = dropped ? 0.0 : -total;
  if (dropped) return;

  maximum = 0.0;
  for (uint t = length; t-- > 0;) {
    uint current_row = betas + t % 2 * max_states, next_row = betas + (t + 1) % 2 * max_states;
    float best = -kInfinity, max_posterior = -kInfinity;
    for (uint k = lane; k < states; k += lanes) {
      float sum = k + 2 >= states ? 0.0 : -kInfinity;
      if (t + 1 < length) {
        sum = beta[next_row + k];
        if (k + 1 < states) sum = log_sum(sum, beta[next_row + k + 1]);
        if (may_skip_to(k + 2)) sum = log_sum(sum, beta[next_row + k + 2]);
        sum -= maximum;
      }
      float probability = log_probability(t, k);
      beta[current_row + k] = sum + probability;
      best = max_keep_nan(best, sum + probability);
      float posterior = probability == -kInfinity ? probability : alpha[alphas + t * max_states + k] + sum;
      posteriors[first_posterior + k] = posterior;
      max_posterior = max_keep_nan(max_posterior, posterior);
    }
    maximum = finite_or_zero(over_lanes(best, false));
    max_posterior = finite_or_zero(over_lanes(max_posterior, false));
    float whole = 0.0;
    for (uint k = lane; k < states; k += lanes) {
      float posterior = exact_exp(posteriors[first_posterior + k] - max_posterior);
      posteriors[first_posterior + k] = posterior;
      whole += posterior;
    }
    whole = over_lanes(whole, true);
    float scale = none ? uintBitsToFloat(0x7fc00000u) : 1.0 / whole;
    float blanks = 0.0;
    for (uint k = lane; k < states; k += lanes) {
      if (symbol(k) == blank) blanks += posteriors[first_posterior + k];
      uint next = links[first_posterior + k];
      if ((next & kFirst) == 0u) continue;
      float sum = posteriors[first_posterior + k];
      for (next &= ~kFirst; next != 0u; next = links[first_posterior + next] & ~kFirst)
        sum += posteriors[first_posterior + next];
      gradient[at(t, symbol(k))] = -sum * scale;
    }
    blanks = over_lanes(blanks, true);
    if (lane == 0) gradient[at(t, blank)] = -blanks * scale;
  }
}
