// Loads of vec4 from the two factors of a product: from storage buffers (bindings 0 and 1), or from texel buffers
// (10 and 11), which software devices gather in one instruction where a storage buffer costs a loop over the lanes.
// WORDS: as uvec4 of the same bits.
// SUBGROUP: what all lanes of a subgroup need is fetched once, each lane a part of it, and shuffled from there; every
// lane must then stay active.
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#endif
#ifdef WORDS
#define FOUR uvec4
#define FROM_TEXEL floatBitsToUint
#else
#define FOUR vec4
#define FROM_TEXEL
#endif
#ifdef TEXEL
layout(set = 0, binding = 10) uniform samplerBuffer texel_a;
layout(set = 0, binding = 11) uniform samplerBuffer texel_b;
FOUR load_a(uint i) { return FROM_TEXEL(texelFetch(texel_a, int(i))); }
FOUR load_b(uint i) { return FROM_TEXEL(texelFetch(texel_b, int(i))); }
#else
layout(set = 0, binding = 0, std430) readonly buffer A4 { FOUR a4[]; };
layout(set = 0, binding = 1, std430) readonly buffer B4 { FOUR b4[]; };
FOUR load_a(uint i) { return a4[i]; }
FOUR load_b(uint i) { return b4[i]; }
#endif
