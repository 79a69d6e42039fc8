// Checksums of a model's data that are compared when a session first uses the bytes.
//
// Knows: ranges of bytes and their checksums. Must not know: files beyond their name, devices, threads.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt {

class DataChecks {
 public:
  /// Data of a constant or a state.
  struct Item {
    const std::byte* data;
    const std::string* name;
  };
  /// The constants of a graph and its bodies.
  static void collect(const Graph& graph, std::vector<Item>& items);

  /// Of bytes in memory.
  DataChecks() = default;
  /// Of bytes of a file, which are mapped as `file`.
  DataChecks(std::string path, std::span<const std::byte> file) noexcept
      : path_(std::move(path)), file_(file) {}

  /// Before the first verify(). A range is added once.
  void add(const Blob& blob, uint64_t expected);
  /// Leaves those in `items` that were not compared yet, the largest first.
  void keep_pending(std::vector<Item>& items) const;
  /// Compares the range that begins at `data`, unless that was done before; ok if there is none.
  /// Code::InvalidModel: the bytes differ, or the mapped file was truncated. Any thread.
  Status verify(const std::byte* data) const;
  /// Code::InvalidModel: the mapped file was truncated, so that a read could end in a signal.
  Status verify_size() const;

 private:
  struct Range {
    const std::byte* data;
    size_t size;
    uint64_t expected;
    mutable bool verified;  ///< atomic_ref
  };
  /// Null if no range begins there, or it was compared before.
  const Range* pending(const std::byte* data) const;

  std::vector<Range> ranges_;  ///< by address
  std::string path_;
  std::span<const std::byte> file_;
};

}  // namespace librt
