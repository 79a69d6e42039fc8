// Which convolutions take the loops of simd/narrow_conv.h, their windows and split among threads.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Of f32, channels-last, to few channels, with long lines of taps in the windows.
Status supports_narrow_conv(const CpuDevice& device, const ConvGeometry& geometry);
/// Multiplies nothing that lies outside of an image.
KernelPtr make_narrow_conv(const CpuDevice& device, const ConvGeometry& geometry, const Finish& finish,
                           const EpilogueInputs& inputs);

}  // namespace librt::cpu
