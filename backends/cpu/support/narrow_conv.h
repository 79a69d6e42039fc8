// Which convolutions take the loops of simd/narrow_conv.h, their windows and split among threads.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Conv of f32, channels-last, with few channels in the result and long lines of taps in its windows.
Status supports_narrow_conv(const CpuDevice& device, const ConvGeometry& geometry);
/// Multiplies nothing that lies outside of an image.
KernelPtr make_narrow_conv(const CpuDevice& device, const ConvGeometry& geometry, const Finish& finish,
                           const EpilogueInputs& inputs);

/// ConvTranspose of f32, channels-last, whose windows lie side by side, to few channels; geometry: that of
/// the convolution of which it is the data gradient.
Status supports_narrow_upsampling(const CpuDevice& device, const ConvGeometry& geometry);
/// constant_weight: the bytes of input 1 where that is known.
KernelPtr make_narrow_upsampling(const CpuDevice& device, const ConvGeometry& geometry,
                                 const void* constant_weight, const Finish& finish,
                                 const EpilogueInputs& inputs);

}  // namespace librt::cpu
