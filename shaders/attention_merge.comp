#version 450
#extension GL_GOOGLE_include_directive : require
// Merges the splits of attention.comp, [rows, splits, maximum, sum, sum * y], into y [rows,e]:
//   y = sum over the splits of exp(maximum - overall maximum) (sum * y) / the same sum of the splits' sums.
#include "common.glsl"
#include "functions.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uint count; uint e; uint splits; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint row = i / e, column = i % e;
  uint stride = e + 2, first = row * splits * stride;
  float most = -kInfinity;
  for (uint s = 0; s < splits; ++s) most = max_keep_nan(most, x[first + s * stride]);
  if (most == -kInfinity) most = 0.0;
  float sum = 0.0, total = 0.0;
  for (uint s = 0; s < splits; ++s) {
    uint at = first + s * stride;
    float factor = exact_exp(x[at] - most);
    total += factor * x[at + 1];
    sum += factor * x[at + 2 + column];
  }
  y[i] = total == 0.0 ? 0.0 : sum / total;
}
