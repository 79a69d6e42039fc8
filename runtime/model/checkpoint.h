// A checkpoint file: named state tensors, text, and opaque bytes, in one file that is there completely or not
// at all.
//
// Knows: the container and schema/checkpoint.fbs. Must not know: models, sessions, what the bytes mean; the
// caller compares the names, types and shapes with its model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt {

struct Checkpoint {
  std::string producer;
  std::vector<State>
      tensors;  ///< `initial` holds the value and is never empty for a tensor that has elements
  std::vector<std::pair<std::string, std::string>> metadata;  ///< keys are unique, as all names here are
  std::vector<std::pair<std::string, Blob>> opaque;

  const State* tensor(std::string_view name) const noexcept;
  const std::string* text(std::string_view key) const noexcept;
  const Blob* bytes(std::string_view name) const noexcept;
};

/// Side file, flush, rename, flush of the folder: after any failure the checkpoint that was there is still
/// there.
Status write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Verifies everything, the checksums of all bytes too. The bytes stay mapped and are owned by the blobs.
/// Code::InvalidModel names the tensor or part that is damaged.
Result<Checkpoint> read_checkpoint(const std::string& path);
/// From memory.
Result<Checkpoint> read_checkpoint(Blob file);

}  // namespace rt
