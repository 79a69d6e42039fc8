#version 450
#extension GL_GOOGLE_include_directive : require
// y = condition ? a : b with broadcasting; T is an unsigned integer of the element's size, V one of
// at least 32 bits.
// variants: where_{1 T=uint8_t V=uint|2 T=uint16_t V=uint|4 T=uint V=uint|8 T=uvec2 V=uvec2}
#include "common.glsl"
#include "axes.glsl"
layout(constant_id = 1) const uint kRank = 1;
layout(set = 0, binding = 0, std430) readonly buffer C { uint8_t c[]; };
layout(set = 0, binding = 1, std430) readonly buffer A { T a[]; };
layout(set = 0, binding = 2, std430) readonly buffer B { T b[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint count; uint extent[6]; uint stride_c[6]; uint stride_a[6]; uint stride_b[6]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint rest = i, at_c = 0, at_a = 0, at_b = 0;
  RT_FOR_AXES_REVERSED(axis) {
    uint here = RT_INDEX_OF(axis, rest);
    rest /= extent[axis];
    at_c += here * stride_c[axis];
    at_a += here * stride_a[axis];
    at_b += here * stride_b[axis];
  }
  y[i] = T(uint(c[at_c]) != 0 ? V(a[at_a]) : V(b[at_b]));
}
