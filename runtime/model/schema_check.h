// Checks beyond the FlatBuffers verifier: fields and enum values that this build does not know, and the
// alignment of vector elements. Operators' attributes: attributes.h.
//
// Knows: the generated type tables. Must not know: what any field means. A field added and set by a newer
// version would otherwise be silently dropped, and the model computed wrongly.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "runtime/core/status.h"

namespace librt {

/// The table's own fields; referenced tables need their own call. The verifier must have accepted the buffer.
Status check_table(const void* data, const flatbuffers::TypeTable& type);

}  // namespace librt
