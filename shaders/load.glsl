// vec4 loads of the operands A and B of a GEMM: from storage buffers (bindings 0 and 1), or from texel buffers (10 and
// 11), which software devices gather in one instruction where a storage buffer costs a loop over the lanes.
// WORDS: as uvec4 of the same bits. SIXTEEN_BITS: elements may be f16 or bf16 in memory (kElement).
// SUBGROUP: what all lanes of a subgroup need is fetched once, each lane a part of it, and shuffled from there; every
// lane must then stay active.
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#endif
#ifdef WORDS
#define VEC4 uvec4
#define FROM_TEXEL floatBitsToUint
#else
#define VEC4 vec4
#define FROM_TEXEL
#endif
#ifdef SIXTEEN_BITS
#include "sixteen_bits.glsl"
layout(constant_id = 8) const uint kElement = 0;  // 0: f32, 1: f16, 2: bf16
#endif
#ifdef TEXEL
layout(set = 0, binding = 10) uniform samplerBuffer texel_a;
layout(set = 0, binding = 11) uniform samplerBuffer texel_b;
#ifdef SIXTEEN_BITS
// Two floats of a texel hold the bits of four elements.
vec4 of_texel(vec4 texel) {
  if (kElement == 0) return texel;
  return widened(floatBitsToUint(texel.xy), kElement);
}
#else
#define of_texel FROM_TEXEL
#endif
VEC4 load_a(uint i) { return of_texel(texelFetch(texel_a, int(i))); }
VEC4 load_b(uint i) { return of_texel(texelFetch(texel_b, int(i))); }
#else
layout(set = 0, binding = 0, std430) readonly buffer A4 { VEC4 a4[]; };
layout(set = 0, binding = 1, std430) readonly buffer B4 { VEC4 b4[]; };
#ifdef SIXTEEN_BITS
layout(set = 0, binding = 0, std430) readonly buffer A2 { uvec2 a2[]; };
layout(set = 0, binding = 1, std430) readonly buffer B2 { uvec2 b2[]; };
vec4 load_a(uint i) {
  if (kElement == 0) return a4[i];
  return widened(a2[i], kElement);
}
vec4 load_b(uint i) {
  if (kElement == 0) return b4[i];
  return widened(b2[i], kElement);
}
#else
VEC4 load_a(uint i) { return a4[i]; }
VEC4 load_b(uint i) { return b4[i]; }
#endif
#endif
