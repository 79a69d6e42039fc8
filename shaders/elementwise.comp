#version 450
#extension GL_GOOGLE_include_directive : require
// A chain of element-wise functions in f32 with broadcasting; memory types as in elements.glsl, groups as in binary.comp.
// The steps are specialization constants, so that the driver compiles nothing but them. Inputs are x0 to x5, of which
// the first kInputs exist; bit k of kSplat: input k repeats along the last axis; of kBools: it holds booleans, in bytes.
// Drivers compile all functions for each of STEPS, before they drop those that a chain does not have: some 30 ms for a step
// on lavapipe. SHORT has the functions of a few operations only, and groups of four; the others take single elements.
// variants: elementwise_{short SHORT STEPS=8|3 STEPS=3|8 STEPS=8}
// variants: elementwise_{short SHORT STEPS=8|3 STEPS=3|8 STEPS=8}_halves HALVES
#include "common.glsl"
#include "functions.glsl"
#include "binary_functions.glsl"
#define T float
#define FLOAT
#include "relation.glsl"
#ifdef SHORT
#define APPLY_FUNCTION apply_short_function
#define APPLY_BINARY apply_short_binary
#define WIDTH 4
#else
#define APPLY_FUNCTION apply_function
#define APPLY_BINARY apply_binary
#define WIDTH 1
#endif
#define ELEMENT_ID 31
#include "elements.glsl"
#include "bytes.glsl"
layout(constant_id = 1) const uint kRank = 1;
layout(constant_id = 2) const uint kWidth = 4;
layout(constant_id = 3) const uint kInputs = 1;
layout(constant_id = 4) const uint kSplat = 0;
layout(constant_id = 5) const uint kBools = 0;
layout(constant_id = 6) const uint kSteps = 1;
#include "axes.glsl"

// Of each step: form (4 bits), function (8), three operands (4 each); alpha and beta as bits.
#define RT_STEP_CONSTANTS(step, id)                       \
  layout(constant_id = id) const uint kCode##step = 0;    \
  layout(constant_id = id + 1) const uint kAlpha##step = 0; \
  layout(constant_id = id + 2) const uint kBeta##step = 0;
RT_STEP_CONSTANTS(0, 7)
RT_STEP_CONSTANTS(1, 10)
RT_STEP_CONSTANTS(2, 13)
RT_STEP_CONSTANTS(3, 16)
RT_STEP_CONSTANTS(4, 19)
RT_STEP_CONSTANTS(5, 22)
RT_STEP_CONSTANTS(6, 25)
RT_STEP_CONSTANTS(7, 28)
const uint kUnary = 0, kBinary = 1, kCompare = 2;  // ElementwiseStep::Form; else Select

#define RT_CHAIN_INPUT(number, name)                                                               \
  RT_INPUT(number, name)                                                                           \
  layout(set = 0, binding = number, std430) readonly buffer name##Words { uint name##_words[]; };  \
  vec4 load_##name(uint at) {                                                                      \
    bool one = kWidth == 1 || (kSplat >> number & 1u) != 0u;                                       \
    if ((kBools >> number & 1u) != 0u) {                                                           \
      if (one) return vec4(byte_of(name##_words[at / 4], at) != 0u ? 1.0 : 0.0);                   \
      uint word = name##_words[at];                                                                \
      return mix(vec4(0.0), vec4(1.0), notEqual(word & uvec4(0xffu, 0xff00u, 0xff0000u, 0xff000000u), uvec4(0u))); \
    }                                                                                              \
    return one ? vec4(name##_at(at)) : name##_at4(at);                                             \
  }
RT_CHAIN_INPUT(0, x0)
RT_CHAIN_INPUT(1, x1)
RT_CHAIN_INPUT(2, x2)
RT_CHAIN_INPUT(3, x3)
RT_CHAIN_INPUT(4, x4)
RT_CHAIN_INPUT(5, x5)
RT_OUTPUT(6, y)
layout(push_constant) uniform P {
  uint count;
  uint extent[3];
  uint stride0[3];
  uint stride1[3];
  uint stride2[3];
  uint stride3[3];
  uint stride4[3];
  uint stride5[3];
};

float rounded(float x) {
#ifdef HALVES
  return widened(uvec2(kElement == 1 ? f16_bits(x) : bf16_bits(x), 0u), kElement).x;
#else
  return x;
#endif
}

float apply(uint code, float a, float b, float c, uint alpha, uint beta) {
  uint form = code & 15u, function = code >> 4 & 255u;
  precise float y;
  if (form == kUnary)
    y = APPLY_FUNCTION(function, a, uintBitsToFloat(alpha), uintBitsToFloat(beta));
  else if (form == kBinary)
    y = APPLY_BINARY(function, a, b);
  else if (form == kCompare)
    y = is_related(function, a, b) ? 1.0 : 0.0;
  else
    y = a != 0.0 ? b : c;
  return rounded(y);
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint rest = i, at[6];
  [[unroll]] for (int k = 0; k < 6; ++k) at[k] = 0;
  RT_FOR_AXES_REVERSED(axis) {
    uint here = RT_INDEX_OF(axis, rest);
    rest /= extent[axis];
    at[0] += here * stride0[axis];
    at[1] += here * stride1[axis];
    at[2] += here * stride2[axis];
    at[3] += here * stride3[axis];
    at[4] += here * stride4[axis];
    at[5] += here * stride5[axis];
  }
  vec4 x[6];
  x[0] = load_x0(at[0]);
  if (kInputs > 1) x[1] = load_x1(at[1]);
  if (kInputs > 2) x[2] = load_x2(at[2]);
  if (kInputs > 3) x[3] = load_x3(at[3]);
  if (kInputs > 4) x[4] = load_x4(at[4]);
  if (kInputs > 5) x[5] = load_x5(at[5]);
  vec4 r = vec4(0.0);
  [[unroll]] for (int t = 0; t < WIDTH; ++t) {
    float v[14];
    [[unroll]] for (int k = 0; k < 6; ++k) v[k] = x[k][t];
#define RT_STEP(step)                                                                                                \
  if (kSteps > step)                                                                                                 \
    r[t] = v[6 + step] = apply(kCode##step, v[kCode##step >> 12 & 15u], v[kCode##step >> 16 & 15u],                  \
                               v[kCode##step >> 20 & 15u], kAlpha##step, kBeta##step);
    RT_STEP(0)
    RT_STEP(1)
    RT_STEP(2)
#if STEPS > 3
    RT_STEP(3)
    RT_STEP(4)
    RT_STEP(5)
    RT_STEP(6)
    RT_STEP(7)
#endif
  }
  if (kWidth == 4)
    set_y4(i, r);
  else
    set_y(i, r.x);
}
