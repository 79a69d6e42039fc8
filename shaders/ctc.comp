#version 450
#extension GL_GOOGLE_include_directive : require
// Connectionist temporal classification, one workgroup per sequence; formulas: runtime/ops/ctc.cpp. log alpha and log
// beta are kept relative to the largest of the previous step, so that f32 suffices for any sequence length; the shares
// of a step, which add up to one, are a softmax of alpha + beta, whatever both are relative to.
// Integers are i32 or the low words of i64.
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const bool kZeroInfinity = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };  // [steps,batch,classes]
layout(set = 0, binding = 1, std430) readonly buffer S { int labels[]; };
layout(set = 0, binding = 2, std430) readonly buffer I { int input_lengths[]; };
layout(set = 0, binding = 3, std430) readonly buffer L { int label_lengths[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Y { float loss[]; };
layout(set = 0, binding = 5, std430) writeonly buffer G { float gradient[]; };  // zero-initialized
layout(set = 0, binding = 6, std430) coherent buffer A { float alpha[]; };      // [batch,steps,places]
layout(set = 0, binding = 7, std430) coherent buffer B { float beta[]; };       // [batch,2,places]
layout(set = 0, binding = 8, std430) coherent buffer W { float shares[]; };     // [batch,places]
layout(set = 0, binding = 9, std430) coherent buffer N { uint links[]; };       // [batch,places]: see link()
layout(push_constant) uniform P {
  uint steps, batch, classes, most_labels;
  int blank;
  uint label_words, input_words, length_words;
};
const uint kFirst = 0x80000000u;
shared float lane_values[gl_WorkGroupSize.x];
uint sequence, places, most_places;

/// Maximum or sum over all lanes; also makes their earlier writes visible to all.
float over_lanes(float own, bool sum) {
  lane_values[gl_LocalInvocationID.x] = own;
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
float finite_or_zero(float most) { return most == -kInfinity ? 0.0 : most; }

float log_sum(float a, float b) {
  float high = max_keep_nan(a, b);
  if (high == -kInfinity) return high;
  return high + exact_log(1.0 + exact_exp((a < b ? a : b) - high));
}

int symbol(uint k) { return k % 2 == 0 ? blank : labels[(sequence * most_labels + k / 2) * label_words]; }
bool valid(int of) { return of >= 0 && of < int(classes); }
uint at(uint t, int of) { return (t * batch + sequence) * classes + uint(of); }
float log_probability(uint t, uint k) {
  int of = symbol(k);
  return valid(of) ? x[at(t, of)] : -kInfinity;
}
/// A path may leave out the blank between the labels at k - 2 and k.
bool may_skip_to(uint k) { return k >= 2 && k < places && symbol(k) != blank && symbol(k) != symbol(k - 2); }

/// Chains the positions of equal labels, so that one lane adds up their shares: the next position or 0, and kFirst.
void link() {
  for (uint k = gl_LocalInvocationID.x; k < places; k += gl_WorkGroupSize.x) {
    int own = symbol(k);
    uint chained = 0u;
    if (k % 2 == 1 && own != blank && valid(own)) {
      uint j = 1;
      while (j < k && symbol(j) != own) j += 2;
      if (j == k) chained = kFirst;
      j = k + 2;
      while (j < places && symbol(j) != own) j += 2;
      if (j < places) chained |= j;
    }
    links[sequence * most_places + k] = chained;
  }
}

void main() {
  sequence = group_number();
  if (sequence >= batch) return;
  uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
  uint length = uint(clamp(input_lengths[sequence * input_words], 0, int(steps)));
  places = 2 * uint(clamp(label_lengths[sequence * length_words], 0, int(most_labels))) + 1;
  most_places = 2 * most_labels + 1;
  uint alphas = sequence * steps * most_places, betas = sequence * 2 * most_places, own_shares = sequence * most_places;
  link();

  float before = 0.0, rest = 0.0;  // compensated sum of all `most` so far, and its rounding error
  float most = 0.0;
  for (uint t = 0; t < length; ++t) {
    float term = most - rest, sum_before = before + term;
    rest = (sum_before - before) - term;
    before = sum_before;
    float best = -kInfinity;
    for (uint k = lane; k < places; k += lanes) {
      float sum = k < 2 ? 0.0 : -kInfinity;
      if (t > 0) {
        uint from = alphas + (t - 1) * most_places + k;
        sum = alpha[from];
        if (k >= 1) sum = log_sum(sum, alpha[from - 1]);
        if (may_skip_to(k)) sum = log_sum(sum, alpha[from - 2]);
        sum -= most;
      }
      sum += log_probability(t, k);
      alpha[alphas + t * most_places + k] = sum;
      best = max_keep_nan(best, sum);
    }
    most = finite_or_zero(over_lanes(best, false));
  }
  float total = places == 1 ? 0.0 : -kInfinity;
  if (length > 0) {
    uint last = alphas + (length - 1) * most_places + places - 1;
    total = alpha[last];
    if (places > 1) total = log_sum(total, alpha[last - 1]);
    total += before;
  }
  bool none = total == -kInfinity;
  bool dropped = none && kZeroInfinity;
  if (lane == 0) loss[sequence] = dropped ? 0.0 : -total;
  if (dropped) return;

  most = 0.0;
  for (uint t = length; t-- > 0;) {
    uint own = betas + t % 2 * most_places, behind = betas + (t + 1) % 2 * most_places;
    float best = -kInfinity, best_share = -kInfinity;
    for (uint k = lane; k < places; k += lanes) {
      float sum = k + 2 >= places ? 0.0 : -kInfinity;
      if (t + 1 < length) {
        sum = beta[behind + k];
        if (k + 1 < places) sum = log_sum(sum, beta[behind + k + 1]);
        if (may_skip_to(k + 2)) sum = log_sum(sum, beta[behind + k + 2]);
        sum -= most;
      }
      float probability = log_probability(t, k);
      beta[own + k] = sum + probability;
      best = max_keep_nan(best, sum + probability);
      float share = probability == -kInfinity ? probability : alpha[alphas + t * most_places + k] + sum;
      shares[own_shares + k] = share;
      best_share = max_keep_nan(best_share, share);
    }
    most = finite_or_zero(over_lanes(best, false));
    best_share = finite_or_zero(over_lanes(best_share, false));
    float whole = 0.0;
    for (uint k = lane; k < places; k += lanes) {
      float share = exact_exp(shares[own_shares + k] - best_share);
      shares[own_shares + k] = share;
      whole += share;
    }
    whole = over_lanes(whole, true);
    float scale = none ? uintBitsToFloat(0x7fc00000u) : 1.0 / whole;
    float blanks = 0.0;
    for (uint k = lane; k < places; k += lanes) {
      if (symbol(k) == blank) blanks += shares[own_shares + k];
      uint next = links[own_shares + k];
      if ((next & kFirst) == 0u) continue;
      float sum = shares[own_shares + k];
      for (next &= ~kFirst; next != 0u; next = links[own_shares + next] & ~kFirst) sum += shares[own_shares + next];
      gradient[at(t, symbol(k))] = -sum * scale;
    }
    blanks = over_lanes(blanks, true);
    if (lane == 0) gradient[at(t, blank)] = -blanks * scale;
  }
}
