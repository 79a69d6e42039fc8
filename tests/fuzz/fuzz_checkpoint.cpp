// For any bytes, the reader of checkpoints returns a checkpoint or a Status.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/model/checkpoint.h"
#include "runtime/model/format.h"

namespace {

void check(std::vector<std::byte> file) {
  const auto read = librt::read_checkpoint(librt::Blob::own(std::move(file)));
  if (!read.ok() && read.status().code() != librt::Code::InvalidModel) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(first, first + size);
  check(file);
  librt::FileHeader header;
  if (file.size() < sizeof header) return 0;
  std::memcpy(&header, file.data(), sizeof header);
  header.magic = librt::kCheckpointMagic;
  if (header.graph_offset <= size && header.graph_bytes <= size - header.graph_offset)
    header.graph_checksum = librt::checksum(file.data() + header.graph_offset, header.graph_bytes);
  header.header_checksum = librt::checksum(&header, librt::kCheckedHeaderBytes);
  std::memcpy(file.data(), &header, sizeof header);
  check(std::move(file));
  return 0;
}
