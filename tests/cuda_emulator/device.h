// CUDA device code for a plain C++ compiler: types and declarations come from the toolkit's headers; this
// file adds the qualifiers and built-ins that only nvcc knows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include "cuda_emulator/emulator.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __align__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Shared memory is static: blocks run one at a time, and the linker puts it in one section (shared_pages.ld),
// which is poisoned before each block.
#define __shared__ static

#define threadIdx (::cuda_emulator::current_thread->index)
#define blockIdx (::cuda_emulator::current_block->index)
#define blockDim (::cuda_emulator::current_block->block)
#define gridDim (::cuda_emulator::current_block->grid)
inline constexpr int warpSize = 32;

namespace cuda_emulator {

/// Checks and queues a launch; `symbol` identifies the kernel.
cudaError_t launch(std::function<void()> body, const void* symbol, dim3 grid, dim3 block,
                   unsigned shared_bytes, cudaStream_t stream);

enum class Shuffle { Index, Up, Down, Xor };

template <Shuffle kMode, class T>
T shuffle(unsigned mask, T value, int argument, int width, Site site) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "shuffles move up to 8 bytes");
  struct Record {
    T in, out;
    int argument, width;
    Site site;
  } record{value, value, argument, width, site};
  warp_collective(
      mask, &record,
      [](void** records, unsigned lanes) {
        for (int lane = 0; lane < 32; ++lane) {
          if ((lanes >> lane & 1u) == 0) continue;
          auto* mine = static_cast<Record*>(records[lane]);
          const int first = lane & ~(mine->width - 1), position = lane & (mine->width - 1);
          int from = position;
          if (kMode == Shuffle::Index) from = mine->argument & (mine->width - 1);
          if (kMode == Shuffle::Up) from = position - mine->argument;
          if (kMode == Shuffle::Down) from = position + mine->argument;
          if (kMode == Shuffle::Xor) from = position ^ mine->argument;
          if (from < 0 || from >= mine->width) from = position;  // outside the segment: the lane's own value
          from += first;
          if ((lanes >> from & 1u) == 0) {
            complain("a shuffle reads a lane outside its mask", mine->site);
            from = lane;
          }
          mine->out = static_cast<Record*>(records[from])->in;
        }
      },
      "shuffle", site);
  return record.out;
}

struct VoteRecord {
  unsigned long long value;
  unsigned result;
};

inline unsigned ballot(unsigned mask, bool predicate, Site site) {
  VoteRecord record{predicate, 0};
  warp_collective(
      mask, &record,
      [](void** records, unsigned lanes) {
        unsigned votes = 0;
        for (int lane = 0; lane < 32; ++lane)
          if ((lanes >> lane & 1u) != 0 && static_cast<VoteRecord*>(records[lane])->value != 0)
            votes |= 1u << lane;
        for (int lane = 0; lane < 32; ++lane)
          if ((lanes >> lane & 1u) != 0) static_cast<VoteRecord*>(records[lane])->result = votes;
      },
      "vote", site);
  return record.result;
}

inline unsigned match_any(unsigned mask, unsigned long long value, Site site) {
  VoteRecord record{value, 0};
  warp_collective(
      mask, &record,
      [](void** records, unsigned lanes) {
        for (int lane = 0; lane < 32; ++lane) {
          if ((lanes >> lane & 1u) == 0) continue;
          auto* mine = static_cast<VoteRecord*>(records[lane]);
          for (int other = 0; other < 32; ++other)
            if ((lanes >> other & 1u) != 0 && static_cast<VoteRecord*>(records[other])->value == mine->value)
              mine->result |= 1u << other;
        }
      },
      "match", site);
  return record.result;
}

template <class T, class Operation>
T reduce(unsigned mask, T value, Operation, Site site) {
  struct Record {
    T in, out;
  } record{value, value};
  warp_collective(
      mask, &record,
      [](void** records, unsigned lanes) {
        bool first = true;
        T total{};
        for (int lane = 0; lane < 32; ++lane) {
          if ((lanes >> lane & 1u) == 0) continue;
          const T in = static_cast<Record*>(records[lane])->in;
          total = first ? in : Operation{}(total, in);
          first = false;
        }
        for (int lane = 0; lane < 32; ++lane)
          if ((lanes >> lane & 1u) != 0) static_cast<Record*>(records[lane])->out = total;
      },
      "warp reduction", site);
  return record.out;
}

template <class T, class Update>
T atomic_update(T* address, Update update) {
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  for (;;) {
    T next = update(old);
    if (__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return old;
  }
}

}  // namespace cuda_emulator

