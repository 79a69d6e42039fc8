// Large batches in slices: steps whose values exceed the caches run for some samples at a time.
//
// Knows: which operators compute each sample by itself, sizes of values. Must not know: kernels, addresses.
#pragma once

#include "runtime/session/prepare/legalize.h"

namespace librt {

/// Replaces a run of steps by the same steps for each slice of the first axis, where that keeps values in the
/// caches (DeviceInfo::cache_bytes) that would else go to memory and back. Slices of what the run reads are
/// aliases; a Concat joins what others read of it, in place where kernels can. For devices whose memory is
/// the host's, and graphs without state updates. Before kernels are chosen.
Status slice_batch(const LegalizeRequest& request, Program& program);

}  // namespace librt
