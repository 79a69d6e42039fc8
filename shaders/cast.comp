#version 450
#extension GL_GOOGLE_include_directive : require
// y = x in another type, FROM to TO. S and T store them, V and W, of at least 32 bits, compute. BF16: the upper half of an f32, rounded to nearest even.
// Floats become integers by truncation with saturation (LOW, HIGH in f32), NaN becomes 0; integers wrap.
// variants: cast_f32_{f16 TO=F16|bf16 TO=BF16|i32 TO=I32|i64 TO=I64|u8 TO=U8|i8 TO=I8|bool TO=BOOL} FROM=F32
// variants: cast_f16_{f32 TO=F32|bf16 TO=BF16|i32 TO=I32|i64 TO=I64|u8 TO=U8|i8 TO=I8|bool TO=BOOL} FROM=F16
// variants: cast_bf16_{f32 TO=F32|f16 TO=F16|i32 TO=I32|i64 TO=I64|u8 TO=U8|i8 TO=I8|bool TO=BOOL} FROM=BF16
// variants: cast_i32_{f32 TO=F32|f16 TO=F16|i64 TO=I64|u8 TO=U8|i8 TO=I8|bool TO=BOOL} FROM=I32
// variants: cast_i64_{f32 TO=F32|f16 TO=F16|i32 TO=I32|u8 TO=U8|i8 TO=I8|bool TO=BOOL} FROM=I64
// variants: cast_u8_{f32 TO=F32|f16 TO=F16|bf16 TO=BF16|i32 TO=I32|i64 TO=I64|i8 TO=I8|bool TO=BOOL} FROM=U8
// variants: cast_i8_{f32 TO=F32|f16 TO=F16|bf16 TO=BF16|i32 TO=I32|i64 TO=I64|u8 TO=U8|bool TO=BOOL} FROM=I8
// There is no BF16 from 32-bit and longer integers, which would be rounded twice on their way.
#include "common.glsl"
#define F32 1
#define F16 2
#define BF16 3
#define I32 4
#define I64 5
#define U8 6
#define I8 7
#define BOOL 8

#if FROM == F32
#define S float
#define V float
#elif FROM == F16
#define S float16_t
#define V float
#elif FROM == BF16
#define S uint16_t
#define V float
#elif FROM == I32
#define S int
#define V int
#elif FROM == I64
#define S int64_t
#define V int64_t
#elif FROM == U8
#define S uint8_t
#define V uint
#elif FROM == I8
#define S int8_t
#define V int
#endif
#define SOURCE_FLOAT (FROM == F32 || FROM == F16 || FROM == BF16)

// LOW_AS_FLOAT and HIGH_AS_FLOAT: the f32 from which on the result is the type's least or largest value.
#if TO == F32
#define T float
#elif TO == F16
#define T float16_t
#elif TO == BF16
#define T uint16_t
#elif TO == BOOL
#define T uint8_t
#elif TO == I32
#define T int
#define W int
#define LOW int(0x80000000)
#define LOW_AS_FLOAT -2147483648.0
#define HIGH 0x7fffffff
#define HIGH_AS_FLOAT 2147483648.0
#elif TO == I64
#define T int64_t
#define W int64_t
#define LOW (int64_t(1) << 63)
#define LOW_AS_FLOAT -9223372036854775808.0
#define HIGH (~(int64_t(1) << 63))
#define HIGH_AS_FLOAT 9223372036854775808.0
#elif TO == U8
#define T uint8_t
#define W uint
#define LOW 0u
#define LOW_AS_FLOAT 0.0
#define HIGH 255u
#define HIGH_AS_FLOAT 255.0
#elif TO == I8
#define T int8_t
#define W int
#define LOW -128
#define LOW_AS_FLOAT -128.0
#define HIGH 127
#define HIGH_AS_FLOAT 127.0
#endif
layout(set = 0, binding = 0, std430) readonly buffer X { S x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint count; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
#if FROM == BF16
  V v = uintBitsToFloat(uint(x[i]) << 16);
#else
  V v = V(x[i]);
#endif
#if TO == BOOL
  y[i] = T(v != V(0) ? 1u : 0u);
#elif TO == BF16
  uint bits = floatBitsToUint(float(v));
  uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  y[i] = T(is_nan(float(v)) ? (bits >> 16) | 0x40u : rounded);  // a NaN stays a quiet NaN
#elif TO == F16
  y[i] = T(float(v));  // integers that f32 rounds are infinite in f16
#elif TO == F32
  y[i] = float(v);
#elif SOURCE_FLOAT
  W r = W(0);
  if (is_nan(v)) r = W(0);
  else if (v <= LOW_AS_FLOAT) r = LOW;
  else if (v >= HIGH_AS_FLOAT) r = HIGH;
  else r = W(v);
  y[i] = T(r);
#else
  y[i] = T(W(v));
#endif
}
