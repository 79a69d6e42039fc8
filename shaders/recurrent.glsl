// Shared by the recurrent shaders: the cell, its activations and their derivatives, the order of steps in time.
layout(constant_id = 1) const uint kCell = 0;  // 0: LSTM, 1: GRU, 2: RNN
layout(constant_id = 2) const uint kForm = 0;
layout(constant_id = 3) const uint kRows = 1;
layout(constant_id = 4) const uint kFlags = 0;
layout(constant_id = 5) const uint kF0 = kFunctionSigmoid;
layout(constant_id = 6) const uint kG0 = kFunctionTanh;
layout(constant_id = 7) const uint kH0 = kFunctionTanh;
layout(constant_id = 8) const uint kF1 = kFunctionSigmoid;
layout(constant_id = 9) const uint kG1 = kFunctionTanh;
layout(constant_id = 10) const uint kH1 = kFunctionTanh;
layout(constant_id = 11) const uint kSharedVec4s = 1;
const bool kBias = (kFlags & 1u) != 0;
const bool kLengths = (kFlags & 2u) != 0;
const bool kPeepholes = (kFlags & 4u) != 0;
const bool kLinear = (kFlags & 8u) != 0;
const bool kInputForget = (kFlags & 16u) != 0;
const bool kReverse = (kFlags & 32u) != 0;
const bool kClip = (kFlags & 64u) != 0;
const bool kGradY = (kFlags & 128u) != 0;
const bool kFirstH = (kFlags & 256u) != 0;
const bool kFirstC = (kFlags & 512u) != 0;
const uint kGates = kCell == 0 ? 4 : (kCell == 1 ? 3 : 1);

layout(set = 0, binding = 7, std430) readonly buffer Lengths { int lengths[]; };
layout(push_constant) uniform P {
  uint steps, batch, directions, hidden, vec4s;
  uint first, last, units, unit_groups, phases;
  float clip_at;
  float alpha[6];
  float beta[6];
};

uint length_of(uint n) { return kLengths ? uint(clamp(lengths[n], 0, int(steps))) : steps; }
bool backwards(uint direction) { return kReverse || direction == 1; }
// Time index of step s of a row; steps past the row's length keep their index. Its own inverse.
uint time_of(uint s, uint len, uint direction) { return s < len && backwards(direction) ? len - 1 - s : s; }

uint function_of(uint direction, uint slot) {
  uint one = slot == 0 ? kF0 : (slot == 1 ? kG0 : kH0);
  uint two = slot == 0 ? kF1 : (slot == 1 ? kG1 : kH1);
  return one == two || direction == 0 ? one : two;
}

float activate(uint direction, uint slot, float x) {
  if (kClip) x = clip(x, -clip_at, clip_at);
  float a = alpha[direction * 3 + slot];
  float b = beta[direction * 3 + slot];
  uint f = function_of(direction, slot);
  switch (f) {
    case kFunctionAffine: return a * x + b;
    case kFunctionThresholdedRelu: return is_nan(x) || x > a ? x : 0.0;
    case kFunctionScaledTanh: return a * exact_tanh(b * x);
    case kFunctionSoftsign: return x / (1.0 + abs(x));
  }
  return apply_function(f, x, a, b);
}

float slope(uint direction, uint slot, float x) {
  if (kClip && abs(x) > clip_at) return 0.0;
  float a = alpha[direction * 3 + slot];
  float b = beta[direction * 3 + slot];
  float y = activate(direction, slot, x);
  switch (function_of(direction, slot)) {
    case kFunctionRelu: return x > 0.0 ? 1.0 : 0.0;
    case kFunctionSigmoid: return y * (1.0 - y);
    case kFunctionLeakyRelu: return x < 0.0 ? a : 1.0;
    case kFunctionHardSigmoid: return y > 0.0 && y < 1.0 ? a : 0.0;
    case kFunctionSoftplus: return sigmoid(x);
    case kFunctionElu: return x < 0.0 ? y + a : 1.0;
    case kFunctionAffine: return a;
    case kFunctionThresholdedRelu: return x > a ? 1.0 : 0.0;
    case kFunctionScaledTanh: y = exact_tanh(b * x); return a * b * (1.0 - y * y);
    case kFunctionSoftsign: return 1.0 / ((1.0 + abs(x)) * (1.0 + abs(x)));
  }
  return 1.0 - y * y;  // Tanh
}
