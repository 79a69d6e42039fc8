// ConvInteger on the own GEMM of 8-bit integers, or channel by channel where it is depthwise.
#pragma once

#include <optional>

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/requantize.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// x [N,S..,C] in input 0, weight [O,K..,C/groups] in input 1; the result is [N,S'..,O]. Either of i32, and
/// the zero points are in inputs 2 and 3 where there are any; or requantized, with constant signed weights
/// and a known zero point of x.
struct IntegerConv {
  ConvGeometry g;
  bool x_signed = false, weight_signed = false;
  bool has_x_zero = false, has_weight_zero = false;
  bool shared_weight_zero = true;  ///< one for all channels of the result
  const void* constant_weight = nullptr;
  std::optional<Requantization> requantization;
  int32_t known_x_zero = 0;  ///< with requantization
};

/// Whether a convolution of this geometry can be requantized.
Status supports_requantized(const ConvGeometry& g);
/// Each output channel's sum where all of x is x_zero, modulo 2^32; with constant signed weights. [O]
std::vector<int32_t> sums_at_zero_point(const Simd& simd, const IntegerConv& conv, int32_t x_zero);
/// For geometries that have something to compute.
KernelPtr make_conv_integer_gemm(const CpuDevice& device, const IntegerConv& conv);

}  // namespace librt::cpu
