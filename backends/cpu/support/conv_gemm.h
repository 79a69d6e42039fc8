// Convolutions and their gradients in own loops: as GEMMs whose panels are gathered from the image's windows
// (im2col, never in memory as a whole), and depthwise ones channel by channel.
//
// Knows: f32, channels-last, every kernel, stride, dilation, padding and group count. Must not know: nodes.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// The convolution (OpKind::Conv; inputs x and weight), its data gradient (OpKind::ConvTranspose; grad_output
/// and weight) or its weight gradient (OpKind::ConvWeightGrad; x and grad_output), all dense and not empty,
/// and the epilogue as a pass over the result. constant_weight: the bytes of input 1 where that is a weight
/// and known.
KernelPtr make_conv_gemm(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry,
                         const void* constant_weight, const Finish& finish, const EpilogueInputs& inputs);

/// The same result by plain loops, in one thread: multiplies nothing that lies outside of an image, so that
/// infinities and NaN in one operand meet no zero of the padding.
void convolve_plainly(OpKind kind, const ConvGeometry& geometry, const float* first, const float* second,
                      float* result) noexcept;

}  // namespace librt::cpu
