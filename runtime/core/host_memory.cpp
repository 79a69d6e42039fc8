#include "runtime/core/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/core/text.h"

namespace librt {

namespace {

/// The number at the start of a file; 0 if there is none.
uint64_t number_in(const char* path) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[32] = {};
  const auto count = read(file, text, sizeof text - 1);
  close(file);
  const char* number = text;
  return count > 0 ? static_cast<uint64_t>(static_cast<int64_t>(take_number(number))) : 0;  // below 2^63
}

uint64_t find() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const uint64_t limit = number_in(path); limit > 0)
      bytes = bytes == 0 ? limit : std::min(bytes, limit);
  return bytes;
}

}  // namespace

uint64_t host_memory_bytes() noexcept {
  static const uint64_t bytes = find();
  return bytes;
}

}  // namespace librt
