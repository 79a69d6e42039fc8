#version 450
#extension GL_GOOGLE_include_directive : require
// Samples x [N,S..,C] at the coordinates of grid [N,O..,k], -1 to 1 over each of up to three axes: y [N,O..,C].
// kMode 0 nearest, 1 linear, 2 cubic (Keys, a = -3/4); kPadding 0 zeros, 1 border, 2 reflection.
#include "common.glsl"
layout(constant_id = 1) const uint kAxes = 2;
layout(constant_id = 2) const uint kMode = 1;
layout(constant_id = 3) const uint kPadding = 0;
layout(constant_id = 4) const bool kAlignCorners = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer G { float grid[]; };
layout(push_constant) uniform P { uint count; uint channels; uint points; uint extent[3]; };

const int kTaps = kMode == 0 ? 1 : (kMode == 1 ? 2 : 4);

float reflected(float v, float low, float high) {
  float range = high - low;
  if (range <= 0.0) return low;
  float reach = abs(v - low);
  reach -= 2.0 * range * floor(reach / (2.0 * range));
  return low + (reach > range ? 2.0 * range - reach : reach);
}

float weight_at(float d) {
  d = abs(d);
  if (kMode == 1) return max(1.0 - d, 0.0);
  if (d <= 1.0) return (1.25 * d - 2.25) * d * d + 1.0;
  return d < 2.0 ? ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0 : 0.0;
}

// The taps of one axis; index -1 counts as zero.
void taps_of(float coordinate, float size, out int index[4], out float weight[4]) {
  float last = size - 1.0;
  float low = kAlignCorners ? 0.0 : -0.5;
  float high = kAlignCorners ? last : last + 0.5;
  float at = kAlignCorners ? (coordinate + 1.0) / 2.0 * last : ((coordinate + 1.0) * size - 1.0) / 2.0;
  if (!(abs(at) < 1073741824.0) || is_nan(at)) at = kPadding == 1 && at > 0.0 ? last : -9.0;
  if (kMode == 0) at = round_half_even(at);
  if (at < low || at > high) {
    if (kPadding == 1 && kMode != 2) at = clamp(at, 0.0, last);
    if (kPadding == 2) at = reflected(at, low, high);
  }
  float first = kMode == 0 ? at : floor(at) - (kMode == 2 ? 1.0 : 0.0);
  for (int t = 0; t < kTaps; ++t) {
    float position = first + float(t);
    weight[t] = kMode == 0 ? 1.0 : weight_at(at - position);
    if (position < 0.0 || position > last) {
      if (kPadding == 0) {
        index[t] = -1;
        continue;
      }
      position = clamp(kPadding == 2 ? reflected(position, low, high) : position, 0.0, last);
    }
    index[t] = clamp(int(position), 0, int(last));  // whatever a device makes of NaN
  }
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint c = i % channels;
  uint point = i / channels;
  int index[3][4];
  float weight[3][4];
  for (uint d = 0; d < 3; ++d) {
    if (d < kAxes) {
      taps_of(grid[point * kAxes + kAxes - 1 - d], float(extent[d]), index[d], weight[d]);
    } else {
      index[d] = int[4](0, 0, 0, 0);
      weight[d] = float[4](1.0, 0.0, 0.0, 0.0);
    }
  }
  uint base = point / points * extent[0] * extent[1] * extent[2];
  float sum = 0.0;
  for (int p = 0; p < kTaps; ++p)
    for (int q = 0; q < (kAxes > 1 ? kTaps : 1); ++q)
      for (int r = 0; r < (kAxes > 2 ? kTaps : 1); ++r) {
        if (index[0][p] < 0 || index[1][q] < 0 || index[2][r] < 0) continue;
        float w = weight[0][p] * weight[1][q] * weight[2][r];
        if (w == 0.0) continue;
        uint at = (uint(index[0][p]) * extent[1] + uint(index[1][q])) * extent[2] + uint(index[2][r]);
        sum += w * x[(base + at) * channels + c];
      }
  y[i] = sum;
}
