// Reads attributes from a file: from the FlatBuffers table of an operator to its struct.
//
// Knows: FlatBuffers' layout and the list of fields (graph/attributes.h). Must not know: what a field means.
// The bounds of the bytes were verified before, with the whole file, through op::VerifyOp, which is defined
// here.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "runtime/core/status.h"
#include "runtime/graph/op.h"

namespace librt {

/// Attribute lists (strides, axes, permutations) are short.
inline constexpr size_t kMaxAttributeLength = 256;
inline constexpr size_t kMaxAttributeBytes = 4096;  ///< of a text

/// Rejects fields and enum values that this build does not know, and lists and texts that are misaligned or
/// too long.
Result<OpAttributes> read_attributes(const flatbuffers::Table& table, OpKind kind);

}  // namespace librt
