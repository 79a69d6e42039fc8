// TensorBoard's event files: scalars over steps.
//
// Format: TFRecords (u64 length, masked CRC-32C of it, data, masked CRC-32C of the data), each an Event
// message of tensorflow/core/util/event.proto.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rt/rt.hpp"

namespace rt::train {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

class EventFile {
 public:
  /// A new file in `folder`, which is created if missing.
  static rt::Result<EventFile> create(const std::string& folder);
  rt::Status scalar(std::string_view tag, double value, uint64_t step);
  rt::Status flush();

 private:
  EventFile(std::FILE* file, std::string path) : file_(file, std::fclose), path_(std::move(path)) {}
  rt::Status record(std::string_view event);
  rt::Status failure() const;

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::string path_;
};

}  // namespace rt::train
