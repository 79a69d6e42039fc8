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

/// f(TypeTag<T>{}) with T the storage type of dtype.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F32: return f(TypeTag<float>{});
    case DType::F16: return f(TypeTag<Half>{});
    case DType::BF16: return f(TypeTag<BFloat>{});
    case DType::F64: return f(TypeTag<double>{});
    case DType::I8: return f(TypeTag<int8_t>{});
    case DType::U8: return f(TypeTag<uint8_t>{});
    case DType::I16: return f(TypeTag<int16_t>{});
    case DType::U16: return f(TypeTag<uint16_t>{});
    case DType::I32: return f(TypeTag<int32_t>{});
    case DType::U32: return f(TypeTag<uint32_t>{});
    case DType::I64: return f(TypeTag<int64_t>{});
    case DType::U64: return f(TypeTag<uint64_t>{});
    case DType::Bool: break;
  }
  return f(TypeTag<Boolean>{});
}

/// Only for types with native C++ arithmetic: not the 16-bit floats, not bool.
template <class F>
decltype(auto) with_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64: return f(TypeTag<double>{});
    case DType::I8: return f(TypeTag<int8_t>{});
    case DType::U8: return f(TypeTag<uint8_t>{});
    case DType::I16: return f(TypeTag<int16_t>{});
    case DType::U16: return f(TypeTag<uint16_t>{});
    case DType::I32: return f(TypeTag<int32_t>{});
    case DType::U32: return f(TypeTag<uint32_t>{});
    case DType::I64: return f(TypeTag<int64_t>{});
    case DType::U64: return f(TypeTag<uint64_t>{});
    default: break;
  }
  return f(TypeTag<float>{});
}
inline constexpr DTypeSet kNativeNumericTypes = kIntegers | DTypeSet{DType::F32, DType::F64};

/// f with the unsigned integer of this many bytes, all that a movement operator needs to know of an element.
template <class F>
decltype(auto) with_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(TypeTag<uint8_t>{});
    case 2: return f(TypeTag<uint16_t>{});
    case 8: return f(TypeTag<uint64_t>{});
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
