#include "runtime/core/convert_floats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/half.h"

namespace librt {
namespace {

template <class T>
T element_at(const void* bytes, int64_t i) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(bytes) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void set_element(void* bytes, int64_t i, T value) noexcept {
  std::memcpy(static_cast<std::byte*>(bytes) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

float saturated(float value, DType dtype) noexcept {
  const float largest = largest_finite(dtype);
  return std::isfinite(value) ? std::clamp(value, -largest, largest) : value;
}

}  // namespace

void convert_floats(const void* from, DType from_type, void* to, DType to_type, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    const float value = from_type == DType::F32   ? element_at<float>(from, i)
                        : from_type == DType::F16 ? half_to_float(element_at<uint16_t>(from, i))
                                                  : bf16_to_float(element_at<uint16_t>(from, i));
    if (to_type == DType::F32)
      set_element(to, i, value);
    else
      set_element(to, i,
                  to_type == DType::F16 ? float_to_half(saturated(value, to_type))
                                        : float_to_bf16(saturated(value, to_type)));
  }
}

}  // namespace librt
