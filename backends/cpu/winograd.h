// Convolutions with weights that change from run to run, by Winograd's tiles, in loops of our own.
//
// Knows: which convolutions simd/winograd.h can do and pays for, scratch, the split among threads. Must not
// know: graphs.
#pragma once

#include "backends/cpu/kernel.h"
#include "runtime/graph/geometry.h"

namespace rt::cpu {

/// Why not, if not: f32 windows of 3x3 with stride 1, channels in multiples of 64, padding of at most 1, and
/// images so few and small that reading the weights is much of the work.
Status supports_winograd_cached(const CpuDevice& device, const ConvGeometry& geometry);

/// The convolution (OpKind::Conv; inputs x and weight), the gradient of its data (OpKind::ConvTranspose;
/// grad_output and weight) or of its weight (OpKind::ConvWeightGrad; x and grad_output). All dense.
KernelPtr make_winograd_cached(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry);

}  // namespace rt::cpu
