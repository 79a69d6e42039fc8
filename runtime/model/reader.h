// Reads a .rt file: verifies its bytes, unpacks it, verifies its semantics.
//
// Knows: the container, the schema, the pages' shape rules. Must not know: devices, sessions. A file is never
// trusted: for any bytes the result is a model that passes graph/verify.h and model/meaning.h, or a Status.
// Errors of the file itself have Code::InvalidModel and name the location: "entry 'infer', node 12 'conv1'
// (Conv), input 1: ...".
#pragma once

#include <string>

#include "runtime/graph/graph.h"
#include "runtime/model/container.h"
#include "runtime/model/limits.h"

namespace librt {

/// From memory; the weights share ownership of `file` (copied once if it is not aligned to 64 bytes). If the
/// blob has no owner, the caller keeps the bytes alive as long as the model.
Result<ModelGraph> read_model(Blob file, const ReadLimits& limits = {});

/// Through a callback that reads ranges; each weight gets its own memory.
Result<ModelGraph> read_model(Source source, const ReadLimits& limits = {});

/// From a file, mapped: weights are read from disk on first access. copy: read into memory instead; then
/// nothing that happens to the file afterwards matters. `mapped`, if not null, receives the mapped range,
/// valid while the model lives.
Result<ModelGraph> load_model(const std::string& path, const ReadLimits& limits = {}, bool copy = false,
                              std::span<const std::byte>* mapped = nullptr);

}  // namespace librt
