#version 450
#extension GL_GOOGLE_include_directive : require
// Philox4x32-10 (Salmon et al. 2011), one block of four f32 per invocation: uniform values of 24 bits, or normal ones
// by Box and Muller. Counters as in runtime/core/philox.h; tensors are padded to whole vec4s.
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const bool kNormal = false;
layout(constant_id = 2) const bool kCounter = false;
layout(set = 0, binding = 0, std430) writeonly buffer Y { vec4 y[]; };
layout(set = 0, binding = 1, std430) readonly buffer Counter { uvec2 counter; };
// y = first + second * value: low and range, or mean and scale.
layout(push_constant) uniform P { uint count; uint seed_low, seed_high; float first, second; };

uvec4 philox(uvec4 x, uvec2 key) {
  for (int i = 0; i < 10; ++i) {
    uint high_a, low_a, high_b, low_b;
    umulExtended(0xD2511F53u, x.x, high_a, low_a);
    umulExtended(0xCD9E8D57u, x.z, high_b, low_b);
    x = uvec4(high_b ^ x.y ^ key.x, low_b, high_a ^ x.w ^ key.y, low_a);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return x;
}

// sin and cos of 2 pi v, v in [0, 1): exact reduction to an eighth of the circle, then series.
vec2 circle(float v) {
  float eighths = v * 8.0;
  uint octant = uint(eighths);
  float t = (eighths - float(octant)) * 0.785398163;
  if ((octant & 1u) != 0) t = 0.785398163 - t;
  float s = t * t;
  float sine = t + t * s * (-1.6666666e-1 + s * (8.3333310e-3 + s * (-1.9840874e-4 + s * 2.7525562e-6)));
  float cosine = 1.0 + s * (-0.5 + s * (4.1666666e-2 + s * (-1.3888887e-3 + s * (2.4801587e-5 + s * -2.7557314e-7))));
  // In octants 1, 2, 5, 6 sine and cosine are swapped.
  bool exchanged = ((octant + 1u) & 2u) != 0;
  vec2 r = exchanged ? vec2(cosine, sine) : vec2(sine, cosine);
  if (octant >= 4u) r.x = -r.x;
  if (octant >= 2u && octant < 6u) r.y = -r.y;
  return r;
}

vec2 normals(float u, float v) {
  float radius = sqrt(-2.0 * exact_log(1.0 - u));
  return radius * circle(v).yx;
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uvec2 high = kCounter ? counter : uvec2(0);
  uvec4 bits = philox(uvec4(i, 0, high), uvec2(seed_low, seed_high));
  vec4 u = vec4(bits >> 8) * (1.0 / 16777216.0);
  if (kNormal) u = vec4(normals(u.x, u.y), normals(u.z, u.w));
  precise vec4 scaled = second * u;
  precise vec4 r = first + scaled;
  y[i] = r;
}
