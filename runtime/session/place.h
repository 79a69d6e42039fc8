// Gives every step its kernel and every value its place: which row, which layout, which memory space.
//
// Knows: layouts, kernels, copies between memory spaces. Must not know: where in memory a value will lie.
#pragma once

#include "runtime/session/program.h"

namespace rt {

struct LegalizeRequest;

/// Works on a program whose steps have candidates. Creates the kernels, in order, and puts reorders,
/// transfers and copies between the steps: an output is dense and no input or state of the session itself; a
/// state's update is a copy at the end (assign_storage() drops those that a kernel can do in place).
Status place_steps(const LegalizeRequest& request, Program& program);

}  // namespace rt
