#version 450
#extension GL_GOOGLE_include_directive : require
// y [R,bins_v,bins_u,C]: the mean (or, kMaximum, the largest weighted neighbour) over the sampling points of each bin
// of the regions in x.
#include "common.glsl"
#include "roi_align.glsl"

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint c = i % channels;
  uint rest = i / channels;
  uint u = rest % bins_u;
  rest /= bins_u;
  uint v = rest % bins_v;
  uint roi = rest / bins_v;
  vec3 rows = rows_of(roi), columns = columns_of(roi);
  uint image = image_of(roi) * height * width;
  float total = 0.0;
  uvec2 down = points_of(rows, v, height), across = points_of(columns, u, width);
  for (uint p = down.x; p < down.y; ++p)
    for (uint q = across.x; q < across.y; ++q) {
      Taps at_v = taps_at(position(rows, v, p), height), at_u = taps_at(position(columns, u, q), width);
      float value = 0.0;
      if (at_v.inside && at_u.inside) {
        float r_v = at_v.part, r_u = at_u.part;
        vec4 parts = vec4((1.0 - r_v) * (1.0 - r_u) * x[(image + at_v.low * width + at_u.low) * channels + c],
                          (1.0 - r_v) * r_u * x[(image + at_v.low * width + at_u.high) * channels + c],
                          r_v * (1.0 - r_u) * x[(image + at_v.high * width + at_u.low) * channels + c],
                          r_v * r_u * x[(image + at_v.high * width + at_u.high) * channels + c]);
        value = kMaximum ? max_keep_nan(max_keep_nan(parts.x, parts.y), max_keep_nan(parts.z, parts.w))
                         : parts.x + parts.y + parts.z + parts.w;
      }
      total = !kMaximum ? total + value : (p == down.x && q == across.x ? value : max_keep_nan(total, value));
    }
  y[i] = kMaximum ? total : total / max(rows.z * columns.z, 1.0);
}
