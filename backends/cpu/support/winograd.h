// Winograd convolutions for weights that change from run to run, in our own loops.
//
// Knows: which convolutions simd/winograd.h supports and pays for, scratch, the split among threads. Must not
// know: graphs.
#pragma once

#include "backends/cpu/kernel.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Only f32 windows of 3x3 with stride 1, channels in multiples of 64, padding of at most 1, and images so
/// few and small that reading the weights is much of the work; the error gives the reason otherwise.
Status supports_winograd_cached(const CpuDevice& device, const ConvGeometry& geometry);

/// The convolution (OpKind::Conv; inputs x and weight), its data gradient (OpKind::ConvTranspose; grad_output
/// and weight) or its weight gradient (OpKind::ConvWeightGrad; x and grad_output). All dense.
KernelPtr make_winograd_cached(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry);

}  // namespace librt::cpu
