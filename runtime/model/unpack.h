// From a verified FlatBuffer (schema/model.fbs) to a ModelGraph.
//
// Knows: the schema. Must not know: files, what operators mean. Checks only what is needed to read the buffer
// safely; the structure is verified afterwards (graph/verify.h).
#pragma once

#include <functional>

#include "runtime/graph/graph.h"
#include "runtime/model/limits.h"
#include "schema/model_generated.h"

namespace librt {

namespace file = ::rt::file;  ///< generated, in the namespace of schema/model.fbs

/// The bytes of a segment by its index in the file; called at most once per segment.
using FetchSegment = std::function<Result<Blob>(const file::Segment& segment)>;

/// The verifier must have accepted the buffer. Errors name the entry, node or value.
Result<ModelGraph> unpack_model(const file::Model& model, const ReadLimits& limits,
                                const FetchSegment& fetch);

}  // namespace librt
