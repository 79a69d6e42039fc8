// conv.winograd: our own Winograd convolution with constant weights: F(4x4, 3x3), and F(4, 3) along one axis.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Whether it computes this convolution with finite weights, and pays.
Status supports_winograd_tiles(const ConvGeometry& geometry);
/// Code::Unsupported where a weight is not finite.
Result<KernelPtr> make_winograd_tiles(const CpuDevice& device, const ConvGeometry& geometry,
                                      const float* weight, const Finish& finish,
                                      const EpilogueInputs& inputs);

}  // namespace librt::cpu
