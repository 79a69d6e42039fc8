// Opens the container that .rt files and checkpoints share: header, FlatBuffer, segments.
//
// Knows: bytes, ranges, checksums. Must not know: graphs, tensors. Whatever the bytes are, every answer is a
// Status or lies inside the source.
#pragma once

#include <functional>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/model/format.h"

namespace rt {

/// Bytes that are fetched piece by piece: from an archive, an encrypted file, an asset of an application.
struct Source {
  uint64_t bytes = 0;
  /// Fills `destination` with `size` bytes from `offset`; only ranges inside `bytes` are asked for.
  std::function<Status(uint64_t offset, size_t size, void* destination)> read;
};

/// Uninitialised memory on a 64-byte boundary; Code::OutOfMemory.
struct WritableBlob {
  Blob blob;
  std::byte* data = nullptr;
};
Result<WritableBlob> allocate_blob(size_t size);

class Container {
 public:
  /// From memory, without a copy unless the bytes are not aligned to 64; segments share ownership of them.
  static Result<Container> open(Blob file, const std::array<uint8_t, 8>& magic);
  /// Through a source: the FlatBuffer now, each segment when it is asked for.
  static Result<Container> open(Source source, const std::array<uint8_t, 8>& magic);

  /// The FlatBuffer; its checksum has been compared, its structure has not been verified.
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

}  // namespace rt
