// DLPack's capsules, in and out.
//
// Knows: Python's side of the protocol: names of capsules, versions. Must not know: what is in a tensor,
// which librt reads and writes.
#pragma once

#include <nanobind/nanobind.h>

#include "rt/dlpack.hpp"

namespace rt::python {

/// Takes the tensor out of what __dlpack__ returned; null if that is no capsule with one.
Dlpack taken_from(nanobind::handle capsule);

/// The memory of `owner`, a librt.Tensor, as a capsule. options: the arguments of __dlpack__ except `copy`.
nanobind::object capsule_of(nanobind::handle owner, const rt_tensor& tensor, const nanobind::dict& options);

}  // namespace rt::python
