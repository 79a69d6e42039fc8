// Elementary functions of one f32. Some drivers' exp, log and tanh have few correct bits; where the reference needs more, the
// formula is our own. kFunctionElu and so on are the values of Function in runtime/core/function.h.
#include "function_numbers.glsl"
float exact_exp(float x) {
  // 2^k times a polynomial of degree 6 on [-ln2/2, ln2/2]; relative error below 2e-7.
  if (is_nan(x)) return x;
  if (x > 88.8) return kInfinity;
  if (x < -104.0) return 0.0;
  float k = floor(x * 1.44269504 + 0.5);
  float r = x - k * 0.693359375;
  r = r + k * 2.12194440e-4;
  float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  p = p * r * r + r + 1.0;
  int e = int(k);
  int half_e = e / 2;  // two factors, so that neither leaves the exponent's range
  return p * uintBitsToFloat(uint(half_e + 127) << 23) * uintBitsToFloat(uint(e - half_e + 127) << 23);
}

float exact_log(float x) {
  if (is_nan(x) || x == kInfinity) return x;
  if (x < 0.0) return uintBitsToFloat(0x7fc00000u);
  if (x == 0.0) return -kInfinity;
  float shift = 0.0;
  if (x < 1.17549435e-38) {  // subnormal
    x *= 8388608.0;
    shift = -23.0;
  }
  uint u = floatBitsToUint(x);
  int e = int(u >> 23) - 126;
  float m = uintBitsToFloat((u & 0x007fffffu) | 0x3f000000u);
  if (m < 0.707106781) {
    e -= 1;
    m = m + m - 1.0;
  } else {
    m = m - 1.0;
  }
  float z = m * m;
  float p = 7.0376836292e-2;
  p = p * m - 1.1514610310e-1;
  p = p * m + 1.1676998740e-1;
  p = p * m - 1.2420140846e-1;
  p = p * m + 1.4249322787e-1;
  p = p * m - 1.6668057665e-1;
  p = p * m + 2.0000714765e-1;
  p = p * m - 2.4999993993e-1;
  p = p * m + 3.3333331174e-1;
  float f = float(e) + shift;
  float y = p * m * z;
  y += f * -2.12194440e-4;
  y -= 0.5 * z;
  return m + y + f * 0.693359375;
}

float exact_tanh(float x) {
  float a = abs(x);
  if (is_nan(x)) return x;
  if (a > 9.1) return x < 0.0 ? -1.0 : 1.0;
  if (a < 0.625) {
    float z = x * x;
    float p = -5.70498872745e-3;
    p = p * z + 2.06390887954e-2;
    p = p * z - 5.37397155531e-2;
    p = p * z + 1.33314422036e-1;
    p = p * z - 3.33332819422e-1;
    return p * z * x + x;
  }
  float t = 1.0 - 2.0 / (exact_exp(a + a) + 1.0);
  return x < 0.0 ? -t : t;
}

float sigmoid(float x) { return 1.0 / (1.0 + exact_exp(-x)); }

// Abramowitz and Stegun's single-precision forms are not accurate enough near 0: a series there, 1 - erfc elsewhere.
float exact_erf(float x) {
  float a = abs(x);
  if (is_nan(x)) return x;
  float y;
  if (a < 1.0) {
    float z = x * x;
    float p = 7.853861353153693e-5;
    p = p * z - 8.010193625184903e-4;
    p = p * z + 5.188327685732524e-3;
    p = p * z - 2.685381193529856e-2;
    p = p * z + 1.128358514861418e-1;
    p = p * z - 3.761262582423300e-1;
    p = p * z + 1.128379165726710e+0;
    return x * p;
  }
  if (a > 4.0) {
    y = 1.0;
  } else {
    float q = 1.0 / a;
    float z = q * q;
    float p;
    if (a < 2.0) {
      p = 2.326819970068386e-2;
      p = p * z - 1.387039388740657e-1;
      p = p * z + 3.687424674597105e-1;
      p = p * z - 5.824733027278666e-1;
      p = p * z + 6.210004621745983e-1;
      p = p * z - 4.944515323274145e-1;
      p = p * z + 3.404879937665872e-1;
      p = p * z - 2.741127028184656e-1;
      p = p * z + 5.638259427386472e-1;
    } else {
      p = -1.047766399936249e+1;
      p = p * z + 1.297719955372516e+1;
      p = p * z - 7.495518717768503e+0;
      p = p * z + 2.921019019210786e+0;
      p = p * z - 1.015265279202700e+0;
      p = p * z + 4.218463358204948e-1;
      p = p * z - 2.820767439740514e-1;
      p = p * z + 5.641895067754075e-1;
    }
    y = 1.0 - q * p * exact_exp(-a * a);
  }
  return x < 0.0 ? -y : y;
}

// |x| > 1: pi/2 - atan(1/x); then, above tan(pi/8), pi/4 + atan((t - 1) / (t + 1)); a series on what is left.
float exact_atan(float x) {
  if (is_nan(x)) return x;
  float a = abs(x);
  float unit = a > 1.0 ? 1.0 / a : a;
  bool upper = unit > 0.414213562;
  float t = upper ? (unit - 1.0) / (unit + 1.0) : unit;
  float s = t * t;
  float q = -6.083456145e-02;
  q = q * s + 1.059600274e-01;
  q = q * s - 1.424384891e-01;
  q = q * s + 1.999848945e-01;
  q = q * s - 3.333331551e-01;
  float y = t + t * s * q;
  if (upper) y += 0.785398163;
  if (a > 1.0) y = 1.57079633 - y;
  return uintBitsToFloat(floatBitsToUint(y) | (floatBitsToUint(x) & 0x80000000u));
}

