// quantized_conv.winograd: our own Winograd convolution F(2x2, 3x3) of 8-bit integers with constant weights,
// exact as the GEMM is; for CPUs without dot products of bytes, which multiply four times as many in the
// time.
#pragma once

#include "backends/cpu/support/conv_integer_gemm.h"

namespace librt::cpu {

/// Whether it computes this convolution, and pays.
Status supports_integer_winograd(const CpuDevice& device, const ConvGeometry& geometry);
/// `conv` has a requantization.
KernelPtr make_integer_winograd(const CpuDevice& device, const IntegerConv& conv);

}  // namespace librt::cpu
