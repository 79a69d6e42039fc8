// What the FlatBuffers verifier leaves open: fields and enum values that this build does not know, and the
// alignment of vector elements. Operators' attributes: attributes.h.
//
// Knows: the generated type tables. Must not know: what any field means. A field that a newer version added
// and set would otherwise be dropped without a word, and the model computed wrongly.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "runtime/core/status.h"

namespace rt {

/// The table's own fields; the tables that it refers to are left to their own call. The verifier has accepted
/// the buffer.
Status check_table(const void* table, const flatbuffers::TypeTable& type);

}  // namespace rt
