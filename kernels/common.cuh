// Shared by all kernel families: template dispatch by element type, conversions defined for every value,
// indices.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/port.cuh"
#include "kernels/types.h"

namespace librt::cuda {

template <class T>
struct TypeTag {
  using type = T;
};

/// f(TypeTag<T>{}) with the C++ type of an element type, on the host. All calls must return the same type.
template <class F>
decltype(auto) with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::F16: return f(TypeTag<__half>{});
    case ElementType::BF16: return f(TypeTag<__nv_bfloat16>{});
    case ElementType::F64: return f(TypeTag<double>{});
    case ElementType::I8: return f(TypeTag<int8_t>{});
    case ElementType::U8: return f(TypeTag<uint8_t>{});
    case ElementType::I16: return f(TypeTag<int16_t>{});
    case ElementType::U16: return f(TypeTag<uint16_t>{});
    case ElementType::I32: return f(TypeTag<int32_t>{});
    case ElementType::U32: return f(TypeTag<uint32_t>{});
    case ElementType::I64: return f(TypeTag<int64_t>{});
    case ElementType::U64: return f(TypeTag<uint64_t>{});
    case ElementType::Bool: return f(TypeTag<Boolean>{});
    case ElementType::F32: break;
  }
  return f(TypeTag<float>{});
}

/// with_type() for numeric types only; bool is passed to f as uint8_t.
template <class F>
decltype(auto) with_number(ElementType type, F&& f) {
  return with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Boolean>)
      return f(TypeTag<uint8_t>{});
    else
      return f(tag);
  });
}

/// with_type() for f32, f16 and bf16; any other type is passed to f as float.
template <class F>
decltype(auto) with_float(ElementType type, F&& f) {
  switch (type) {
    case ElementType::F16: return f(TypeTag<__half>{});
    case ElementType::BF16: return f(TypeTag<__nv_bfloat16>{});
    default: return f(TypeTag<float>{});
  }
}

/// An unsigned integer of this many bytes: the element type of data movement kernels.
template <class F>
decltype(auto) with_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(TypeTag<uint8_t>{});
    case 2: return f(TypeTag<uint16_t>{});
    case 8: return f(TypeTag<uint64_t>{});
    default: return f(TypeTag<uint32_t>{});
  }
}

/// The type that T is computed in: float for f32, f16 and bf16; double; 64-bit integers.
RT_DEVICE float widen(float x) {
  return x;
}
RT_DEVICE double widen(double x) {
  return x;
}
RT_DEVICE float widen(__half x) {
  return __half2float(x);
}
RT_DEVICE float widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
RT_DEVICE int64_t widen(Boolean x) {
  return x.value != 0 ? 1 : 0;
}
RT_DEVICE int64_t widen(int8_t x) {
  return x;
}
RT_DEVICE int64_t widen(int16_t x) {
  return x;
}
RT_DEVICE int64_t widen(int32_t x) {
  return x;
}
RT_DEVICE int64_t widen(int64_t x) {
  return x;
}
RT_DEVICE uint64_t widen(uint8_t x) {
  return x;
}
RT_DEVICE uint64_t widen(uint16_t x) {
  return x;
}
RT_DEVICE uint64_t widen(uint32_t x) {
  return x;
}
RT_DEVICE uint64_t widen(uint64_t x) {
  return x;
}

template <class T>
using Wide = decltype(widen(T{}));

/// The inverse of widen(), for every value. Floats to integers: toward zero, saturated, NaN to 0. Integers to
/// integers: the low bits. To bool: != 0.
template <class To, class From>
RT_DEVICE To narrow(From x) {
  if constexpr (std::is_same_v<To, Boolean>) {
    return Boolean{static_cast<uint8_t>(x != From{0} ? 1 : 0)};
  } else if constexpr (std::is_same_v<To, __half>) {
    return __float2half_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, __nv_bfloat16>) {
    return __float2bfloat16_rn(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (x != x) return To{0};
    constexpr To kLow = std::numeric_limits<To>::min(), kHigh = std::numeric_limits<To>::max();
    if (x <= static_cast<From>(kLow)) return kLow;
    if (x >= static_cast<From>(kHigh)) return kHigh;
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// For accumulation in f32: f32, f16 and bf16 through float.
template <class T>
RT_DEVICE float to_float(T x) {
  return static_cast<float>(widen(x));
}
template <class T>
RT_DEVICE T from_float(float x) {
  return narrow<T>(x);
}

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// The global index of this thread in a grid of one-dimensional blocks.
RT_DEVICE int64_t global_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

inline constexpr unsigned kElementwiseThreads = 256;

/// A grid with one thread for each of `count` work items; kernels compare global_index() with the count.
inline LaunchConfig launch_each(int64_t count, cudaStream_t stream, unsigned threads = kElementwiseThreads) {
  return {dim3(static_cast<unsigned>(ceil_div(count, threads))), dim3(threads), 0, stream};
}

}  // namespace librt::cuda
