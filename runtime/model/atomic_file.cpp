#include "runtime/model/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace librt {
namespace {
constexpr size_t kLargestWrite = size_t{1} << 30;  // Linux writes at most 2 GiB per call
constexpr int kAttempts = 100;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}
/// The caller can name another path; else the machine is at fault, such as a full disk.
bool is_about_the_path(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case ETXTBSY:
    case EEXIST: return true;
    default: return false;
  }
}
}  // namespace

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status AtomicFile::failure(const char* what) const {
  const int error = errno;
  return Status::make(is_about_the_path(error) ? Code::Io : Code::Device, path_, ": cannot ", what, ": ",
                      std::strerror(error));
}

Status AtomicFile::open() {
  if (char* const target = realpath(path_.c_str(), nullptr); target != nullptr) {
    path_ = target;
    std::free(target);
  }
  struct stat existing {};
  if (stat(path_.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode) && !S_ISDIR(existing.st_mode)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor_ >= 0 ? Status() : failure("open it for writing");
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    temporary_ = text(path_, ".partial-", static_cast<long>(getpid()), "-", attempt);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return {};
    temporary_.clear();  // not created by us
    if (errno != EEXIST) break;
  }
  return failure("create a file beside it");
}

Status AtomicFile::write(const void* bytes, size_t size) {
  const auto* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, next, std::min(size, kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure("write");
    next += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

Status AtomicFile::commit() {
  const bool in_place = temporary_.empty();
  if (fsync(descriptor_) != 0 && !(in_place && (errno == EINVAL || errno == EROFS)))
    return failure("flush to the disk");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0) return failure("close");
  if (in_place) return {};
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failure("rename the finished file");
  temporary_.clear();
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failure("open its folder");
  const bool flushed = fsync(folder) == 0 || errno == EINVAL;  // some file systems cannot flush a folder
  Status status = flushed ? Status() : failure("flush its folder");
  close(folder);
  return status;
}

}  // namespace librt
