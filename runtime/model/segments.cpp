#include "runtime/model/segments.h"

#include <cstring>

namespace librt {

uint32_t SegmentTable::add(const Blob& blob) {
  const uint64_t sum = checksum(blob.data, blob.size);
  const auto index = static_cast<uint32_t>(ranges_.size());
  for (uint64_t key = sum;; ++key) {
    const auto [known, added] = by_checksum_.try_emplace({nullptr, key}, index);
    if (added) break;
    const Blob& other = blobs_[known->second];
    if (other.size == blob.size &&
        (other.data == blob.data || std::memcmp(other.data, blob.data, blob.size) == 0))
      return known->second;
  }
  const uint64_t offset = align_up(end_);
  ranges_.push_back({offset, blob.size, sum});
  blobs_.push_back(blob);
  end_ = offset + blob.size;
  return index;
}

Status write_container(const std::array<uint8_t, 8>& magic, std::span<const uint8_t> graph,
                       const SegmentTable& segments, const ByteSink& sink) {
  FileHeader header;
  header.magic = magic;
  header.graph_offset = sizeof(FileHeader);
  header.graph_bytes = graph.size();
  header.data_offset = align_up(header.graph_offset + header.graph_bytes);
  header.file_bytes = header.data_offset + segments.bytes();
  header.graph_checksum = checksum(graph.data(), graph.size());
  header.header_checksum = checksum(&header, kCheckedHeaderBytes);
  static constexpr std::byte kZeros[kFileAlignment] = {};
  RT_TRY(sink(&header, sizeof header));
  RT_TRY(sink(graph.data(), graph.size()));
  RT_TRY(sink(kZeros, static_cast<size_t>(header.data_offset - header.graph_offset - header.graph_bytes)));
  uint64_t at = 0;
  for (size_t i = 0; i < segments.ranges().size(); ++i) {
    const SegmentRange& range = segments.ranges()[i];
    RT_TRY(sink(kZeros, static_cast<size_t>(range.offset - at)));
    RT_TRY(sink(segments.blob(i).data, static_cast<size_t>(range.bytes)));
    at = range.offset + range.bytes;
  }
  return {};
}

}  // namespace librt
