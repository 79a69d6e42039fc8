#version 450
#extension GL_GOOGLE_include_directive : require
// y [N,H,W,C], the gradient of RoiAlign with respect to x: an invocation sums what the bins of all regions, with
// gradients [R,bins_v,bins_u,C], contribute to one element. A mean is separable: a bin contributes the product of its
// points' weights along the two axes. With a maximum, the first of the largest weighted neighbours takes all.
#include "common.glsl"
#include "roi_align.glsl"
layout(set = 0, binding = 4, std430) readonly buffer G { float grad_output[]; };

/// Total weight of a bin's points at one pixel of an axis, and whether that pixel is a neighbour of any.
struct Contribution {
  float weight;
  bool touched;
};
Contribution contribution_of(vec3 axis, uint bin, uint extent, uint here) {
  Contribution contribution = Contribution(0.0, false);
  uvec2 points = points_of(axis, bin, extent);
  for (uint p = points.x; p < points.y; ++p) {
    Taps taps = taps_at(position(axis, bin, p), extent);
    if (!taps.inside) continue;
    if (taps.low == here) contribution.weight += 1.0 - taps.part;
    if (taps.high == here) contribution.weight += taps.part;
    contribution.touched = contribution.touched || taps.low == here || taps.high == here;
  }
  return contribution;
}

/// The weight with which element (h, w) is the maximum of a bin; 0 when another one is.
float weight_of_maximum(vec3 rows, vec3 columns, uint v, uint u, uint image, uint c, uint h, uint w) {
  float best = 0.0, best_weight = 0.0;
  uvec2 best_at = uvec2(0);
  bool first = true;
  uvec2 down = points_of(rows, v, height), across = points_of(columns, u, width);
  for (uint p = down.x; p < down.y; ++p)
    for (uint q = across.x; q < across.y; ++q) {
      Taps a = taps_at(position(rows, v, p), height), b = taps_at(position(columns, u, q), width);
      bool inside = a.inside && b.inside;
      for (uint k = 0; k < (inside ? 4 : 1); ++k) {
        uvec2 at = uvec2(k / 2 == 0 ? a.low : a.high, k % 2 == 0 ? b.low : b.high);
        float weight = inside ? (k / 2 == 0 ? 1.0 - a.part : a.part) * (k % 2 == 0 ? 1.0 - b.part : b.part) : 0.0;
        float value = inside ? weight * x[(image + at.x * width + at.y) * channels + c] : 0.0;
        if (!first && !(value > best)) continue;
        first = false;
        best = value;
        best_weight = weight;
        best_at = at;
      }
    }
  return best_at == uvec2(h, w) ? best_weight : 0.0;
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint c = i % channels;
  uint rest = i / channels;
  uint w = rest % width;
  rest /= width;
  uint h = rest % height;
  uint image = rest / height;
  float total = 0.0;
  for (uint roi = 0; roi < regions; ++roi) {
    if (image_of(roi) != image) continue;
    vec3 rows = rows_of(roi), columns = columns_of(roi);
    float points = max(rows.z * columns.z, 1.0);
    for (uint v = 0; v < bins_v; ++v) {
      Contribution down = contribution_of(rows, v, height, h);
      if (!down.touched) continue;
      for (uint u = 0; u < bins_u; ++u) {
        Contribution across = contribution_of(columns, u, width, w);
        if (!across.touched) continue;
        float weight = kMaximum ? weight_of_maximum(rows, columns, v, u, image * height * width, c, h, w)
                                : down.weight * across.weight / points;
        total += weight * grad_output[((roi * bins_v + v) * bins_u + u) * channels + c];
      }
    }
  }
  y[i] = total;
}
