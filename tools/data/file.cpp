#include "tools/data/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/core/atomic_file.h"
#include "runtime/core/host_memory.h"

namespace librt::tools {
namespace {

constexpr size_t kLargestRead = size_t{1} << 30;  // Linux reads at most 2 GiB per call
constexpr size_t kFirstBuffer = size_t{1} << 16;
constexpr int kMillisecondsBetween = 50;

using Clock = std::chrono::steady_clock;

Result<Descriptor> open_file(const std::string& path, struct stat& info) {
  // O_NONBLOCK: to open a pipe must not wait for the process that writes it.
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.number() < 0) return system_error(path, "cannot be opened", errno);
  if (fstat(file.number(), &info) != 0) return system_error(path, "cannot be inspected", errno);
  if (S_ISDIR(info.st_mode)) return Status::make(Code::Io, path, ": expected a file, found a folder");
  return file;
}

/// Reads one file to its end.
class Reader {
 public:
  Reader(const std::string& path, const Descriptor& file, const struct stat& info)
      : path_(path),
        file_(file.number()),
        is_regular_(S_ISREG(info.st_mode)),
        is_pipe_(S_ISFIFO(info.st_mode)) {
    if (is_regular_) size_ = static_cast<size_t>(info.st_size);
  }

  Result<Bytes> all(LimitOf limit_of, size_t limit) {
    if (limit_of != nullptr) {
      RT_TRY(read_up_to(kHeadBytes));
      limit = limit_of({bytes_.data(), used_});
    }
    limit = std::min(limit, is_regular_ ? largest_file() : kLargestStream);
    if (size_ > limit) return too_large(path_, "the file", size_, limit);
    bytes_.resize(std::max(size_ + 1, used_));  // one more, to find the end
    while (!at_end_) {
      if (used_ > limit && is_regular_) return too_large(path_, "the file", used_, limit);
      if (used_ > limit)
        return Status::make(Code::OutOfMemory, path_, ": gives more than ", bytes_text(limit),
                            "; save what is wanted of it to a file");
      // Files of the system say that they are empty.
      if (used_ == bytes_.size()) bytes_.resize(std::max(used_ + used_ / 2, kFirstBuffer));
      RT_TRY(read_some(bytes_.size()));
    }
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  Status read_up_to(size_t count) {
    bytes_.resize(count);
    while (!at_end_ && used_ < count) RT_TRY(read_some(count));
    return {};
  }

  /// Reads into the buffer up to `end`: at least one byte, or finds the file's end.
  Status read_some(size_t end) {
    const auto start = Clock::now();
    for (;;) {
      const ssize_t got = read(file_, bytes_.data() + used_, std::min(end - used_, kLargestRead));
      if (got > 0) {
        used_ += static_cast<size_t>(got);
        return {};
      }
      if (got < 0 && errno != EAGAIN && errno != EINTR) return system_error(path_, "cannot be read", errno);
      pollfd wanted{.fd = file_, .events = POLLIN, .revents = 0};
      if (got < 0) {
        if (errno == EINTR) continue;
        has_writer_ = true;
        poll(&wanted, 1, -1);
      } else if (!is_pipe_ || used_ > 0 || has_writer_) {
        at_end_ = true;
        return {};
      } else if (poll(&wanted, 1, kMillisecondsBetween) > 0) {
        has_writer_ = true;  // and perhaps had: it is gone
      } else if (Clock::now() - start > std::chrono::seconds(kSecondsWithoutWriter)) {
        return Status::make(Code::Io, path_, ": no process has opened this pipe for writing within ",
                            kSecondsWithoutWriter, " seconds");
      }
    }
  }

  const std::string& path_;
  const int file_;
  const bool is_regular_, is_pipe_;
  size_t size_ = 0;
  Bytes bytes_;
  size_t used_ = 0;
  bool at_end_ = false, has_writer_ = false;
};

}  // namespace

Status system_error(const std::string& where, const char* what, int error) {
  const Code code = error == ENOENT ? Code::NotFound : code_of_errno(error);
  return Status::make(code, where, ": ", what, ": ", std::strerror(error));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (number_ >= 0 && number_ != other.number_) close(number_);
  number_ = other.release();
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

size_t largest_file() noexcept {
  static const size_t memory = [] {
    auto bytes = static_cast<size_t>(std::max<uint64_t>(host_memory_bytes(), 1));
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      bytes = std::min(bytes, static_cast<size_t>(limit.rlim_cur));
    return bytes;
  }();
  return memory / 2;
}

Status too_large(const std::string& where, std::string_view what, size_t bytes, size_t limit) {
  return Status::make(Code::OutOfMemory, where, ": ", what, " takes ", bytes_text(bytes),
                      ", expected at most ", bytes_text(limit),
                      limit == largest_file() ? " (half of this machine's memory)" : "");
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string out = "'";
  for (const char byte : text.substr(0, kMost))
    out += static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f ? '?' : byte;
  return out + (text.size() > kMost ? "...'" : "'");
}

namespace {

Result<Bytes> read_all(const std::string& path, LimitOf limit_of, size_t limit) {
  struct stat info {};
  RT_ASSIGN(const Descriptor file, open_file(path, info));
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode))
    return Status::make(Code::Io, path, ": expected a file or a pipe, found another kind of file");
  try {
    return Reader(path, file, info).all(limit_of, limit);
  } catch (const std::bad_alloc&) {
    return Status::make(Code::OutOfMemory, path, ": not enough memory to read it");
  }
}

}  // namespace

Result<Bytes> read_file(const std::string& path, size_t limit) {
  return read_all(path, nullptr, limit);
}

Result<Bytes> read_file(const std::string& path, LimitOf limit_of) {
  return read_all(path, limit_of, 0);
}

Result<Descriptor> open_regular(const std::string& path) {
  struct stat info {};
  RT_ASSIGN(Descriptor file, open_file(path, info));
  if (!S_ISREG(info.st_mode))
    return Status::make(Code::Io, path, ": expected a regular file; save what a pipe or device gives to one");
  return file;
}

Bytes head_of(const std::string& path) {
  const auto file = open_regular(path);
  if (!file.ok()) return {};
  Bytes head(kHeadBytes);
  const ssize_t got = pread(file->number(), head.data(), head.size(), 0);
  head.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return head;
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  RT_TRY(file.open());
  RT_TRY(file.write(bytes.data(), bytes.size()));
  return file.commit();
}

}  // namespace librt::tools
