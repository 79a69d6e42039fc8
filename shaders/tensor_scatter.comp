#version 450
#extension GL_GOOGLE_include_directive : require
// Writes update [batch,inner,written,row] into y [batch,inner,positions,row], from a start position of each batch on.
// Start positions are i32, or i64 of which the low word is read (index_words); T has the element's size.
// variants: tensor_scatter_{1 T=uint8_t|2 T=uint16_t|4 T=uint|8 T=uvec2}
#include "common.glsl"
layout(constant_id = 1) const bool kIndexed = false;
layout(constant_id = 2) const bool kCircular = false;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer I { int indices[]; };
layout(push_constant) uniform P { uint count; uint inner; int positions; uint written; uint row; uint index_words; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint column = i % row;
  uint rest = i / row;
  int step = int(rest % written);
  uint outer = rest / written;
  int at = (kIndexed ? indices[outer / inner * index_words] : 0);
  if (kCircular) {
    at = at % positions;
    at = ((at < 0 ? at + positions : at) + step) % positions;
  } else {
    at += step;
  }
  if (at < 0 || at >= positions) return;
  y[(outer * uint(positions) + uint(at)) * row + column] = x[i];
}
