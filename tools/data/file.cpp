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
constexpr size_t kFirstPiece = size_t{1} << 16, kPiece = size_t{1} << 26;
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

/// What a stream holds, in memory once: it is read in pieces, and put together when all of it is there.
class Reader {
 public:
  Reader(FileStream& file, const std::string& path) : file_(file), path_(path) {}

  Result<Bytes> all(LimitOf limit_of, size_t limit) {
    Bytes piece;
    if (limit_of != nullptr) {
      RT_TRY(fill(piece, kHeadBytes, kHeadBytes));
      limit = limit_of(piece);
    }
    limit = std::min(limit, file_.is_regular() ? largest_file() : kLargestStream);
    if (file_.size() > limit) return too_large(path_, "the file", file_.size(), limit);
    RT_TRY(check(limit));
    // One byte more than the file, to find its end. Files of the system say that they are empty.
    size_t room = std::max(file_.size() + 1, kFirstPiece);
    do {
      RT_TRY(fill(piece, std::min(room, limit - used_ + 1), limit));
      pieces_.push_back(std::move(piece));
      piece = {};
      room = std::min(2 * room, kPiece);
    } while (!at_end_);
    return joined();
  }

 private:
  /// Adds bytes up to `count` and the stream's end.
  Status fill(Bytes& piece, size_t count, size_t limit) {
    size_t filled = piece.size();
    piece.resize(std::max(count, filled));
    while (!at_end_ && filled < piece.size()) {
      RT_ASSIGN(const size_t got, file_.read(std::span(piece).subspan(filled)));
      at_end_ = got == 0;
      filled += got;
      used_ += got;
      RT_TRY(check(limit));
    }
    piece.resize(filled);
    return {};
  }

  Status check(size_t limit) const {
    if (used_ <= limit) return {};
    return file_.is_regular() ? too_large(path_, "the file", used_, limit) : file_.too_much(limit);
  }

  Bytes joined() {
    if (pieces_.size() == 1) return std::move(pieces_[0]);
    Bytes bytes;
    bytes.reserve(used_);
    for (Bytes& piece : pieces_) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      piece = Bytes();
    }
    return bytes;
  }

  FileStream& file_;
  const std::string& path_;
  std::vector<Bytes> pieces_;
  size_t used_ = 0;
  bool at_end_ = false;
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

Status too_large(const std::string& where, std::string_view what, uint64_t bytes, size_t limit) {
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

Result<FileStream> FileStream::open(const std::string& path) {
  struct stat info {};
  RT_ASSIGN(Descriptor file, open_file(path, info));
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode))
    return Status::make(Code::Io, path, ": expected a file or a pipe, found another kind of file");
  FileStream stream;
  stream.path_ = path;
  stream.file_ = std::move(file);
  stream.is_regular_ = S_ISREG(info.st_mode);
  stream.is_pipe_ = S_ISFIFO(info.st_mode);
  if (stream.is_regular_) stream.size_ = static_cast<size_t>(info.st_size);
  return stream;
}

Result<size_t> FileStream::read(std::span<std::byte> to) {
  const auto start = Clock::now();
  for (;;) {
    const ssize_t got = ::read(file_.number(), to.data(), std::min(to.size(), kLargestRead));
    if (got > 0) {
      has_writer_ = true;
      return static_cast<size_t>(got);
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR) return system_error(path_, "cannot be read", errno);
    pollfd wanted{.fd = file_.number(), .events = POLLIN, .revents = 0};
    if (got < 0) {
      if (errno == EINTR) continue;
      has_writer_ = true;
      poll(&wanted, 1, -1);
    } else if (!is_pipe_ || has_writer_) {
      return size_t{0};
    } else if (poll(&wanted, 1, kMillisecondsBetween) > 0) {
      has_writer_ = true;  // and perhaps had: it is gone
    } else if (Clock::now() - start > std::chrono::seconds(kSecondsWithoutWriter)) {
      return Status::make(Code::Io, path_, ": no process has opened this pipe for writing within ",
                          kSecondsWithoutWriter, " seconds");
    }
  }
}

Status FileStream::too_much(size_t limit) const {
  return Status::make(Code::OutOfMemory, path_, ": gives more than ", bytes_text(limit),
                      "; save what is wanted of it to a file");
}

namespace {

Result<Bytes> read_all(const std::string& path, LimitOf limit_of, size_t limit) {
  RT_ASSIGN(FileStream file, FileStream::open(path));
  try {
    return Reader(file, path).all(limit_of, limit);
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
