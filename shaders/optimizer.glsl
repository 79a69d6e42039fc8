// An optimizer step of REAL elements, float or a vector; formulas: schema/ops.fbs. Before including this, declare
// scalars[] of optimizer_scalars.comp and the attributes beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon,
// decay, momentum.
layout(constant_id = 1) const uint kStep = 0;
layout(constant_id = 2) const uint kStates = 0;       // bit i: state i is present
layout(constant_id = 3) const bool kVariant = false;  // Sgd: Nesterov; Adam: decoupled weight decay
const uint kSgd = 0, kAdam = 1, kRmsProp = 2, kAdagrad = 3, kAdadelta = 4, kLion = 6;

// Values of this run; read once, since memory that a shader also writes would be read again for each element.
bool skips;
float rate, grad_scale, correction1, correction2, share;
void load_scalars() {
  rate = scalars[0];
  grad_scale = scalars[1];
  correction1 = scalars[2];
  correction2 = scalars[3];
  share = scalars[4];
  skips = scalars[5] != 0.0;
}

bool has(uint state) { return (kStates >> state & 1u) != 0; }

float sign_or_nan(float x) { return is_nan(x) ? x : sign(x); }
vec4 sign_or_nan(vec4 x) { return vec4(sign_or_nan(x.x), sign_or_nan(x.y), sign_or_nan(x.z), sign_or_nan(x.w)); }

// The update direction; also updates the states.
REAL direction(REAL parameter, REAL g, inout REAL s0, inout REAL s1, inout REAL s2) {
  if (kStep == kSgd) {
    if (!has(0)) return g;
    s0 = beta1 * s0 + share * g;
    return kVariant ? g + beta1 * s0 : s0;
  }
  if (kStep == kAdam) {
    s0 = beta1 * s0 + one_minus_beta1 * g;
    s1 = beta2 * s1 + one_minus_beta2 * g * g;
    if (has(2)) s2 = max_keep_nan(s2, s1);
    return s0 * correction1 / (sqrt((has(2) ? s2 : s1) * correction2) + epsilon);
  }
  if (kStep == kRmsProp) {
    s0 = beta1 * s0 + one_minus_beta1 * g * g;
    REAL variance = s0;
    if (has(1)) {
      s1 = beta1 * s1 + one_minus_beta1 * g;
      variance = max_keep_nan(s0 - s1 * s1, REAL(0.0));  // rounding may make it negative
    }
    REAL step = g / (sqrt(variance) + epsilon);
    if (!has(2)) return step;
    s2 = momentum * s2 + step;
    return s2;
  }
  if (kStep == kAdagrad) {
    s0 += g * g;
    return g / (sqrt(s0) + epsilon);
  }
  if (kStep == kAdadelta) {
    s0 = beta1 * s0 + one_minus_beta1 * g * g;
    REAL delta = sqrt(s1 + epsilon) / sqrt(s0 + epsilon) * g;
    s1 = beta1 * s1 + one_minus_beta1 * delta * delta;
    return delta;
  }
  REAL mixed = beta1 * s0 + one_minus_beta1 * g;
  s0 = beta2 * s0 + one_minus_beta2 * g;
  return sign_or_nan(mixed) + decay * parameter;
}

// Does nothing if the step is skipped. Call after load_scalars().
void step_elements(inout REAL parameter, REAL grad, inout REAL s0, inout REAL s1, inout REAL s2) {
  if (skips) return;
  REAL g = grad_scale * grad;
  if (kStep == kAdam && kVariant) parameter -= rate * decay * parameter;
  else if (kStep != kLion) g += decay * parameter;
  REAL along = direction(parameter, g, s0, s1, s2);
  parameter -= rate * along;
}
