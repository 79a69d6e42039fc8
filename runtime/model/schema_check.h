// What the FlatBuffers verifier leaves open: fields and enum values that this build does not know, the
// alignment of vector elements, and the length of attribute lists.
//
// Knows: the generated type tables. Must not know: what any field means. A field that a newer version added
// and set would otherwise be dropped without a word, and the model computed wrongly.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "runtime/core/status.h"

namespace rt {

/// Attribute lists (strides, axes, permutations) are short.
inline constexpr size_t kMaxAttributeLength = 256;

/// The table's own fields; the tables that it refers to are left to their own call. The verifier has accepted
/// the buffer.
Status check_table(const void* table, const flatbuffers::TypeTable& type);
/// The table of an operator with the tables inside it.
Status check_attributes(const void* table, const flatbuffers::TypeTable& type);

}  // namespace rt
