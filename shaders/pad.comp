#version 450
#extension GL_GOOGLE_include_directive : require
// y[i] = x[i - before] where that exists; elsewhere a constant (kMode 0), the reflection (1), the edge (2) or the
// wrapped value (3). x may have any strides. T is an unsigned type of the element's size; the constant is given as
// words, or read from binding 2 (kFromBuffer).
// variants: pad_{1 T=uint8_t|2 T=uint16_t|4 T=uint|8 T=uvec2}
#include "common.glsl"
#include "axes.glsl"
layout(constant_id = 1) const uint kRank = 1;
layout(constant_id = 2) const uint kMode = 0;
layout(constant_id = 3) const bool kFromBuffer = false;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer F { T fill[]; };
layout(push_constant) uniform P {
  uint count;
  uint word;
  uint from;                    // offset of the source in x, in elements
  uint to;                      // first element of y to write
  uint extent[6];
  int before[6];
  int limit[6];
  uint stride[6];
};

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint rest = i, at = from;
  bool inside = true;
  RT_FOR_AXES_REVERSED(axis) {
    int here = int(RT_INDEX_OF(axis, rest)) - before[axis];
    rest /= extent[axis];
    if (kMode == 0) {
      inside = inside && here >= 0 && here < limit[axis];
    } else if (kMode == 1) {
      int period = max(2 * (limit[axis] - 1), 1);
      here = here < 0 ? -here : here;
      here = here % period;
      here = here >= limit[axis] ? period - here : here;
    } else if (kMode == 2) {
      here = clamp(here, 0, limit[axis] - 1);
    } else {
      here = here < 0 ? limit[axis] - 1 - (-1 - here) % limit[axis] : here % limit[axis];  // % takes nothing negative
    }
    at += uint(here) * stride[axis];
  }
  if (inside) y[to + i] = x[at];
  else if (kFromBuffer) y[to + i] = fill[0];
  else y[to + i] = T(word);
}
