// The only writer of .rt files.
//
// Knows: the schema and the container (runtime/model/format.h). Must not know: ONNX, passes. The same model
// gives the same bytes; equal weights are stored once; the weights are streamed, so their total size has no
// limit but the disk's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// Writes to a file next to `path` and renames it: after an error the old file is still there and no partial
/// one. The model must pass verify().
Status write_model(const ModelGraph& model, const std::string& path);

/// The bytes of the file, for tests and for embedding.
Result<std::vector<std::byte>> serialize_model(const ModelGraph& model);

}  // namespace librt::compiler
