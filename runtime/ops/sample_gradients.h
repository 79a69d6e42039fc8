// Gradients of operators that sample images, written with gathers, scatters and matmuls.
//
// Knows: the emitter. Must not know: how the operators compute.
#pragma once

#include "runtime/ops/page.h"

namespace librt::ops {

void grid_sample_gradient(GradContext& context);
void resize_gradient(GradContext& context);

}  // namespace librt::ops
