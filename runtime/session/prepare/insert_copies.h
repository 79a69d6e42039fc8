// Assigns a kernel to every step and a placement to every value: which row, which layout, which memory space.
//
// Knows: layouts, kernels, copies between memory spaces. Must not know: memory addresses of values.
#pragma once

#include "runtime/session/prepare/program.h"

namespace librt {

struct LegalizeRequest;

/// Works on a program whose steps have candidates. Creates the kernels, in order, and inserts reorders,
/// transfers and copies between the steps: an output is dense and never itself an input or state of the
/// session; a state update is a copy at the end (assign_storage() removes those that a kernel can do in
/// place).
Status insert_copies(const LegalizeRequest& request, Program& program);

}  // namespace librt
