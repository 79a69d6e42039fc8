#include "tools/rttrain/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tools/data/public_status.h"
#include "tools/rttrain/source.h"

namespace rt::train {
namespace {

using librt::tools::Descriptor;

/// The file that would be replaced, without symbolic links: different names of it share a lock.
std::string resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path found =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  return error ? path : found.string();
}

bool is_named(int file, const std::string& path) {
  struct stat here {};
  struct stat there {};
  return fstat(file, &here) == 0 && lstat(path.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

/// "process 1234 on host", as the holder wrote it.
std::string holder(int file) {
  char text[128];
  const ssize_t got = pread(file, text, sizeof text, 0);
  const std::string_view found(text, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (!found.starts_with("process ")) return "another process";
  const std::string name = librt::tools::in_quotes(found.substr(0, found.find('\n')));
  return name.substr(1, name.size() - 2);
}

void write_holder(int file) {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  const std::string text = "process " + std::to_string(getpid()) + " on " + host + "\n";
  // On a full disk the lock is held all the same, without a name.
  if (ftruncate(file, 0) == 0) (void)!pwrite(file, text.data(), text.size(), 0);
}

}  // namespace

CheckpointLocks::~CheckpointLocks() {
  for (const Lock& lock : locks_)
    if (lock.file.number() >= 0) unlink(lock.path.c_str());  // while it is locked
}

rt::Result<CheckpointLocks> CheckpointLocks::take(const LoopOptions& options) {
  CheckpointLocks locks;
  for (const std::string* path : {&options.checkpoint, &options.best})
    if (!path->empty())
      if (rt::Status status = locks.add(*path); !status) return status;
  return locks;
}

rt::Status CheckpointLocks::add(const std::string& checkpoint) {
  const std::string path = resolved(checkpoint) + ".lock";
  for (const Lock& lock : locks_)
    if (lock.path == path) return {};  // --checkpoint and --best may be one file
  for (;;) {
    Descriptor file(
        open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
    if (file.number() < 0)
      return as_public(
          librt::tools::system_error(path, "the lock of the checkpoint cannot be opened", errno));
    if (flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK)
        return bad_data(checkpoint + ": another training writes this checkpoint, " + holder(file.number()) +
                        " (" + path + "); wait for its end, or name another file");
      std::fprintf(stderr, "rttrain: %s: %s; a second training of the same checkpoint would not be noticed\n",
                   path.c_str(), std::strerror(errno));
      return {};
    }
    if (!is_named(file.number(), path)) continue;  // its holder ended meanwhile and removed it
    write_holder(file.number());
    locks_.push_back({path, std::move(file)});
    return {};
  }
}

}  // namespace rt::train
