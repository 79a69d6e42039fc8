#include "runtime/model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/core/byte_count.h"
#include "runtime/model/container.h"

namespace librt {
namespace {

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

Status failure(const std::string& path, const char* what) {
  const int error = errno;
  return Status::make(error == ENOENT ? Code::NotFound : Code::Io, path, ": ", what, ": ",
                      std::strerror(error));
}

Status open_regular(const std::string& path, Descriptor& file, size_t& size) {
  // O_NONBLOCK: a pipe is refused, and to open it must not wait for a writer.
  file.number = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file.number < 0) return failure(path, "cannot open");
  struct stat info {};
  if (fstat(file.number, &info) != 0) return failure(path, "cannot inspect");
  if (!S_ISREG(info.st_mode)) return Status::make(Code::Io, path, ": not a regular file");
  const auto bytes = static_cast<uint64_t>(info.st_size);
  RT_TRY(check_addressable(bytes).in(path));
  size = static_cast<size_t>(bytes);
  return {};
}

}  // namespace

Result<Blob> map_file(const std::string& path) {
  Descriptor file;
  Blob blob;
  RT_TRY(open_regular(path, file, blob.size));
  if (blob.size == 0) return blob;
  void* address = mmap(nullptr, blob.size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) return failure(path, "cannot map into memory");
  blob.data = static_cast<const std::byte*>(address);
  blob.owner = std::shared_ptr<const void>(address, [size = blob.size](void* start) { munmap(start, size); });
  return blob;
}

Result<Blob> read_file(const std::string& path) {
  Descriptor file;
  size_t size = 0;
  RT_TRY(open_regular(path, file, size));
  RT_ASSIGN(WritableBlob copy, allocate_blob(size));
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(file.number, copy.data + done, size - done);
    if (got > 0)
      done += static_cast<size_t>(got);
    else if (got == 0)
      return Status::make(Code::Io, path, ": the file was truncated while it was read");
    else if (errno != EINTR)
      return failure(path, "cannot read");
  }
  return std::move(copy.blob);
}

}  // namespace librt
