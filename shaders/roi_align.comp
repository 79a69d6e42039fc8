#version 450
#extension GL_GOOGLE_include_directive : require
// y [R,bins_v,bins_u,C]: the mean (or, kMaximum, the largest weighted neighbour) over the sampling points of each bin
// of the regions rois [R,4] (u, v of two corners) in x [N,H,W,C]. Indices are i32 or the low words of i64.
#include "common.glsl"
layout(constant_id = 1) const bool kMaximum = false;
layout(constant_id = 2) const bool kHalfPixel = true;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer R { float rois[]; };
layout(set = 0, binding = 3, std430) readonly buffer B { int batch_indices[]; };
layout(push_constant) uniform P {
  uint count; uint channels; uint images; uint height; uint width; uint bins_v; uint bins_u; uint ratio; uint index_words;
  float scale;
};

// Start, size of a bin, number of points in it.
vec3 axis_of(float begin, float end, uint bins) {
  float offset = kHalfPixel ? 0.5 : 0.0;
  float start = begin * scale - offset;
  float span = end * scale - offset - start;
  if (!kHalfPixel) span = max(span, 1.0);
  float bin = span / float(bins);
  float samples = ratio > 0 ? float(ratio) : (bin > 0.0 ? ceil(min(bin, 1048576.0)) : 0.0);
  return vec3(start, bin, samples);
}

float position(vec3 axis, uint bin, uint i) { return axis.x + float(bin) * axis.y + (float(i) + 0.5) * axis.y / axis.z; }

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  uint c = i % channels;
  uint rest = i / channels;
  uint u = rest % bins_u;
  rest /= bins_u;
  uint v = rest % bins_v;
  uint roi = rest / bins_v;
  vec3 rows = axis_of(rois[roi * 4 + 1], rois[roi * 4 + 3], bins_v);
  vec3 columns = axis_of(rois[roi * 4], rois[roi * 4 + 2], bins_u);
  uint image = uint(clamp(batch_indices[roi * index_words], 0, int(images) - 1)) * height * width;
  float total = 0.0;
  for (uint p = 0; p < uint(rows.z); ++p)
    for (uint q = 0; q < uint(columns.z); ++q) {
      float at_v = position(rows, v, p);
      float at_u = position(columns, u, q);
      float value = 0.0;
      if (at_v >= -1.0 && at_v <= float(height) && at_u >= -1.0 && at_u <= float(width)) {
        at_v = clamp(at_v, 0.0, float(height - 1));
        at_u = clamp(at_u, 0.0, float(width - 1));
        uint low_v = uint(at_v);
        uint low_u = uint(at_u);
        uint high_v = min(low_v + 1, height - 1);
        uint high_u = min(low_u + 1, width - 1);
        float r_v = at_v - float(low_v);
        float r_u = at_u - float(low_u);
        vec4 parts = vec4((1.0 - r_v) * (1.0 - r_u) * x[(image + low_v * width + low_u) * channels + c],
                          (1.0 - r_v) * r_u * x[(image + low_v * width + high_u) * channels + c],
                          r_v * (1.0 - r_u) * x[(image + high_v * width + low_u) * channels + c],
                          r_v * r_u * x[(image + high_v * width + high_u) * channels + c]);
        value = kMaximum ? max(max(parts.x, parts.y), max(parts.z, parts.w)) : parts.x + parts.y + parts.z + parts.w;
      }
      total = !kMaximum ? total + value : (p + q == 0 ? value : max(total, value));
    }
  y[i] = kMaximum ? total : total / max(rows.z * columns.z, 1.0);
}
