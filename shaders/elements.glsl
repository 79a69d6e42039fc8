// Floating-point storage buffers, read and written as scalars or in fours, as f32 in registers.
// HALVES: f16 or bf16 in memory, by the specialization constant ELEMENT_ID.
#ifdef HALVES
#include "sixteen_bits.glsl"
layout(constant_id = ELEMENT_ID) const uint kElement = 1;  // 1: f16, 2: bf16
#define RT_BUFFER(number, access, name)                                                        \
  layout(set = 0, binding = number, std430) access buffer name##One { uint16_t name##_one[]; };  \
  layout(set = 0, binding = number, std430) access buffer name##Vec4 { uvec2 name##_vec4[]; };
#define RT_INPUT(number, name)                                                                 \
  RT_BUFFER(number, readonly, name)                                                            \
  float name##_at(uint i) { return widened(uvec2(uint(name##_one[i]), 0), kElement).x; }       \
  vec4 name##_at4(uint i) { return widened(name##_vec4[i], kElement); }
#define RT_OUTPUT(number, name)                                                                \
  RT_BUFFER(number, writeonly, name)                                                           \
  void set_##name(uint i, float v) { name##_one[i] = uint16_t(kElement == 1 ? f16_bits(v) : bf16_bits(v)); } \
  void set_##name##4(uint i, vec4 v) { name##_vec4[i] = narrowed(v, kElement); }
#else
#define RT_BUFFER(number, access, name)                                                        \
  layout(set = 0, binding = number, std430) access buffer name##One { float name##_one[]; };     \
  layout(set = 0, binding = number, std430) access buffer name##Vec4 { vec4 name##_vec4[]; };
#define RT_INPUT(number, name)                                                                 \
  RT_BUFFER(number, readonly, name)                                                            \
  float name##_at(uint i) { return name##_one[i]; }                                            \
  vec4 name##_at4(uint i) { return name##_vec4[i]; }
#define RT_OUTPUT(number, name)                                                                \
  RT_BUFFER(number, writeonly, name)                                                           \
  void set_##name(uint i, float v) { name##_one[i] = v; }                                      \
  void set_##name##4(uint i, vec4 v) { name##_vec4[i] = v; }
#endif
