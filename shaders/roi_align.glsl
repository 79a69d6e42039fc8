// Regions rois [R,4] (u, v of two corners) of images [N,H,W,C], cut into bins with sampling points, as roi_align.comp
// and roi_align_grad.comp see them.
#include "indices.glsl"
layout(constant_id = 1) const bool kMaximum = false;
layout(constant_id = 2) const bool kHalfPixel = true;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer R { float rois[]; };
layout(set = 0, binding = 3, std430) readonly buffer B { int batch_indices[]; };
layout(push_constant) uniform P {
  uint count; uint channels; uint images; uint height; uint width; uint bins_v; uint bins_u; uint ratio; uint index_words;
  float scale; uint regions;
};

// Start, size of a bin, number of points in it.
vec3 axis_of(float begin, float end, uint bins) {
  float offset = kHalfPixel ? 0.5 : 0.0;
  float start = begin * scale - offset;
  float span = end * scale - offset - start;
  if (!kHalfPixel) span = max_keep_nan(span, 1.0);
  float bin = span / float(bins);
  float samples = ratio > 0 ? float(ratio) : (bin > 0.0 && bin < kInfinity ? ceil(min(bin, 1048576.0)) : 0.0);
  return vec3(start, bin, samples);
}
vec3 rows_of(uint roi) { return axis_of(rois[roi * 4 + 1], rois[roi * 4 + 3], bins_v); }
vec3 columns_of(uint roi) { return axis_of(rois[roi * 4], rois[roi * 4 + 2], bins_u); }
uint image_of(uint roi) { return uint(clamp(RT_INTEGER(batch_indices, index_words, roi), 0, int(images) - 1)); }

float position(vec3 axis, uint bin, uint i) { return axis.x + float(bin) * axis.y + (float(i) + 0.5) * axis.y / axis.z; }

/// The points of a bin inside [-1, extent] and one on either side, whose samples are 0, as all others there: begin and
/// end, see runtime/geometry/sample.h.
uvec2 points_of(vec3 axis, uint bin, uint extent) {
  bool descends = axis.y < 0.0;
  float high = float(extent);
  uint begin = 0, end = 0, count = uint(axis.z);
  for (uint last = count; begin < last;) {
    uint middle = (begin + last) / 2;
    float at = position(axis, bin, middle);
    if (descends ? at <= high : at >= -1.0) last = middle;
    else begin = middle + 1;
  }
  for (uint last = count; end < last;) {
    uint middle = (end + last) / 2;
    float at = position(axis, bin, middle);
    if (descends ? !(at >= -1.0) : !(at <= high)) last = middle;
    else end = middle + 1;
  }
  return uvec2(max(begin, 1) - 1, min(max(begin, end) + 1, count));
}

/// The two pixels around a point along an axis, and the weight of the second.
struct Taps {
  bool inside;
  uint low, high;
  float part;
};
Taps taps_at(float at, uint extent) {
  float inner = clamp(at, 0.0, float(extent - 1));
  uint low = min(uint(inner), extent - 1);  // of NaN, anything
  return Taps(at >= -1.0 && at <= float(extent), low, min(low + 1, extent - 1), inner - float(low));
}
