// The wrappers of kernels/ptx.cuh on the host: the register fragments of ldmatrix and mma.sync as specified
// in the PTX ISA, and asynchronous copies that arrive late.
#pragma once

#include "cuda_emulator/device.h"

namespace librt::cuda::ptx {
namespace emulated {

inline void copy_16(const cuda_emulator::AsyncCopy& copy) {
  auto* to = static_cast<unsigned char*>(copy.destination);
  const auto* from = static_cast<const unsigned char*>(copy.source);
  for (int i = 0; i < 16; ++i) to[i] = i < copy.bytes ? from[i] : static_cast<unsigned char>(0);
}

struct MatrixRecord {
  uint32_t* registers;
  const void* row;
  cuda_emulator::Site site;
};

template <int kMatrices, bool kTransposed>
void load_matrix(void** records, unsigned) {
  const auto record = [&](int lane) { return static_cast<MatrixRecord*>(records[lane]); };
  for (int lane = 0; lane < kMatrices * 8; ++lane) {
    if (reinterpret_cast<uintptr_t>(record(lane)->row) % 16 != 0)
      cuda_emulator::fault("ldmatrix: the address of a row is not a multiple of 16", record(lane)->site);
    if (!cuda_emulator::in_shared(record(lane)->row, 16))
      cuda_emulator::fault("ldmatrix: a row does not lie in shared memory", record(lane)->site);
  }
  for (int matrix = 0; matrix < kMatrices; ++matrix) {
    const auto element = [&](int row, int column) -> uint32_t {
      return static_cast<const uint16_t*>(record(matrix * 8 + row)->row)[column];
    };
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4, column = lane % 4 * 2;
      record(lane)->registers[matrix] = kTransposed ? element(column, row) | element(column + 1, row) << 16
                                                    : element(row, column) | element(row, column + 1) << 16;
    }
  }
}

struct MmaRecord {
  void* d;
  const uint32_t* a;
  const uint32_t* b;
};

inline float number(uint32_t bits, __half) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
inline float number(uint32_t bits, __nv_bfloat16) {
  return __uint_as_float(bits << 16);
}
struct Tf32 {};
inline float number(uint32_t bits, Tf32) {
  return __uint_as_float(bits & ~0x1fffu);  // the hardware ignores the low bits
}
struct Byte {};
inline int number(uint32_t bits, Byte) {
  return static_cast<int8_t>(bits);
}

/// m16n8k(4 * kPerRegister * 2): each register holds kPerRegister elements; D has type Sum.
template <class Element, int kPerRegister, class Sum>
void mma(void** records, unsigned) {
  constexpr int kHalf = 4 * kPerRegister, kDepth = 2 * kHalf, kBits = 32 / kPerRegister;
  Sum a[16][kDepth], b[kDepth][8], d[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto* record = static_cast<MmaRecord*>(records[lane]);
    const auto* sum = static_cast<const Sum*>(record->d);
    const int group = lane / 4, first = lane % 4 * kPerRegister;
    for (int i = 0; i < kPerRegister; ++i) {
      const auto part = [&](uint32_t word) {
        constexpr uint32_t kMask = kBits == 32 ? ~0u : (1u << (kBits % 32)) - 1;
        return static_cast<Sum>(number(word >> (kBits * i) & kMask, Element{}));
      };
      a[group][first + i] = part(record->a[0]);
      a[group + 8][first + i] = part(record->a[1]);
      a[group][first + kHalf + i] = part(record->a[2]);
      a[group + 8][first + kHalf + i] = part(record->a[3]);
      b[first + i][group] = part(record->b[0]);
      b[first + kHalf + i][group] = part(record->b[1]);
    }
    for (int i = 0; i < 2; ++i) {
      d[group][lane % 4 * 2 + i] = sum[i];
      d[group + 8][lane % 4 * 2 + i] = sum[2 + i];
    }
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < kDepth; ++k)
      for (int column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < 32; ++lane) {
    auto* sum = static_cast<Sum*>(static_cast<MmaRecord*>(records[lane])->d);
    for (int i = 0; i < 2; ++i) {
      sum[i] = d[lane / 4][lane % 4 * 2 + i];
      sum[2 + i] = d[lane / 4 + 8][lane % 4 * 2 + i];
    }
  }
}

template <int kMatrices, bool kTransposed>
// NOLINTNEXTLINE(readability-non-const-parameter): written by the collective
void load_matrix_now(uint32_t* registers, const void* row, cuda_emulator::Site site) {
  MatrixRecord record{registers, row, site};
  cuda_emulator::warp_collective(~0u, &record, load_matrix<kMatrices, kTransposed>, "ldmatrix", site);
}
template <class Element, int kPerRegister, class Sum>
void mma_now(Sum* d, const uint32_t* a, const uint32_t* b, cuda_emulator::Site site) {
  MmaRecord record{d, a, b};
  cuda_emulator::warp_collective(~0u, &record, mma<Element, kPerRegister, Sum>, "mma", site);
}

}  // namespace emulated

inline void copy_async_16(void* destination, const void* source, int source_bytes = 16,
                          RT_CALLER_PARAMETERS) {
  if (reinterpret_cast<uintptr_t>(destination) % 16 != 0 || reinterpret_cast<uintptr_t>(source) % 16 != 0)
    cuda_emulator::fault("cp.async: an address is not a multiple of 16", RT_CALLER);
  if (!cuda_emulator::in_shared(destination, 16))
    cuda_emulator::fault("cp.async: the destination does not lie in shared memory", RT_CALLER);
  const cuda_emulator::AsyncCopy copy{destination, source, source_bytes};
  if (cuda_emulator::options().late_copies)
    cuda_emulator::push_copy(copy);
  else
    emulated::copy_16(copy);
}
inline void copy_async_commit() {
  cuda_emulator::commit_copies();
}
template <int kPending>
inline void copy_async_wait() {
  for (cuda_emulator::AsyncCopy copy; cuda_emulator::pop_copy(kPending, copy);) emulated::copy_16(copy);
}

inline void load_matrix_x4(uint32_t (&r)[4], const void* row, RT_CALLER_PARAMETERS) {
  emulated::load_matrix_now<4, false>(r, row, RT_CALLER);
}
inline void load_matrix_x2(uint32_t (&r)[2], const void* row, RT_CALLER_PARAMETERS) {
  emulated::load_matrix_now<2, false>(r, row, RT_CALLER);
}
inline void load_matrix_x4_transposed(uint32_t (&r)[4], const void* row, RT_CALLER_PARAMETERS) {
  emulated::load_matrix_now<4, true>(r, row, RT_CALLER);
}
inline void load_matrix_x2_transposed(uint32_t (&r)[2], const void* row, RT_CALLER_PARAMETERS) {
  emulated::load_matrix_now<2, true>(r, row, RT_CALLER);
}

template <class Element>
inline void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Element,
                        RT_CALLER_PARAMETERS) {
  emulated::mma_now<Element, 2, float>(d, a, b, RT_CALLER);
}
inline uint32_t to_tf32(float x) {  // to nearest, ties away from zero
  const uint32_t bits = __float_as_uint(x);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;
}
inline void mma_16x8x8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                            RT_CALLER_PARAMETERS) {
  emulated::mma_now<emulated::Tf32, 1, float>(d, a, b, RT_CALLER);
}
inline void mma_16x8x32_s8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                           RT_CALLER_PARAMETERS) {
  emulated::mma_now<emulated::Byte, 4, int>(d, a, b, RT_CALLER);
}

}  // namespace librt::cuda::ptx
