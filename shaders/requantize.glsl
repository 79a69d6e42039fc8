// What becomes of an i32 sum: itself, a real number r = f(sum scale + bias), or its code saturate(round(r / y_scale) +
// zero), half to even. Codes are stored as the unsigned integers of their bits.
layout(constant_id = 1) const uint kResult = 0;    // 0: sums, 1: real numbers, 2: codes
layout(constant_id = 2) const int kLow = 0;        // the least code
layout(constant_id = 3) const uint kFunction = 0;  // as in functions.glsl
layout(constant_id = 4) const bool kHasBias = false;
layout(constant_id = 5) const bool kHasZero = false;
layout(set = 0, binding = 2, std430) writeonly buffer Sums { int sums[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Reals { float reals[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Codes { uint8_t codes[]; };
layout(set = 0, binding = 3, std430) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer YScale { float y_scale[]; };
layout(set = 0, binding = 6, std430) readonly buffer YZero { uint8_t y_zero[]; };

struct Requantization {
  float scale, bias;  // of a channel
  float y_scale;
  int y_zero;
};

// What all channels share, loaded once.
Requantization requantization() {
  Requantization r = Requantization(1.0, 0.0, 1.0, 0);
  if (kResult == 2) r.y_scale = y_scale[0];
  if (kHasZero) r.y_zero = int(y_zero[0]);
  if (kLow < 0 && r.y_zero > 127) r.y_zero -= 256;
  return r;
}

// scale_step: 0 for one scale, 1 for one a channel.
void set_channel(inout Requantization r, uint channel, uint scale_step) {
  if (kResult != 0) r.scale = scale[channel * scale_step];
  if (kHasBias) r.bias = bias[channel];
}

void store_sum(uint at, int sum, Requantization r, float alpha, float beta) {
  if (kResult == 0) {
    sums[at] = sum;
    return;
  }
  float real = apply_function(kFunction, float(sum) * r.scale + r.bias, alpha, beta);
  if (kResult == 1) {
    reals[at] = real;
    return;
  }
  float q = is_nan(real) ? 0.0 : clamp(real / r.y_scale, -1024.0, 1024.0);
  codes[at] = uint8_t(uint(clamp(int(roundEven(q)) + r.y_zero, kLow, kLow + 255)));
}
