// y = activation(product + bias + residual), applied before storing. Bindings 2: y, 3: bias, 4: residual.
layout(constant_id = 5) const uint kActivation = 0;
layout(constant_id = 6) const bool kBias = false;
layout(constant_id = 7) const bool kResidual = false;
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y4 { vec4 y4[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias4 { vec4 bias4[]; };
layout(set = 0, binding = 4, std430) readonly buffer Residual { float residual[]; };
layout(set = 0, binding = 4, std430) readonly buffer Residual4 { vec4 residual4[]; };

void store_result(uint at, uint bias_at, float value, float alpha, float beta) {
  if (kBias) value += bias[bias_at];
  if (kResidual) value += residual[at];
  y[at] = apply_function(kActivation, value, alpha, beta);
}

// Four neighbours at 4 * at4, whose bias the caller has loaded.
void store_four(uint at4, vec4 bias_of_four, vec4 value, float alpha, float beta) {
  if (kBias) value += bias_of_four;
  if (kResidual) value += residual4[at4];
  [[unroll]] for (uint d = 0; d < 4; ++d) value[d] = apply_function(kActivation, value[d], alpha, beta);
  y4[at4] = value;
}
