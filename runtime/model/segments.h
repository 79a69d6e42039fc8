// Lays out the segments of a file to be written: identical bytes stored once, each on a 64-byte boundary; and
// writes the whole container.
//
// Knows: the container's layout. Must not know: what the FlatBuffer contains. Used by the checkpoint and by
// the compiler's writer.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/model/format.h"

namespace librt {

/// FlatBuffers offsets are signed 32-bit.
inline constexpr uint64_t kLargestGraph = (uint64_t{1} << 31) - (uint64_t{1} << 20);

struct SegmentRange {
  uint64_t offset = 0;  ///< from the start of the data area
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

class SegmentTable {
 public:
  /// The index of the segment with these bytes; the blob must stay alive until the file is written.
  uint32_t add(const Blob& blob);
  std::span<const SegmentRange> ranges() const noexcept { return ranges_; }
  uint64_t bytes() const noexcept { return end_; }
  const Blob& blob(size_t index) const noexcept { return blobs_[index]; }

 private:
  std::vector<SegmentRange> ranges_;
  std::vector<Blob> blobs_;
  /// By checksum: an index; of blobs with the same one, or of one with a checksum that follows, the next free
  /// number. The key's type is that of a recording's slots, whose code this shares.
  std::map<std::pair<const void*, uint64_t>, uint32_t> by_checksum_;
  uint64_t end_ = 0;
};

/// Receives the bytes of a file sequentially.
using ByteSink = std::function<Status(const void* bytes, size_t size)>;

/// Header, FlatBuffer, segments.
Status write_container(const std::array<uint8_t, 8>& magic, std::span<const uint8_t> graph,
                       const SegmentTable& segments, const ByteSink& sink);

}  // namespace librt
