#include "cuda_emulator/ptx_kernels.h"

#include "kernels/ptx.cuh"

namespace librt::cuda::test {
namespace {

constexpr unsigned kAll = 0xffffffffu;

/// Stores a fragment's accumulators in the layout of mma.sync.
template <class T>
RT_DEVICE void add_to(T* d, const T (&sums)[4]) {
  const int lane = static_cast<int>(threadIdx.x), row = lane / 4, column = lane % 4 * 2;
  d[row * 8 + column] = sums[0];
  d[row * 8 + column + 1] = sums[1];
  d[(row + 8) * 8 + column] = sums[2];
  d[(row + 8) * 8 + column + 1] = sums[3];
}
template <class T>
RT_DEVICE void load_from(const T* d, T (&sums)[4]) {
  const int lane = static_cast<int>(threadIdx.x), row = lane / 4, column = lane % 4 * 2;
  sums[0] = d[row * 8 + column];
  sums[1] = d[row * 8 + column + 1];
  sums[2] = d[(row + 8) * 8 + column];
  sums[3] = d[(row + 8) * 8 + column + 1];
}

template <class T, bool kByRows>
__global__ void mma_16_kernel(const uint16_t* a, const uint16_t* b, float* d) {
  __shared__ __align__(16) uint16_t shared_a[16 * 16];
  __shared__ __align__(16) uint16_t shared_b[16 * 8];
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) shared_a[i] = a[i];
  for (int i = lane; i < 128; i += 32) shared_b[i] = b[i];
  __syncwarp();
  uint32_t from_a[4], from_b[2];
  ptx::load_matrix_x4(from_a, shared_a + lane % 16 * 16 + lane / 16 * 8);
  if constexpr (kByRows)
    ptx::load_matrix_x2_transposed(from_b, shared_b + lane % 16 * 8);
  else
    ptx::load_matrix_x2(from_b, shared_b + lane % 8 * 16 + lane / 8 % 2 * 8);
  float sums[4];
  load_from(d, sums);
  ptx::mma_16x8x16(sums, from_a, from_b, T{});
  add_to(d, sums);
}

__global__ void mma_tf32_kernel(const float* a, const float* b, float* d) {
  const int lane = static_cast<int>(threadIdx.x), group = lane / 4, thread = lane % 4;
  const uint32_t from_a[4] = {ptx::to_tf32(a[group * 8 + thread]), ptx::to_tf32(a[(group + 8) * 8 + thread]),
                              ptx::to_tf32(a[group * 8 + thread + 4]),
                              ptx::to_tf32(a[(group + 8) * 8 + thread + 4])};
  const uint32_t from_b[2] = {ptx::to_tf32(b[thread * 8 + group]), ptx::to_tf32(b[(thread + 4) * 8 + group])};
  float sums[4];
  load_from(d, sums);
  ptx::mma_16x8x8_tf32(sums, from_a, from_b);
  add_to(d, sums);
}

__global__ void mma_s8_kernel(const int8_t* a, const int8_t* b, int* d) {
  __shared__ __align__(16) int8_t shared_a[16 * 32];
  __shared__ __align__(16) int8_t shared_b[8 * 32];
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 512; i += 32) shared_a[i] = a[i];
  for (int i = lane; i < 256; i += 32) shared_b[i] = b[i];
  __syncwarp();
  uint32_t from_a[4], from_b[2];
  ptx::load_matrix_x4(from_a, shared_a + lane % 16 * 32 + lane / 16 * 16);
  ptx::load_matrix_x2(from_b, shared_b + lane % 8 * 32 + lane / 8 % 2 * 16);
  int sums[4];
  load_from(d, sums);
  ptx::mma_16x8x32_s8(sums, from_a, from_b);
  add_to(d, sums);
}

__global__ void copies_kernel(const uint32_t* in, uint32_t* out) {
  __shared__ __align__(16) uint32_t shared[256];
  const int lane = static_cast<int>(threadIdx.x);
  ptx::copy_async_16(shared + lane * 4, in + lane * 4, lane % 5 * 4);
  ptx::copy_async_commit();
  ptx::copy_async_16(shared + 128 + lane * 4, in + 128 + lane * 4);
  ptx::copy_async_commit();
  ptx::copy_async_wait<1>();
  __syncwarp();
  for (int i = lane; i < 128; i += 32) out[i] = shared[i];
  ptx::copy_async_wait<0>();
  __syncwarp();
  for (int i = lane; i < 128; i += 32) out[128 + i] = shared[128 + i];
}

__global__ void warp_operations_kernel(const uint32_t* in, uint32_t* out) {
  const unsigned lane = threadIdx.x, value = in[lane];
  uint32_t* o = out + lane * 12;
  o[0] = __shfl_sync(kAll, value, 5);
  o[1] = __shfl_sync(kAll, value, static_cast<int>(lane * 3), 8);
  o[2] = __shfl_up_sync(kAll, value, 3);
  o[3] = __shfl_up_sync(kAll, value, 3, 16);
  o[4] = __shfl_down_sync(kAll, value, 9);
  o[5] = __shfl_down_sync(kAll, value, 9, 16);
  o[6] = __shfl_xor_sync(kAll, value, 11);
  o[7] = __shfl_xor_sync(kAll, value, 3, 4);
  o[8] = __ballot_sync(kAll, static_cast<int>(value & 1u));
  o[9] = static_cast<unsigned>(__any_sync(kAll, lane == 7)) |
         static_cast<unsigned>(__all_sync(kAll, lane < 32)) << 1;
  o[10] = static_cast<unsigned>(__popc(value)) | static_cast<unsigned>(__clz(static_cast<int>(value))) << 8;
  unsigned part = 0;  // the two halves of the warp run different operations
  if (lane < 16)
    part = __shfl_xor_sync(0x0000ffffu, value, 1);
  else
    part = __shfl_xor_sync(0xffff0000u, value, 2);
  o[11] = part;
}

}  // namespace

cudaError_t mma_16(bool bfloat, bool b_by_rows, const uint16_t* a, const uint16_t* b, float* d,
                   cudaStream_t stream) {
  const LaunchConfig warp{dim3(1), dim3(32), 0, stream};
  if (bfloat && b_by_rows) return launch(mma_16_kernel<__nv_bfloat16, true>, warp, a, b, d);
  if (bfloat) return launch(mma_16_kernel<__nv_bfloat16, false>, warp, a, b, d);
  if (b_by_rows) return launch(mma_16_kernel<__half, true>, warp, a, b, d);
  return launch(mma_16_kernel<__half, false>, warp, a, b, d);
}
cudaError_t mma_tf32(const float* a, const float* b, float* d, cudaStream_t stream) {
  return launch(mma_tf32_kernel, {dim3(1), dim3(32), 0, stream}, a, b, d);
}
cudaError_t mma_s8(const int8_t* a, const int8_t* b, int* d, cudaStream_t stream) {
  return launch(mma_s8_kernel, {dim3(1), dim3(32), 0, stream}, a, b, d);
}
cudaError_t copies(const uint32_t* in, uint32_t* out, cudaStream_t stream) {
  return launch(copies_kernel, {dim3(1), dim3(32), 0, stream}, in, out);
}
cudaError_t warp_operations(const uint32_t* in, uint32_t* out, cudaStream_t stream) {
  return launch(warp_operations_kernel, {dim3(1), dim3(32), 0, stream}, in, out);
}

}  // namespace librt::cuda::test
