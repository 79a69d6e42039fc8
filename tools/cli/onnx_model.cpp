#include "tools/cli/onnx_model.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "runtime/core/cache_file.h"
#include "runtime/core/cache_folder.h"
#include "runtime/core/hash.h"
#include "tools/cli/find_program.h"
#include "tools/cli/process.h"

namespace librt::tools {
namespace {

namespace fs = std::filesystem;

/// A file mapped for reading; empty if it cannot be.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);  // of a pipe too
    struct stat info {};
    if (descriptor >= 0 && fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
      size_ = static_cast<size_t>(info.st_size);
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (data_ == MAP_FAILED) size_ = 0;
    }
    if (descriptor >= 0) close(descriptor);
  }
  ~Mapping() {
    if (size_ > 0) munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// What a conversion depends on, as a hash.
class Key {
 public:
  /// The path, size and time of the last change of a file.
  void add_file(const std::string& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) info = {};
    add(path);
    add(std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) + " " +
        std::to_string(info.st_mtim.tv_nsec));
  }
  std::string text() const { return hex(hash_); }

 private:
  void add(const std::string& bytes) { hash_ = hash_bytes(bytes.c_str(), bytes.size() + 1, hash_); }

  uint64_t hash_ = kHashSeed;
};

/// Runs rtconvert, its report on stderr; its exit code.
int run_rtconvert(const std::string& rtconvert, const std::string& source, const std::string& target) {
  pid_t child = 0;
  const int error = start_process(child, {rtconvert, source, "-o", target}, {.output = STDERR_FILENO});
  if (error != 0) {
    std::fprintf(stderr, "%s: %s\n", rtconvert.c_str(), std::strerror(error));
    return kBadMachine;
  }
  return wait_for_process(child, kBadMachine);
}

/// Of rtconvert, after its own messages.
void report_failure(const char* program, const std::string& path) {
  std::fprintf(stderr,
               "%s: %s could not be converted; run `rtconvert %s -o MODEL.rt` with the options that it "
               "needs, and give MODEL.rt\n",
               program, path.c_str(), path.c_str());
}

/// Whether a file was converted earlier; Code::NotFound if it is not there.
Status check_converted(const std::string& path) {
  const auto file = open_cache_file(path, UINT64_MAX);
  if (!file.ok()) return file.status();
  constexpr std::string_view kBegin = "\x8dLRT";
  char begin[kBegin.size()] = {};
  if (read(file->number(), begin, sizeof begin) == sizeof begin &&
      kBegin.compare(0, sizeof begin, begin, sizeof begin) == 0)
    return {};
  return Status::make(Code::Io, path, ": expected a compiled model, found other bytes; it is not used");
}

/// Whether a file that is not there can be written.
Status check_writable(const std::string& path) {
  std::string name;
  const auto trial = create_beside(path, name);
  if (trial.ok()) unlink(name.c_str());
  return trial.status();
}

/// Converts to a file without a name, which lasts as long as this process.
CompiledPath convert_apart(const char* program, const std::string& path, const std::string& rtconvert,
                           const fs::path& source) {
  std::error_code error;
  std::string name;
  const fs::path folder = fs::temp_directory_path(error);
  if (const auto made = create_beside((folder / (source.stem().string() + ".rt")).string(), name);
      !made.ok()) {
    std::fprintf(stderr, "%s: %s\n", program, made.status().message().c_str());
    return {path, kBadMachine};
  }
  std::fprintf(stderr, "%s: %s is an ONNX file; converting it for this run\n", program, path.c_str());
  const int code = run_rtconvert(rtconvert, source.string(), name);
  if (code != kFine) report_failure(program, path);
  const int descriptor = open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  unlink(name.c_str());
  return {"/proc/self/fd/" + std::to_string(descriptor), code};
}

}  // namespace

bool is_onnx_file(const std::string& path) {
  const Mapping file(path);
  const std::string_view bytes = file.bytes();
  // ModelProto as protobuf: field 1, a small integer, then another of its fields.
  return bytes.size() > 3 && bytes[0] == 0x08 && static_cast<unsigned char>(bytes[1]) < 32 &&
         std::string_view("\x12\x1a\x22\x28\x32\x3a\x42").find(bytes[2]) != std::string_view::npos;
}

// Pairs of the key "location" and a name, as protobuf writes them.
std::vector<std::string> external_data_of(const std::string& path) {
  constexpr std::string_view kLocation("\x0a\x08location\x12", 11);
  const Mapping file(path);
  const std::string_view bytes = file.bytes();
  const fs::path folder = fs::path(path).parent_path();
  std::vector<std::string> files;
  std::string_view last;  // the names of consecutive tensors are usually equal
  for (size_t at = bytes.find(kLocation); at != bytes.npos; at = bytes.find(kLocation, at + 1)) {
    const size_t begin = at + kLocation.size() + 1;
    if (begin > bytes.size()) break;
    const auto length = static_cast<unsigned char>(bytes[begin - 1]);
    if (length >= 128 || length > bytes.size() - begin) continue;  // no name of a file is longer
    const std::string_view name = bytes.substr(begin, length);
    if (name == last) continue;
    last = name;
    files.push_back((folder / name).string());
  }
  return files;
}

CompiledPath compiled_path(const char* program, const std::string& path) {
  if (!is_onnx_file(path)) return {path};
  std::error_code error;
  const fs::path source = fs::canonical(path, error);
  const std::string cache = cache_folder(), rtconvert = find_program("rtconvert");
  if (error || cache.empty() || rtconvert.empty()) return {path};
  Key key;
  key.add_file(source.string());
  for (const std::string& data : external_data_of(source.string())) key.add_file(data);
  key.add_file(rtconvert);
  const fs::path folder = fs::path(cache) / "converted";
  const std::string target = (folder / (source.stem().string() + "-" + key.text() + ".rt")).string();
  Status problem = check_converted(target);
  if (problem.ok()) {
    std::fprintf(stderr, "%s: %s is an ONNX file; using %s, converted earlier\n", program, path.c_str(),
                 target.c_str());
    return {target};
  }
  if (problem.code() == Code::NotFound) problem = check_writable(target);
  if (!problem.ok()) {
    std::fprintf(stderr, "%s: cache: %s\n", program, problem.message().c_str());
    return convert_apart(program, path, rtconvert, source);
  }
  std::fprintf(stderr, "%s: %s is an ONNX file; converting it to %s\n", program, path.c_str(),
               target.c_str());
  // rtconvert gives the file its name when it is complete.
  const int code = run_rtconvert(rtconvert, source.string(), target);
  if (code == kBadMachine) {  // a full disk, most likely; the temporary folder may be on another one
    std::fprintf(stderr, "%s: cache: %s could not be written\n", program, target.c_str());
    return convert_apart(program, path, rtconvert, source);
  }
  if (code != kFine) report_failure(program, path);
  return {target, code};
}

}  // namespace librt::tools
