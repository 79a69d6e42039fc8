/** @file
 * Element types of tensors: one enumeration for the C API, the C++ API and the library itself.
 */
#ifndef RT_DTYPE_H
#define RT_DTYPE_H

/** @addtogroup c_tensors
 * @{ */

/** Element types. The values are part of the ABI and of the file format. */
typedef enum rt_dtype {
  RT_F32 = 0,  /**< 32-bit IEEE float */
  RT_F16 = 1,  /**< 16-bit IEEE float */
  RT_BF16 = 2, /**< bfloat16: the upper 16 bits of an f32 */
  RT_F64 = 3,  /**< 64-bit IEEE float */
  RT_I8 = 4,   /**< 8-bit signed integer */
  RT_U8 = 5,   /**< 8-bit unsigned integer */
  RT_I16 = 6,  /**< 16-bit signed integer */
  RT_U16 = 7,  /**< 16-bit unsigned integer */
  RT_I32 = 8,  /**< 32-bit signed integer */
  RT_U32 = 9,  /**< 32-bit unsigned integer */
  RT_I64 = 10, /**< 64-bit signed integer */
  RT_U64 = 11, /**< 64-bit unsigned integer */
  RT_BOOL = 12 /**< one byte, 0 or 1 */
} rt_dtype;

/** @} */

#endif /* RT_DTYPE_H */
