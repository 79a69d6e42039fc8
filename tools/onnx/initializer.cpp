#include "tools/onnx/initializer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {

struct InitializerReader::File {
  const std::byte* data = nullptr;
  size_t size = 0;

  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (data != nullptr) munmap(const_cast<std::byte*>(data), size);
  }
};

namespace {

Result<uint64_t> parse_number(const std::string& value, std::string_view key) {
  uint64_t number = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc() || end != value.data() + value.size())
    return invalid_model("external data: ", key, ": expected a number, found '", value, "'");
  return number;
}

// The canonical path of folder/location, if that is inside the folder with symbolic links resolved.
Result<std::string> path_inside(const std::string& folder, const std::string& location) {
  namespace fs = std::filesystem;
  const fs::path relative(location);
  Status outside = invalid_model("external data '", location,
                                 "' is outside the model's folder; move it next to the model");
  if (location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos) return outside;
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return Status::make(Code::Io, "folder '", folder, "': ", error.message());
  const fs::path path = fs::weakly_canonical(root / relative, error);
  if (error) return Status::make(Code::Io, "external data '", location, "': ", error.message());
  const auto [in_root, in_path] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (in_root != root.end() || in_path == path.end()) return outside;
  return path.string();
}

bool only_bools(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0 || byte == 1; });
}

}  // namespace

Result<std::shared_ptr<const InitializerReader::File>> InitializerReader::open(const std::string& location) {
  RT_ASSIGN(const std::string path, path_inside(folder_, location));
  auto& known = files_[path];
  if (known != nullptr) return known;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);  // of a pipe too
  if (descriptor < 0)
    return Status::make(Code::NotFound, "external data '", location, "': ", std::strerror(errno));
  struct stat status {};
  auto file = std::make_shared<File>();
  void* address = nullptr;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    file->size = static_cast<size_t>(status.st_size);
    if (file->size > 0) address = mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  const int problem = errno;
  ::close(descriptor);
  if (!S_ISREG(status.st_mode)) return invalid_model("external data '", location, "' is not a file");
  if (address == MAP_FAILED)
    return Status::make(Code::Io, "external data '", location, "': ", std::strerror(problem));
  file->data = static_cast<const std::byte*>(address);
  known = std::move(file);
  return known;
}

Result<Blob> InitializerReader::external(const rt_onnx::TensorProto& proto, size_t bytes, size_t alignment) {
  if (folder_.empty())
    return unsupported(
        "the data is stored in another file, and there is no folder to look in; convert from a file");
  std::string location;
  uint64_t offset = 0;
  uint64_t length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset") {
      RT_ASSIGN(offset, parse_number(entry.value(), "offset"));
    } else if (entry.key() == "length") {
      RT_ASSIGN(length, parse_number(entry.value(), "length"));
    }
  }
  RT_ASSIGN(const auto file, open(location));
  if (length != bytes)
    return invalid_model("external data '", location, "': the extents ask for ", bytes,
                         " bytes, length says ", length);
  if (offset > file->size || bytes > file->size - offset)
    return invalid_model("external data '", location, "': expected ", bytes, " bytes at offset ", offset,
                         ", the file has ", file->size);
  const std::byte* data = file->data + offset;
  if (bytes == 0) return Blob{.owner = file, .data = data, .size = 0};
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) return Blob::copy_of(data, bytes);
  return Blob{.owner = file, .data = data, .size = bytes};
}

Result<Blob> InitializerReader::stored(const rt_onnx::TensorProto& proto) {
  std::string error;
  const auto outline = tools::outline_of(proto, error);
  if (!outline) return unsupported(error, "; store the tensor as one of librt's types");
  return external(proto, outline->stored_bytes, 1);
}

Result<Blob> InitializerReader::view(const rt_onnx::TensorProto& proto) {
  std::string error;
  const auto outline = tools::outline_of(proto, error);
  if (!outline) return unsupported(error, "; store the tensor as one of librt's types");
  if (outline->narrow != nullptr) return unsupported("elements of ", outline->narrow->bits, " bits");
  if (proto.data_location() == 1) return external(proto, outline->bytes, 1);
  if (!tools::has_elements(proto, *outline, error)) return invalid_model(error);
  if (proto.has_raw_data())
    return Blob{.owner = nullptr,
                .data = reinterpret_cast<const std::byte*>(proto.raw_data().data()),
                .size = proto.raw_data().size()};
  std::vector<std::byte> bytes(outline->bytes);
  if (!tools::copy_elements(proto, *outline, bytes, error)) return invalid_model(error);
  return Blob::own(std::move(bytes));
}

Result<Initializer> InitializerReader::read(rt_onnx::TensorProto& proto) {
  std::string error;
  const auto outline = tools::outline_of(proto, error);
  if (!outline) return unsupported(error, "; store the tensor as one of librt's types");
  if (outline->dims.size() > kMaxRank)
    return unsupported("rank ", outline->dims.size(), "; at most ", kMaxRank, " dimensions are supported");
  Initializer result{.info = {.dtype = outline->type, .shape = Shape(std::span(outline->dims))}, .data = {}};
  const bool is_bool = result.info.dtype == DType::Bool;
  if (proto.data_location() == 1) {
    const size_t alignment = outline->narrow != nullptr ? 1 : size_of(result.info.dtype);
    RT_ASSIGN(result.data, external(proto, outline->stored_bytes, alignment));
    if (outline->narrow != nullptr) {
      std::vector<std::byte> bytes(outline->bytes);
      tools::widen_elements(*outline->narrow, {result.data.data, result.data.size}, bytes);
      result.data = Blob::own(std::move(bytes));
    }
    const std::string_view bytes(reinterpret_cast<const char*>(result.data.data), result.data.size);
    if (is_bool && !only_bools(bytes)) return invalid_model("external booleans other than 0 and 1");
    return result;
  }
  if (!tools::has_elements(proto, *outline, error)) return invalid_model(error);
  if (proto.has_raw_data() && outline->narrow == nullptr && !(is_bool && !only_bools(proto.raw_data()))) {
    auto owner = std::make_shared<std::string>(std::move(*proto.mutable_raw_data()));
    result.data.data = reinterpret_cast<const std::byte*>(owner->data());
    result.data.size = owner->size();
    result.data.owner = std::move(owner);
    return result;
  }
  std::vector<std::byte> bytes(outline->bytes);
  if (!tools::copy_elements(proto, *outline, bytes, error)) return invalid_model(error);
  result.data = Blob::own(std::move(bytes));
  return result;
}

}  // namespace librt::onnx
