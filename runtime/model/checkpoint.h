// A checkpoint file: named state tensors, text, and opaque bytes, in one file that is written atomically.
//
// Knows: the container and schema/checkpoint.fbs. Must not know: models, sessions, what the bytes mean; the
// caller compares the names, types and shapes with its model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt {

struct Checkpoint {
  std::string producer;
  std::vector<State> tensors;  ///< `initial` holds the value; never empty for a tensor that has elements
  std::vector<std::pair<std::string, std::string>> metadata;  ///< keys are unique, like all names here
  std::vector<std::pair<std::string, Blob>> opaque;

  const State* tensor(std::string_view name) const noexcept;
  const std::string* text(std::string_view key) const noexcept;
  const Blob* bytes(std::string_view name) const noexcept;
};

/// Temporary file, flush, rename, flush of the folder: after any failure the previous checkpoint still
/// exists. Code::InvalidArgument if `path` is a model's file, which is never replaced.
Status write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Verifies everything, including the checksums of all bytes. The bytes stay mapped and are owned by the
/// blobs. Code::InvalidModel names the damaged tensor or part.
Result<Checkpoint> read_checkpoint(const std::string& path);
/// From memory.
Result<Checkpoint> read_checkpoint(Blob file);

}  // namespace librt
