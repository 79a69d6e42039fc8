// Assigns values to shared memory and plans each arena.
//
// Knows: live ranges, aliases, in-place kernels, state updates. Must not know: slabs, devices' functions.
#pragma once

#include "runtime/session/prepare/program.h"

namespace librt {

/// Fills Program::storages, the storage of every value and scratch, arena_bytes; removes the state copies
/// that kernels do in place. Inputs and outputs in host memory, and states, are outside of the arenas
/// (Storage::pin).
void assign_storage(const DeviceSet& devices, Program& program);

/// For each step: bytes of the arenas that hold values which are live while it runs, without its scratch.
std::vector<uint64_t> live_bytes(const Program& program);

}  // namespace librt
