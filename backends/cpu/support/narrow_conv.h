// Which convolutions take the loops of simd/narrow_conv.h, their windows and split among threads.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Of f32, channels-last, to few channels: a Conv with long lines of taps in its windows, or a ConvTranspose
/// whose windows lie side by side. geometry: of a ConvTranspose, that of the convolution of which it is the
/// data gradient.
Status supports_narrow_conv(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry);
/// Multiplies nothing that lies outside of an image. constant_weight: the bytes of input 1 where they are
/// known.
KernelPtr make_narrow_conv(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry,
                           const void* constant_weight, const Finish& finish, const EpilogueInputs& inputs);

}  // namespace librt::cpu
