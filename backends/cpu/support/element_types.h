// Dispatch on the C++ type of a dtype, and element type conversions that are defined for every value.
//
// Knows: dtypes and scalars. Must not know: tensors, operators.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/core/dtype.h"
#include "runtime/core/half.h"
#include "runtime/core/in_build.h"

namespace librt::cpu {

/// Storage of the 16-bit floats and of bool, as distinct types.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Boolean {
  uint8_t value;
};

template <class T>
struct TypeTag {
  using type = T;
};

namespace detail {
/// f of the tag, in a build that holds the type: sessions refuse values of others
/// (runtime/session/prepare/legalize.cpp).
template <bool kInBuild, class T, class F>
auto with_built(F& f) -> decltype(f(TypeTag<T>{})) {
  if constexpr (kInBuild)
    return f(TypeTag<T>{});
  else
    __builtin_trap();
}

}  // namespace detail

/// Only for types with native C++ arithmetic: not the 16-bit floats, not bool.
template <class F>
decltype(auto) with_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64: return detail::with_built<in_build(DType::F64), double>(f);
    case DType::I8: return detail::with_built<in_build(DType::I8), int8_t>(f);
    case DType::U8: return detail::with_built<in_build(DType::U8), uint8_t>(f);
    case DType::I16: return detail::with_built<in_build(DType::I16), int16_t>(f);
    case DType::U16: return detail::with_built<in_build(DType::U16), uint16_t>(f);
    case DType::I32: return detail::with_built<in_build(DType::I32), int32_t>(f);
    case DType::U32: return detail::with_built<in_build(DType::U32), uint32_t>(f);
    case DType::I64: return detail::with_built<in_build(DType::I64), int64_t>(f);
    case DType::U64: return detail::with_built<in_build(DType::U64), uint64_t>(f);
    default: break;
  }
  return f(TypeTag<float>{});
}
inline constexpr DTypeSet kNativeNumericTypes = kIntegers | DTypeSet{DType::F32, DType::F64};

/// f(TypeTag<T>{}) with T the storage type of dtype.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F16: return detail::with_built<in_build(DType::F16), Half>(f);
    case DType::BF16: return detail::with_built<in_build(DType::BF16), BFloat>(f);
    case DType::Bool: return detail::with_built<in_build(DType::Bool), Boolean>(f);
    default: break;
  }
  return with_number(dtype, f);
}

/// f with the unsigned integer of this many bytes, all that a movement operator needs to know of an element.
template <class F>
decltype(auto) with_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return detail::with_built<size_in_build(1), uint8_t>(f);
    case 2: return detail::with_built<size_in_build(2), uint16_t>(f);
    case 8: return detail::with_built<size_in_build(8), uint64_t>(f);
    default: break;
  }
  return f(TypeTag<uint32_t>{});
}

/// A value in the type that holds it exactly: float, double, or 64-bit integer.
inline float widen(float x) noexcept {
  return x;
}
inline double widen(double x) noexcept {
  return x;
}
inline float widen(Half x) noexcept {
  return half_to_float(x.bits);
}
inline float widen(BFloat x) noexcept {
  return bf16_to_float(x.bits);
}
inline int64_t widen(Boolean x) noexcept {
  return x.value != 0 ? 1 : 0;
}
template <class T>
requires std::is_integral_v<T>
auto widen(T x) noexcept {
  if constexpr (std::is_signed_v<T>)
    return static_cast<int64_t>(x);
  else
    return static_cast<uint64_t>(x);
}

/// Floats to integers: toward zero, saturated, NaN to 0. Integers to integers: the low bits. To bool: != 0.
template <class To, class Wide>
To narrow(Wide x) noexcept {
  if constexpr (std::is_same_v<To, Boolean>) {
    return {static_cast<uint8_t>(x != 0 ? 1 : 0)};
  } else if constexpr (std::is_same_v<To, Half>) {
    return {float_to_half(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, BFloat>) {
    return {float_to_bf16(static_cast<float>(x))};
  } else if constexpr (std::is_floating_point_v<Wide> && std::is_integral_v<To>) {
    constexpr To kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
    constexpr Wide kLow = static_cast<Wide>(kLeast), kHigh = static_cast<Wide>(kMost);
    const bool inside = (x > kLow) & (x < kHigh);  // branch-free, so that loops over this vectorize
    const To truncated = static_cast<To>(inside ? x : Wide{0});
    const To raised = x <= kLow ? kLeast : truncated;
    return x >= kHigh ? kMost : raised;
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace librt::cpu
