// A file that appears complete or not at all.
//
// Written next to its destination under a temporary name, then flushed to disk, renamed over the destination,
// and the folder flushed: after a crash or a full disk either the old file or the new one exists, never a
// partial one. A symbolic link to a file stays, and that file is replaced. What is no regular file, such
// as a pipe or /dev/null, is written to as it is.
//
// The temporary names are FILE.partial-0, FILE.partial-1, ...; a writer holds a lock (flock) on its own. One
// without a lock is left from a killed process: the next writer of FILE removes it.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/core/status.h"

namespace librt {

/// Code::Io where the caller can name another path (no such folder, no permission), else Code::Device: the
/// machine is at fault, such as a full or broken disk. error: a value of errno.
Code code_of_errno(int error) noexcept;

class AtomicFile {
 public:
  explicit AtomicFile(std::string path) : path_(std::move(path)) {}
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless it was committed.
  ~AtomicFile();

  /// Errors of all three: by code_of_errno().
  Status open();
  Status write(const void* bytes, size_t size);
  /// Nothing may be written after this.
  Status commit();

 private:
  Status failure(const char* what) const;
  bool create(int number);
  void remove_leftover(int number) const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace librt
