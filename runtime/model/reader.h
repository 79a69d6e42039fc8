// Reads a .rt file: verifies its bytes, unpacks it, verifies its meaning.
//
// Knows: the container, the schema, the pages' shape rules. Must not know: devices, sessions. A file is never
// trusted: for any bytes the answer is a model that passes graph/verify.h and model/meaning.h, or a Status.
// Errors of the file itself have Code::InvalidModel and name the place: "entry 'infer', node 12 'conv1'
// (Conv), input 1: ...".
#pragma once

#include <string>

#include "runtime/graph/graph.h"
#include "runtime/model/container.h"
#include "runtime/model/limits.h"

namespace rt {

/// From memory; the weights share ownership of `file` (copied once if it is not aligned to 64 bytes). Without
/// an owner in the blob the caller keeps the bytes alive as long as the model.
Result<ModelGraph> read_model(Blob file, const ReadLimits& limits = {});

/// Through a function that reads pieces; each weight gets memory of its own.
Result<ModelGraph> read_model(Source source, const ReadLimits& limits = {});

/// From a file, mapped: the weights stay on disk until they are touched. `mapped`, if not null, receives
/// where it lies while the model lives.
Result<ModelGraph> load_model(const std::string& path, const ReadLimits& limits = {},
                              std::span<const std::byte>* mapped = nullptr);

}  // namespace rt
