// y = activation(product + bias + residual), applied before storing. Bindings 2: y, 3: bias, 4: residual.
layout(constant_id = 5) const uint kActivation = 0;
layout(constant_id = 6) const bool kBias = false;
layout(constant_id = 7) const bool kResidual = false;
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer Residual { float residual[]; };

void store_result(uint at, uint bias_at, float value, float alpha, float beta) {
  if (kBias) value += bias[bias_at];
  if (kResidual) value += residual[at];
  y[at] = apply_function(kActivation, value, alpha, beta);
}
