// Files in the cache folder. Anything may lie where such a file is expected: a link to another file, a pipe,
// a device, a file of another user, one of a terabyte, one whose lock is held for ever.
//
// Knows: how to open, read, lock and replace such files. Must not know: what is in them. Only absolute paths
// and regular files of this user are used, never through a symbolic link, and no call waits for long. A file
// that is refused stays as it is, unless it is replaced: then the new file takes its name. Callers go on
// without the cache and report the status, whose message names the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/status.h"

namespace librt {

inline constexpr uint64_t kLargestCacheFile = uint64_t{256} << 20;
/// Of lines, which take several times as much memory as in the file.
inline constexpr uint64_t kLargestCacheText = uint64_t{16} << 20;
inline constexpr std::chrono::milliseconds kLongestLockWait{10'000};

/// An open file, which is closed, and its lock released, at the end. number -1: none.
class CacheFile {
 public:
  explicit CacheFile(int number = -1) noexcept : number_(number) {}
  CacheFile(CacheFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  CacheFile& operator=(CacheFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~CacheFile();
  int number() const noexcept { return number_; }

 private:
  int number_;
};

// Errors of all functions: Code::NotFound if there is no such file, Code::OutOfMemory, else Code::Io.

/// For reading.
Result<CacheFile> open_cache_file(const std::string& path, uint64_t most_bytes = kLargestCacheFile);
/// The whole file.
Result<std::string> read_cache_file(const std::string& path, uint64_t most_bytes = kLargestCacheFile);
/// A new, empty file beside `path`, whose name cannot be foreseen, to be renamed to `path`; `name` receives
/// its path. Creates missing folders. For writing.
Result<CacheFile> create_beside(const std::string& path, std::string& name);
/// Replaces the file: a reader sees the old or the new one.
Status write_cache_file(const std::string& path, std::string_view bytes);
/// For reading and appending lines, by one process at a time; is created, like missing folders.
Result<CacheFile> lock_cache_file(const std::string& path, std::chrono::milliseconds wait = kLongestLockWait);

}  // namespace librt