// --- barriers and warp operations

inline void __syncthreads(RT_CALLER_PARAMETERS) {
  cuda_emulator::block_barrier(RT_CALLER);
}
inline int __syncthreads_count(int predicate, RT_CALLER_PARAMETERS) {
  return cuda_emulator::block_count(predicate != 0, RT_CALLER);
}
inline int __syncthreads_or(int predicate, RT_CALLER_PARAMETERS) {
  return cuda_emulator::block_count(predicate != 0, RT_CALLER) != 0;
}
inline int __syncthreads_and(int predicate, RT_CALLER_PARAMETERS) {
  return cuda_emulator::block_count(predicate == 0, RT_CALLER) == 0;
}
inline void __syncwarp(unsigned mask = ~0u, RT_CALLER_PARAMETERS) {
  cuda_emulator::warp_collective(mask, nullptr, nullptr, "__syncwarp", RT_CALLER);
}
inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
[[noreturn]] inline void __trap(RT_CALLER_PARAMETERS) {
  cuda_emulator::fault("__trap", RT_CALLER);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, RT_CALLER_PARAMETERS) {
  return cuda_emulator::shuffle<cuda_emulator::Shuffle::Index>(mask, value, lane, width, RT_CALLER);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, RT_CALLER_PARAMETERS) {
  return cuda_emulator::shuffle<cuda_emulator::Shuffle::Up>(mask, value, static_cast<int>(delta), width,
                                                            RT_CALLER);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, RT_CALLER_PARAMETERS) {
  return cuda_emulator::shuffle<cuda_emulator::Shuffle::Down>(mask, value, static_cast<int>(delta), width,
                                                              RT_CALLER);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, RT_CALLER_PARAMETERS) {
  return cuda_emulator::shuffle<cuda_emulator::Shuffle::Xor>(mask, value, bits, width, RT_CALLER);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, RT_CALLER_PARAMETERS) {
  return cuda_emulator::ballot(mask, predicate != 0, RT_CALLER);
}
inline int __any_sync(unsigned mask, int predicate, RT_CALLER_PARAMETERS) {
  return cuda_emulator::ballot(mask, predicate != 0, RT_CALLER) != 0;
}
inline int __all_sync(unsigned mask, int predicate, RT_CALLER_PARAMETERS) {
  return cuda_emulator::ballot(mask, predicate == 0, RT_CALLER) == 0;
}
inline unsigned __match_any_sync(unsigned mask, unsigned long long value, RT_CALLER_PARAMETERS) {
  return cuda_emulator::match_any(mask, value, RT_CALLER);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, RT_CALLER_PARAMETERS) {
  return cuda_emulator::reduce(mask, value, std::plus<unsigned>{}, RT_CALLER);
}

// --- atomics

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  if constexpr (std::is_integral_v<T>)
    return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
  else
    return cuda_emulator::atomic_update(address, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return cuda_emulator::atomic_update(address, [value](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return cuda_emulator::atomic_update(address, [value](T old) { return value < old ? value : old; });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  T old;
  __atomic_exchange(address, &value, &old, __ATOMIC_ACQ_REL);
  return old;
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  __atomic_compare_exchange(address, &expected, &value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_or(address, value, __ATOMIC_ACQ_REL);
}
template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_and(address, value, __ATOMIC_ACQ_REL);
}

// --- arithmetic

inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline double __dadd_rn(double a, double b) {
  return a + b;
}
inline double __dmul_rn(double a, double b) {
  return a * b;
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline int __float2int_rn(float x) {
  return static_cast<int>(std::nearbyint(x));
}
template <class To, class From>
To bits_as(From from) {
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline int __float_as_int(float x) {
  return bits_as<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return bits_as<unsigned>(x);
}
inline float __int_as_float(int x) {
  return bits_as<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return bits_as<float>(x);
}
inline long long __double_as_longlong(double x) {
  return bits_as<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return bits_as<double>(x);
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __clz(int x) {
  return x != 0 ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i)
    c +=
        static_cast<int>(static_cast<int8_t>(a >> 8 * i)) * static_cast<int>(static_cast<int8_t>(b >> 8 * i));
  return c;
}
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
inline __half __hfma(__half a, __half b, __half c) {
  return __float2half(std::fma(__half2float(a), __half2float(b), __half2float(c)));
}
// NOLINTNEXTLINE(performance-unnecessary-value-param): as CUDA declares it
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