// a - quarter pi/2 in [-pi/4, pi/4] for finite a >= 0, with an absolute error below 1e-7; quarter is modulo 2^32 or 4.
float reduced_angle(float a, out uint quarter) {
  if (a < 8192.0) {  // pi/2 in three parts, whose products with fewer than 14 bits are exact
    float n = floor(a * 0.636619772 + 0.5);
    quarter = uint(n);
    return ((a - n * 1.5703125) - n * 0.0004837512969970703) - n * 7.549790126404332e-08;
  }
  // Payne and Hanek: a is an integer m times 2^e. Of 2/pi, only bits from 2^(2-e) down matter modulo 4 quarters.
  const uint two_by_pi[7] =
      uint[7](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u);
  uint bits = floatBitsToUint(a), m = (bits & 0x7fffffu) | 0x800000u;
  uint first = (bits >> 23) - 150u + 30u;  // of those bits, counted from the zeros in front
  uint word = first >> 5, shift = first & 31u;
  uint high = two_by_pi[word] << shift, low = two_by_pi[word + 1] << shift;
  if (shift != 0u) {
    high |= two_by_pi[word + 1] >> (32u - shift);
    low |= two_by_pi[word + 2] >> (32u - shift);
  }
  uint carry, rest;
  umulExtended(m, low, carry, rest);
  uint turn = m * high + carry;  // in units of 2^-30 quarters
  quarter = (turn + 0x20000000u) >> 30;
  return float(int(turn << 2 | rest >> 30)) * 3.657295198e-10;  // 2^-32 pi/2
}

// sin(x + quarter pi/2): drivers may be off by 2^-11 within +-pi, and by anything beyond. Absolute error below 3e-7.
float exact_sin(float x, uint quarter) {
  float a = abs(x);
  if (!(a < kInfinity)) return uintBitsToFloat(0x7fc00000u);
  uint turned;
  float r = reduced_angle(a, turned), s = r * r;
  bool odd = quarter == 0u && floatBitsToUint(x) >> 31 != 0u;  // sin(-a) = -sin(a), cos(-a) = cos(a)
  quarter += turned;
  float p = 2.718324258e-06;
  p = p * s - 1.983933642e-04;
  p = p * s + 8.333329392e-03;
  p = p * s - 1.666666664e-01;
  float q = -2.721021387e-07;
  q = q * s + 2.479951983e-05;
  q = q * s - 1.388888375e-03;
  q = q * s + 4.166666662e-02;
  float y = (quarter & 1u) != 0u ? 1.0 - 0.5 * s + s * s * q : r + r * s * p;
  bool negative = (quarter & 2u) != 0u;
  return negative != odd ? -y : y;
}

float clip(float x, float low, float high) { return is_nan(x) ? x : (x < low ? low : (x > high ? high : x)); }

// The functions that take a few operations; the others return x.
float apply_short_function(uint f, float x, float alpha, float beta) {
  switch (f) {
    case kFunctionRelu: return is_nan(x) ? x : (x > 0.0 ? x : 0.0);
    case kFunctionClip: return clip(x, alpha, beta);
    case kFunctionHardSwish: return x * clip(x * (1.0 / 6.0) + 0.5, 0.0, 1.0);
    case kFunctionLeakyRelu: return x < 0.0 ? alpha * x : x;
    case kFunctionHardSigmoid: return clip(alpha * x + beta, 0.0, 1.0);
    case kFunctionAbs: return abs(x);
    case kFunctionNeg: return -x;
    case kFunctionSqrt: return sqrt(x);
    case kFunctionReciprocal: return 1.0 / x;
    case kFunctionFloor: return floor(x);
    case kFunctionCeil: return ceil(x);
    case kFunctionRound: return round_half_even(x);
    case kFunctionSign: return is_nan(x) ? x : (x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0));
    case kFunctionNot: return x == 0.0 ? 1.0 : 0.0;
  }
  return x;
}

float apply_function(uint f, float x, float alpha, float beta) {
  switch (f) {
    case kFunctionSigmoid: return sigmoid(x);
    case kFunctionTanh: return exact_tanh(x);
    case kFunctionSilu: return x * sigmoid(x);
    case kFunctionGelu: return 0.5 * x * (1.0 + exact_erf(x * 0.70710678));
    case kFunctionGeluTanh: return 0.5 * x * (1.0 + exact_tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
    case kFunctionExp: return exact_exp(x);
    case kFunctionLog: return exact_log(x);
    case kFunctionSin: return exact_sin(x, 0u);
    case kFunctionCos: return exact_sin(x, 1u);
    case kFunctionErf: return exact_erf(x);
    case kFunctionSoftplus: return is_nan(x) ? x : (x > 0.0 ? x : 0.0) + exact_log(1.0 + exact_exp(-abs(x)));
    case kFunctionElu: return x < 0.0 ? alpha * (exact_exp(x) - 1.0) : x;
    case kFunctionAtan: return exact_atan(x);
  }
  return apply_short_function(f, x, alpha, beta);
}
