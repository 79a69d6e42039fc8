// ConvInteger on the own GEMM of 8-bit integers, or channel by channel where it is depthwise.
#pragma once

#include "backends/cpu/kernel.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// x [N,S..,C] in input 0, weight [O,K..,C/groups] in input 1, their zero points in inputs 2 and 3 where they
/// have them; the result is i32 [N,S'..,O].
struct IntegerConv {
  ConvGeometry g;
  bool x_signed = false, weight_signed = false;
  bool has_x_zero = false, has_weight_zero = false;
  bool shared_weight_zero = true;  ///< one for all channels of the result
  const void* constant_weight = nullptr;
};

bool is_depthwise(const ConvGeometry& g) noexcept;
/// For geometries that have something to compute; not depthwise ones need IntegerBlocks::usable().
KernelPtr make_conv_integer_gemm(const CpuDevice& device, const IntegerConv& conv);

}  // namespace librt::cpu
