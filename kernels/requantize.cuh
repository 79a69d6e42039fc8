// Requantization of i32 accumulators, shared by all kernels with that epilogue.
#pragma once

#include "kernels/functions.cuh"
#include "kernels/quantize.h"

namespace librt::cuda {

template <class To>
RT_DEVICE To requantized(const Requantization& to, int32_t sum, int64_t channel) {
  float r = static_cast<float>(sum) * to.scale[to.one_scale ? 0 : channel];
  if (to.bias != nullptr) r += to.bias[channel];
  r = activation_value<float>(to.activation.function, r, static_cast<float>(to.activation.alpha),
                              static_cast<float>(to.activation.beta));
  if constexpr (sizeof(To) == 4) {
    return r;
  } else {
    const float quotient = r / *to.y_scale;
    const float whole = quotient != quotient ? 0.0f : rintf(quotient);
    const float zero = to.y_zero == nullptr ? 0.0f : static_cast<float>(*static_cast<const To*>(to.y_zero));
    return narrow<To>(whole + zero);
  }
}

/// result[i] in the type given by `to`.
RT_DEVICE void store_requantized(const Requantization& to, void* result, int64_t i, int32_t sum,
                                 int64_t channel) {
  switch (to.to) {
    case ElementType::F32: static_cast<float*>(result)[i] = requantized<float>(to, sum, channel); break;
    case ElementType::I8: static_cast<int8_t*>(result)[i] = requantized<int8_t>(to, sum, channel); break;
    case ElementType::U8: static_cast<uint8_t*>(result)[i] = requantized<uint8_t>(to, sum, channel); break;
    default: static_cast<int32_t*>(result)[i] = sum;
  }
}

}  // namespace librt::cuda
