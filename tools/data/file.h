// Bytes from a file and to a file, for every format that the programs read and write.
//
// Knows: regular files, pipes and devices, their limits. Must not know: formats.
//
// Limits: a regular file may have half of the machine's memory, and less where its format says so; a pipe or
// a device kLargestStream. What exceeds them is Code::OutOfMemory, before memory is taken for it. Errors of a
// disk are Code::Device; others, such as a missing file, Code::NotFound or Code::Io.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace librt::tools {

using Bytes = std::vector<std::byte>;

inline constexpr size_t kLargestStream = size_t{1} << 30;
/// A pipe that no process has opened for writing is an error after this time.
inline constexpr int kSecondsWithoutWriter = 5;

/// Half of the machine's memory.
size_t largest_file() noexcept;

/// An open file; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int number() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// A file, pipe or character device from its beginning, for readers that can stop before its end.
class FileStream {
 public:
  static Result<FileStream> open(const std::string& path);

  bool is_regular() const noexcept { return is_regular_; }
  size_t size() const noexcept { return size_; }  ///< that a regular file says it has
  /// Reads at least one byte, unless it is at its end: 0. to: not empty.
  Result<size_t> read(std::span<std::byte> to);
  /// The error that a pipe or device gives more than `limit`.
  Status too_much(size_t limit) const;

 private:
  std::string path_;
  Descriptor file_;
  size_t size_ = 0;
  bool is_regular_ = false, is_pipe_ = false, has_writer_ = false;
};

/// The largest size of a file that begins with `head` (kHeadBytes, or the whole file if it is shorter).
using LimitOf = size_t (*)(std::span<const std::byte> head);
inline constexpr size_t kHeadBytes = 16;

/// The whole file, pipe or character device.
Result<Bytes> read_file(const std::string& path, size_t limit = largest_file());
Result<Bytes> read_file(const std::string& path, LimitOf limit_of);
/// For readers that move in the file: anything but a regular file is refused, without waiting.
Result<Descriptor> open_regular(const std::string& path);
/// The first bytes of a regular file, at most kHeadBytes; empty if it cannot be read.
Bytes head_of(const std::string& path);

/// Replaces the file when all is written (runtime/core/atomic_file.h).
Status write_file(const std::string& path, std::span<const std::byte> bytes);

/// The error of a call of the system: "where: what: No space left on device". error: a value of errno.
Status system_error(const std::string& where, const char* what, int error);
/// The error that `bytes` of `what` exceed `limit`.
Status too_large(const std::string& where, std::string_view what, uint64_t bytes, size_t limit);
/// Text from a file for a message: quoted, cut to 60 bytes, control characters as '?'.
std::string in_quotes(std::string_view text);

}  // namespace librt::tools
