// Four f16 or bf16 in a uvec2, widened and rounded to nearest even; element is 1 for f16, 2 for bf16.
vec4 widened(uvec2 words, uint element) {
  if (element == 1) return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
  return uintBitsToFloat(uvec4(words.x << 16, words.x & 0xffff0000u, words.y << 16, words.y & 0xffff0000u));
}

// packHalf2x16 may round in any direction.
uint f16_bits(float x) {
  uint bits = floatBitsToUint(x), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  // Below the least normal number: adding 1/2 leaves the result in the low bits.
  if (size < 0x38800000u) return sign | (floatBitsToUint(uintBitsToFloat(size) + 0.5) - 0x3f000000u);
  return sign | ((size + 0xfffu + ((size >> 13) & 1u) - 0x38000000u) >> 13);
}

uint bf16_bits(float x) {
  uint bits = floatBitsToUint(x);
  if (is_nan(x)) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

uvec2 narrowed(vec4 four, uint element) {
  uvec4 bits;
  [[unroll]] for (uint t = 0; t < 4; ++t) bits[t] = element == 1 ? f16_bits(four[t]) : bf16_bits(four[t]);
  return uvec2(bits.x | bits.y << 16, bits.z | bits.w << 16);
}
