#version 450
#extension GL_GOOGLE_include_directive : require
// bool y = a (relation) b with broadcasting. S is the operands' type; T, of at least 32 bits, compares.
// variants: compare_{f32 T=float FLOAT|i32 T=int SIGNED|i64 T=int64_t SIGNED|u8 T=uint S=uint8_t}
#include "common.glsl"
#include "axes.glsl"
#include "relation.glsl"
#ifndef S
#define S T
#endif
layout(constant_id = 1) const uint kRelation = 0;
layout(constant_id = 2) const uint kRank = 1;
layout(set = 0, binding = 0, std430) readonly buffer A { S a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { S b[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { uint8_t y[]; };
layout(push_constant) uniform P { uint count; uint extent[6]; uint stride_a[6]; uint stride_b[6]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint rest = i, at_a = 0, at_b = 0;
  RT_FOR_AXES_REVERSED(axis) {
    uint here = RT_INDEX_OF(axis, rest);
    rest /= extent[axis];
    at_a += here * stride_a[axis];
    at_b += here * stride_b[axis];
  }
  T u = T(a[at_a]);
  T v = T(b[at_b]);
  y[i] = uint8_t(is_related(kRelation, u, v) ? 1u : 0u);
}
