// All PTX instructions used by kernels; no other file has `asm`. Differences between GPU architectures end
// here: on sm_75 asynchronous copies are plain copies, a 16-bit m16n8k16 mma is two m16n8k8, and an 8-bit
// m16n8k32 four m8n8k16. bf16 and tf32 need sm_80; hosts choose other kernels on older GPUs.
//
// Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k*"): with group g = lane / 4 and thread t = lane % 4,
//   16-bit m16n8k16: a[0] row g columns 2t,2t+1; a[1] row g+8; a[2] columns +8; a[3] both.
//                    b[0] rows 2t,2t+1 of column g; b[1] rows +8.
//                    d[0..1] row g columns 2t,2t+1; d[2..3] row g+8.
//   tf32 m16n8k8:    a[0] row g column t; a[1] row g+8; a[2] column t+4; a[3] both.
//                    b[0] row t column g; b[1] row t+4. d as above.
//   s8 m16n8k32:     as 16-bit with four bytes for two halves: a[0] columns 4t..4t+3, a[2] columns +16.
#pragma once

#include "kernels/port.cuh"

#if defined(RT_CUDA_EMULATED)
#include "cuda_emulator/ptx.h"
#else
namespace librt::cuda::ptx {

RT_DEVICE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Copies 16 bytes from global to shared memory, both 16-byte aligned; bytes past `source_bytes` become zero.
/// Complete after the wait for its group.
RT_DEVICE void copy_async_16(void* destination, const void* source, int source_bytes = 16) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(destination)),
               "l"(source), "r"(source_bytes)
               : "memory");
#else
  uint4 value = make_uint4(0, 0, 0, 0);
  if (source_bytes == 16)
    value = *static_cast<const uint4*>(source);
  else
    for (int i = 0; i < source_bytes; ++i)
      reinterpret_cast<char*>(&value)[i] = static_cast<const char*>(source)[i];
  *static_cast<uint4*>(destination) = value;
#endif
}
/// Commits the copies since the last commit as a group.
RT_DEVICE void copy_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}
/// Waits until at most the kPending newest groups are in flight. Copies of other threads are visible after a
/// barrier.
template <int kPending>
RT_DEVICE void copy_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
#endif
}

/// Lane i supplies the address of row i of the 8x8 matrices of 16-bit elements, 8 rows each, 16-byte aligned
/// in shared memory.
#define RT_LOAD_MATRIX_X4(form)                                               \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" form " {%0,%1,%2,%3}, [%4];\n" \
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])               \
               : "r"(shared_address(row))                                     \
               : "memory")
#define RT_LOAD_MATRIX_X2(form)                                         \
  asm volatile("ldmatrix.sync.aligned.m8n8.x2" form " {%0,%1}, [%2];\n" \
               : "=r"(r[0]), "=r"(r[1])                                 \
               : "r"(shared_address(row))                               \
               : "memory")
RT_DEVICE void load_matrix_x4(uint32_t (&r)[4], const void* row) {
  RT_LOAD_MATRIX_X4(".shared.b16");
}
RT_DEVICE void load_matrix_x2(uint32_t (&r)[2], const void* row) {
  RT_LOAD_MATRIX_X2(".shared.b16");
}
RT_DEVICE void load_matrix_x4_transposed(uint32_t (&r)[4], const void* row) {
  RT_LOAD_MATRIX_X4(".trans.shared.b16");
}
RT_DEVICE void load_matrix_x2_transposed(uint32_t (&r)[2], const void* row) {
  RT_LOAD_MATRIX_X2(".trans.shared.b16");
}
#undef RT_LOAD_MATRIX_X4
#undef RT_LOAD_MATRIX_X2

/// d += a b, with d in registers of one kind: f (float) or r (integer).
#define RT_MULTIPLY(form, kind)                                                                    \
  asm volatile("mma.sync.aligned." form " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n" \
               : "+" kind(d[0]), "+" kind(d[1]), "+" kind(d[2]), "+" kind(d[3])                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
/// d (16x8, f32) += a (16x16, row-major) * b (16x8, column-major). The last argument only selects the type.
RT_DEVICE void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], __half) {
#if __CUDA_ARCH__ >= 800
  RT_MULTIPLY("m16n8k16.row.col.f32.f16.f16.f32", "f");
#else
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}
RT_DEVICE void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], __nv_bfloat16) {
#if __CUDA_ARCH__ >= 800
  RT_MULTIPLY("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
#else
  __trap();
#endif
}
/// The bits of a float rounded to tf32 (10 bits of mantissa).
RT_DEVICE uint32_t to_tf32(float x) {
#if __CUDA_ARCH__ >= 800
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(x));
  return bits;
#else
  return __float_as_uint(x);
#endif
}
/// d (16x8, f32) += a (16x8, tf32, row-major) * b (8x8, tf32, column-major).
RT_DEVICE void mma_16x8x8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  RT_MULTIPLY("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
#else
  __trap();
#endif
}
/// d (16x8, s32) += a (16x32, s8, row-major) * b (32x8, s8, column-major).
RT_DEVICE void mma_16x8x32_s8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  RT_MULTIPLY("m16n8k32.row.col.s32.s8.s8.s32", "r");
#else
  for (int half = 0; half < 2; ++half)       // rows 0..7, 8..15
    for (int depth = 0; depth < 2; ++depth)  // k 0..15, 16..31
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};\n"
                   : "+r"(d[2 * half]), "+r"(d[2 * half + 1])
                   : "r"(a[half + 2 * depth]), "r"(b[depth]));
#endif
}
#undef RT_MULTIPLY

}  // namespace librt::cuda::ptx
#endif
