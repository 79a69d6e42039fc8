#include "runtime/model/container.h"

#include <cstring>
#include <new>
#include <string_view>

#include "runtime/core/byte_count.h"

namespace librt {
namespace {

/// What a file of another kind seems to be, and what to do with it; empty if unknown.
std::string_view other_kind(const std::array<uint8_t, 8>& first) {
  if (first == kModelMagic) return "; this is a compiled model";
  if (first == kCheckpointMagic)
    return "; this is a checkpoint: load it into a session of its model (--checkpoint)";
  // ONNX's ModelProto as protobuf: field 1, a small integer, then another of its fields.
  constexpr std::string_view kNextFields = "\x12\x1a\x22\x28\x32\x3a\x42";
  if (first[0] == 0x08 && first[1] < 32 && kNextFields.find(static_cast<char>(first[2])) != kNextFields.npos)
    return "; this looks like an ONNX file: compile it with `rtconvert MODEL.onnx -o MODEL.rt`";
  return {};
}

Status check(const FileHeader& header, const std::array<uint8_t, 8>& magic, uint64_t size) {
  if (header.magic != magic)
    return invalid_model("header: not a ", magic == kModelMagic ? "compiled model (.rt)" : "checkpoint",
                         ", or damaged: the first 8 bytes differ", other_kind(header.magic));
  if (checksum(&header, kCheckedHeaderBytes) != header.header_checksum)
    return invalid_model("header: the checksum differs; the file is damaged");
  if (header.version != kFormatVersion || header.header_bytes != sizeof(FileHeader))
    return invalid_model("header: format version ", header.version, ", this build reads version ",
                         kFormatVersion);
  if (header.file_bytes != size)
    return invalid_model("header: the file should have ", header.file_bytes, " bytes and has ", size,
                         size < header.file_bytes ? "; it is truncated" : "");
  const bool aligned = header.graph_offset % kFileAlignment == 0 && header.data_offset % kFileAlignment == 0;
  const bool ordered =
      header.graph_offset >= sizeof(FileHeader) && header.graph_offset <= header.data_offset &&
      header.graph_bytes <= header.data_offset - header.graph_offset && header.data_offset <= size;
  if (!aligned || !ordered)
    return invalid_model("header: FlatBuffer at ", header.graph_offset, " of ", header.graph_bytes,
                         " bytes, data at ", header.data_offset, ", file of ", size, " bytes: inconsistent");
  return {};
}

}  // namespace

Result<WritableBlob> allocate_blob(size_t size) {
  constexpr std::align_val_t kAlignment{kFileAlignment};
  auto* data = static_cast<std::byte*>(::operator new(size, kAlignment, std::nothrow));
  if (data == nullptr) return Status::make(Code::OutOfMemory, "cannot allocate ", bytes_text(size));
  WritableBlob result;
  result.data = data;
  result.blob.owner =
      std::shared_ptr<const void>(data, [](void* memory) { ::operator delete(memory, kAlignment); });
  result.blob.data = data;
  result.blob.size = size;
  return result;
}

Result<Container> Container::open(Blob file, const std::array<uint8_t, 8>& magic) {
  Container container;
  if (reinterpret_cast<uintptr_t>(file.data) % kFileAlignment != 0) {
    RT_ASSIGN(WritableBlob copy, allocate_blob(file.size));
    std::memcpy(copy.data, file.data, file.size);
    file = std::move(copy.blob);
  }
  container.size_ = file.size;
  container.file_ = std::move(file);
  RT_TRY(container.read_header(magic));
  return container;
}

Result<Container> Container::open(Source source, const std::array<uint8_t, 8>& magic) {
  if (!source.read) return invalid_argument("a source needs a function to read with");
  Container container;
  container.size_ = source.bytes;
  container.source_ = std::move(source);
  RT_TRY(container.read_header(magic));
  return container;
}

Status Container::read_header(const std::array<uint8_t, 8>& magic) {
  if (size_ < sizeof(FileHeader))
    return invalid_model("header: ", size_, " bytes, a header has ", sizeof(FileHeader),
                         "; the file is truncated");
  RT_ASSIGN(const Blob bytes, range(0, sizeof(FileHeader)));
  std::memcpy(&header_, bytes.data, sizeof(FileHeader));
  RT_TRY(check(header_, magic, size_));
  RT_ASSIGN(graph_, range(header_.graph_offset, header_.graph_bytes));
  if (checksum(graph_.data, graph_.size) != header_.graph_checksum)
    return invalid_model("FlatBuffer: the checksum differs; the file is damaged");
  return {};
}

Result<Blob> Container::range(uint64_t offset, uint64_t bytes) const {
  RT_TRY(check_addressable(bytes));
  const auto size = static_cast<size_t>(bytes);
  if (!source_.read) return Blob{file_.owner, file_.data + offset, size};
  RT_ASSIGN(WritableBlob copy, allocate_blob(size));
  RT_TRY(source_.read(offset, size, copy.data));
  return std::move(copy.blob);
}

Result<Blob> Container::segment(uint64_t offset, uint64_t bytes) const {
  const uint64_t area = size_ - header_.data_offset;
  if (offset > area || bytes > area - offset)
    return invalid_model("bytes [", offset, ", +", bytes, ") lie outside the data area of ", area, " bytes");
  if (offset % kFileAlignment != 0)
    return invalid_model("offset ", offset, " is not a multiple of ", kFileAlignment);
  return range(header_.data_offset + offset, bytes);
}

}  // namespace librt
