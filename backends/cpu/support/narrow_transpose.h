// Which transposed convolutions take the loops of simd/narrow_conv.h, and how.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Of f32, channels-last, to few channels from many. geometry: that of the convolution of which it is the
/// data gradient.
Status supports_narrow_transpose(const CpuDevice& device, const ConvGeometry& geometry);
/// Multiplies nothing that lies outside of an image. constant_weight: the bytes of input 1 where they are
/// known.
KernelPtr make_narrow_transpose(const CpuDevice& device, const ConvGeometry& geometry,
                                const void* constant_weight, const Finish& finish,
                                const EpilogueInputs& inputs);

}  // namespace librt::cpu
