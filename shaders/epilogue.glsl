// y = activation(accumulator + bias + residual), fused into the store. Bindings 2: y, 3: bias, 4: residual.
layout(constant_id = 5) const uint kActivation = 0;
layout(constant_id = 6) const bool kBias = false;
layout(constant_id = 7) const bool kResidual = false;
// SIXTEEN_BITS: the bias has type kElement, like A and B.
#ifdef SIXTEEN_BITS
layout(constant_id = 9) const uint kStored = 0;  // the type of y
layout(constant_id = 10) const uint kResidualElement = 0;
#else
#include "sixteen_bits.glsl"
const uint kElement = 0, kStored = 0, kResidualElement = 0;
#endif
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y2 { uvec2 y2[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y4 { vec4 y4[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias4 { vec4 bias4[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias2 { uvec2 bias2[]; };
layout(set = 0, binding = 4, std430) readonly buffer Residual { float residual[]; };
layout(set = 0, binding = 4, std430) readonly buffer Residual4 { vec4 residual4[]; };
layout(set = 0, binding = 4, std430) readonly buffer Residual2 { uvec2 residual2[]; };

vec4 load_bias4(uint at4) {
  if (kElement == 0) return bias4[at4];
  return widened(bias2[at4], kElement);
}

// One element, stored as f32.
void store_result(uint at, uint residual_at, uint bias_at, float value, float alpha, float beta) {
  if (kBias) {
    if (kElement == 0) value += bias[bias_at];
    else value += load_bias4(bias_at / 4)[bias_at % 4];
  }
  if (kResidual) {
    if (kResidualElement == 0) value += residual[residual_at];
    else value += widened(residual2[residual_at / 4], kResidualElement)[residual_at % 4];
  }
  y[at] = apply_function(kActivation, value, alpha, beta);
}

// Four neighbours at 4 * at4 and 4 * residual_at4, whose bias the caller has loaded.
void store_vec4(uint at4, uint residual_at4, vec4 bias_here, vec4 value, float alpha, float beta) {
  if (kBias) value += bias_here;
  if (kResidual) {
    if (kResidualElement == 0) value += residual4[residual_at4];
    else value += widened(residual2[residual_at4], kResidualElement);
  }
  [[unroll]] for (uint d = 0; d < 4; ++d) value[d] = apply_function(kActivation, value[d], alpha, beta);
  if (kStored == 0) y4[at4] = value;
  else y2[at4] = narrowed(value, kStored);
}
