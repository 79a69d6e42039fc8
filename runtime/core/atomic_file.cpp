#include "runtime/core/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
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
constexpr int kNames = 32;                         // more processes than that do not write one file at once

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

std::string temporary_name(const std::string& path, int number) {
  return text(path, ".partial-", number);
}

/// Whether `name` is still the file that the descriptor is open on.
bool is_named(int descriptor, const std::string& name) {
  struct stat here {};
  struct stat there {};
  return fstat(descriptor, &here) == 0 && lstat(name.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

}  // namespace

Code code_of_errno(int error) noexcept {
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
    case EEXIST: return Code::Io;
    default: return Code::Device;
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());  // while it is locked
  if (descriptor_ >= 0) close(descriptor_);
}

Status AtomicFile::failure(const char* what) const {
  const int error = errno;
  return Status::make(code_of_errno(error), path_, ": cannot ", what, ": ", std::strerror(error));
}

/// A new file of this number, locked; false if there is one already, or it cannot be created (errno).
bool AtomicFile::create(int number) {
  temporary_ = temporary_name(path_, number);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    temporary_.clear();  // not created by us
    return false;
  }
  // Another writer may have taken it for a leftover between the two calls. Where there are no locks, none is
  // ever taken for one.
  const bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  if (locked && is_named(descriptor_, temporary_)) return true;
  close(descriptor_);
  descriptor_ = -1;
  temporary_.clear();
  errno = EEXIST;
  return false;
}

/// Removes the file of this number if no process writes it.
void AtomicFile::remove_leftover(int number) const {
  const std::string name = temporary_name(path_, number);
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat info {};
  if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_named(descriptor, name))
    unlink(name.c_str());
  close(descriptor);
}

Status AtomicFile::open() {
  if (char* const target = realpath(path_.c_str(), nullptr); target != nullptr) {
    path_ = target;
    std::free(target);
  }
  struct stat existing {};
  const bool exists = stat(path_.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) return failure("inspect it");  // a pipe must not be replaced
  if (exists && !S_ISREG(existing.st_mode) && !S_ISDIR(existing.st_mode)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor_ >= 0 ? Status() : failure("open it for writing");
  }
  for (int number = 0; number < kNames; ++number) remove_leftover(number);
  for (int number = 0; number < kNames; ++number) {
    if (create(number)) return {};
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
  // Closing releases the lock, so the file gets its name first.
  if (!in_place && std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return failure("rename the finished file");
  temporary_.clear();
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0) return failure("close");
  if (in_place) return {};
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failure("open its folder");
  const bool flushed = fsync(folder) == 0 || errno == EINVAL;  // some file systems cannot flush a folder
  Status status = flushed ? Status() : failure("flush its folder");
  close(folder);
  return status;
}

}  // namespace librt
