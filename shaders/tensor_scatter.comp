#version 450
#extension GL_GOOGLE_include_directive : require
// Writes update [batch,inner,written,row] into y [batch,inner,positions,row], from a start position of each batch on.
// T has the element's size.
// variants: tensor_scatter_{1 T=uint8_t|2 T=uint16_t|4 T=uint|8 T=uvec2}
#include "common.glsl"
#include "indices.glsl"
layout(constant_id = 1) const bool kIndexed = false;
layout(constant_id = 2) const bool kCircular = false;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer I { int indices[]; };
layout(push_constant) uniform P { uint count; uint inner; int positions; uint written; uint row; uint index_words; };

// Start position i modulo the positions, never negative. GLSL's % is undefined for negative operands.
uint wrapped(uint i) {
  uint low = uint(indices[i * index_words]), size = uint(positions);
  int high = index_words == 1 ? int(low) >> 31 : indices[i * index_words + 1];
  bool negative = high < 0;
  // The magnitude, minus one if negative: ~x = -x - 1.
  uvec2 digits = negative ? ~uvec2(low, high) : uvec2(low, high);
  uint rest = digits.y == 0 ? digits.x % size : digits.y % size;
  for (int bit = 31; bit >= 0 && digits.y != 0; --bit) {  // Horner's rule by bits: nothing exceeds 2 size < 2^32
    rest = 2 * rest + (digits.x >> bit & 1u);
    if (rest >= size) rest -= size;
  }
  return negative ? size - 1 - rest : rest;
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint column = i % row;
  uint rest = i / row;
  uint step = rest % written;
  uint outer = rest / written;
  uint at = step, size = uint(positions);
  if (kIndexed && kCircular) {
    at += wrapped(outer / inner);
    if (at >= size) at -= size;
  } else if (kIndexed) {
    at += uint(clamp(RT_INTEGER(indices, index_words, outer / inner), -int(written), positions));  // modulo 2^32
  }
  if (at < size) y[(outer * size + at) * row + column] = x[i];
}
