// Which convolutions take the loops of simd/streamed_conv.h, their packed weights and split among threads.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Conv with constant weights at so few positions that reading the weights takes much of the time.
Status supports_streamed_conv(const CpuDevice& device, const ConvGeometry& geometry);
/// weight [O,K..,C] and the epilogue of the node; x, the residual and the result are in `layout`, dense or
/// kBlocked16. Refuses weights that are not
/// finite where windows are padded: they would be multiplied by 0.
Result<KernelPtr> make_streamed_conv(const CpuDevice& device, const ConvGeometry& geometry,
                                     const float* weight, const op::EpilogueAttributes* epilogue,
                                     const EpilogueInputs& inputs, LayoutId layout);

}  // namespace librt::cpu
