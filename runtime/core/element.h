// Reading and writing single elements of any dtype, for reference code: slow and exact.
//
// double holds every f32, f16, bf16 and integer up to 2^53; 64-bit integers go through the int64 forms.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/core/dtype.h"
#include "runtime/core/half.h"

namespace librt {

namespace detail {
template <class T>
T load_as(const void* data, int64_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void store_as(void* data, int64_t index, T value) noexcept {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}
/// Truncates toward zero and saturates; NaN becomes 0. Never undefined, unlike the language's own conversion.
template <class Integer>
Integer to_integer(double value) noexcept {
  if (std::isnan(value)) return 0;
  constexpr double kLow = static_cast<double>(std::numeric_limits<Integer>::min());
  constexpr double kHigh = static_cast<double>(std::numeric_limits<Integer>::max());
  if (value <= kLow) return std::numeric_limits<Integer>::min();
  if (value >= kHigh) return std::numeric_limits<Integer>::max();
  return static_cast<Integer>(value);
}
}  // namespace detail

/// Element `index` as a double (64-bit integers are rounded). bool is 0 or 1.
double load_element(const void* data, DType dtype, int64_t index) noexcept;
/// Stores a double: rounded to nearest even for floats, truncated and saturated for integers, != 0 for bool.
void store_element(void* data, DType dtype, int64_t index, double value) noexcept;
/// Element `index` of an integer or bool tensor, exactly (u64 keeps its bits).
int64_t load_integer(const void* data, DType dtype, int64_t index) noexcept;
/// Stores the low bits of `value`, as C's conversions between integer types do; != 0 for bool.
void store_integer(void* data, DType dtype, int64_t index, int64_t value) noexcept;

}  // namespace librt
