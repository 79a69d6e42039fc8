// Shared by all shaders: a one-dimensional grid, folded over y by the host, and IEEE-like helpers.
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x_id = 0) in;

uint group_index() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }
uint invocation_index() { return group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }

// Tests the bits: drivers may assume that isnan() is never true, and GLSL's min and max drop NaN.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
float max_keep_nan(float a, float b) { return is_nan(a) ? a : (is_nan(b) ? b : (a < b ? b : a)); }
vec4 max_keep_nan(vec4 a, vec4 b) {
  return vec4(max_keep_nan(a.x, b.x), max_keep_nan(a.y, b.y), max_keep_nan(a.z, b.z), max_keep_nan(a.w, b.w));
}
float min_keep_nan(float a, float b) { return is_nan(a) ? a : (is_nan(b) ? b : (b < a ? b : a)); }
#define kInfinity uintBitsToFloat(0x7f800000u)

// roundEven, also on drivers that round ties away from zero (Lavapipe 22.3 with vectors wider than the CPU's) or large
// values through an integer; ties are redone at half scale, where they are none.
float round_half_even(float x) {
  if (!(abs(x) < 8388608.0)) return x;
  float nearest = roundEven(x);
  return abs(nearest - x) == 0.5 ? 2.0 * roundEven(0.5 * x) : nearest;
}
