#include "runtime/core/cache_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace librt {
namespace {

Status failure(const std::string& path, const char* what) {
  const int error = errno;
  return Status::make(error == ENOENT ? Code::NotFound : Code::Io, path, ": cannot ", what, ": ",
                      std::strerror(error));
}

Status refusal(const std::string& path, const char* found) {
  return Status::make(Code::Io, path, ": expected a regular file of this user, found ", found,
                      "; it is not used");
}

Status check_absolute(const std::string& path) {
  if (path.starts_with('/')) return {};
  return Status::make(Code::Io, path, ": expected an absolute path of the cache folder");
}

/// Creates the folders of a path that are missing, for this user only. What cannot be created shows when the
/// file is opened.
void create_folders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    mkdir(path.substr(0, end).c_str(), 0700);
}

/// O_NONBLOCK: to open a pipe must not wait.
Result<CacheFile> open_regular(const std::string& path, int flags, uint64_t most_bytes) {
  RT_TRY(check_absolute(path));
  CacheFile file(open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  if (file.number() < 0) {
    if (errno == ELOOP) return refusal(path, "a symbolic link");
    if (errno == EISDIR) return refusal(path, "a folder");
    if (errno == ENXIO) return refusal(path, "a socket");
    return failure(path, "open it");
  }
  struct stat info {};
  if (fstat(file.number(), &info) != 0) return failure(path, "inspect it");
  if (!S_ISREG(info.st_mode)) return refusal(path, S_ISDIR(info.st_mode) ? "a folder" : "a pipe or a device");
  if (info.st_uid != geteuid()) return refusal(path, "another user's");
  if (flags != O_RDONLY && info.st_nlink > 1) return refusal(path, "one with other names (hard links)");
  if (static_cast<uint64_t>(info.st_size) > most_bytes)
    return Status::make(Code::Io, path, ": expected at most ", bytes_text(most_bytes), ", found ",
                        bytes_text(static_cast<uint64_t>(info.st_size)), "; it is not used");
  return file;
}

}  // namespace

CacheFile::~CacheFile() {
  if (number_ >= 0) close(number_);
}

Result<CacheFile> open_cache_file(const std::string& path, uint64_t most_bytes) {
  return open_regular(path, O_RDONLY, most_bytes);
}

Result<std::string> read_cache_file(const std::string& path, uint64_t most_bytes) {
  RT_ASSIGN(const CacheFile file, open_cache_file(path, most_bytes));
  std::string bytes;
  char part[16384];
  while (bytes.size() <= most_bytes) {
    const ssize_t got = read(file.number(), part, sizeof part);
    if (got == 0) return bytes;
    if (got > 0)
      bytes.append(part, static_cast<size_t>(got));
    else if (errno != EINTR)
      return failure(path, "read it");
  }
  return Status::make(Code::Io, path, ": it grows while it is read");
}

Result<CacheFile> create_beside(const std::string& path, std::string& name) {
  RT_TRY(check_absolute(path));
  create_folders(path);
  name = text(path, ".partial-XXXXXX");
  CacheFile file(mkostemp(name.data(), O_CLOEXEC));
  if (file.number() < 0) return failure(path, "create a file beside it");
  return file;
}

Status write_cache_file(const std::string& path, std::string_view bytes) {
  std::string name;
  RT_ASSIGN(const CacheFile file, create_beside(path, name));
  while (!bytes.empty()) {
    const ssize_t written = write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (bytes.empty() && std::rename(name.c_str(), path.c_str()) == 0) return {};
  Status failed = failure(path, "replace it");
  unlink(name.c_str());
  return failed;
}

Result<CacheFile> lock_cache_file(const std::string& path, std::chrono::milliseconds wait) {
  RT_TRY(check_absolute(path));
  create_folders(path);
  RT_ASSIGN(CacheFile file, open_regular(path, O_RDWR | O_CREAT | O_APPEND, kLargestCacheText));
  const auto end = std::chrono::steady_clock::now() + wait;
  while (flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;  // where there are no locks, processes do without
    if (std::chrono::steady_clock::now() > end)
      return Status::make(Code::Io, path, ": another process holds its lock for more than ", wait.count(),
                          " ms");
    usleep(10'000);
  }
  return file;
}

}  // namespace librt
