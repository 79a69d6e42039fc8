// Opens the container that .rt files and checkpoints share: header, FlatBuffer, segments.
//
// Knows: bytes, ranges, checksums. Must not know: graphs, tensors. For any bytes, every result is a Status or
// a range inside the source.
#pragma once

#include <functional>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/model/format.h"

namespace librt {

/// Bytes that are read on demand: from an archive, an encrypted file, an application's asset.
struct Source {
  uint64_t bytes = 0;
  /// Fills `destination` with `size` bytes from `offset`; only called for ranges inside `bytes`.
  std::function<Status(uint64_t offset, size_t size, void* destination)> read;
};

/// Uninitialized memory aligned to 64 bytes; Code::OutOfMemory.
struct WritableBlob {
  Blob blob;
  std::byte* data = nullptr;
};
Result<WritableBlob> allocate_blob(size_t size);

class Container {
 public:
  /// From memory, without a copy unless the bytes are not aligned to 64; segments share ownership of them.
  static Result<Container> open(Blob file, const std::array<uint8_t, 8>& magic);
  /// Through a source: the FlatBuffer now, each segment on demand.
  static Result<Container> open(Source source, const std::array<uint8_t, 8>& magic);

  /// The FlatBuffer; its checksum has been verified, its structure has not.
  const Blob& graph() const noexcept { return graph_; }
  /// A range of the data area: aligned and inside the file, or Code::InvalidModel.
  Result<Blob> segment(uint64_t offset, uint64_t bytes) const;

 private:
  Status read_header(const std::array<uint8_t, 8>& magic);
  Result<Blob> range(uint64_t offset, uint64_t bytes) const;

  Blob file_;      ///< either this
  Source source_;  ///< or this
  uint64_t size_ = 0;
  FileHeader header_;
  Blob graph_;
};

}  // namespace librt
