// For any bytes, the reader returns a model or a Status. Checksums would reject almost every mutation, so the
// bytes are tried both as they are and with corrected checksums.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/model/format.h"
#include "runtime/model/reader.h"

namespace {

void make_checksums_right(std::vector<std::byte>& file) {
  librt::FileHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  header.magic = librt::kModelMagic;
  if (header.graph_offset <= file.size() && header.graph_bytes <= file.size() - header.graph_offset)
    header.graph_checksum = librt::checksum(file.data() + header.graph_offset, header.graph_bytes);
  header.header_checksum = librt::checksum(&header, librt::kCheckedHeaderBytes);
  std::memcpy(file.data(), &header, sizeof header);
}

void check(librt::Blob file) {
  const librt::ReadLimits limits{.nodes = 10000, .values = 10000, .graph_bytes = 16 << 20};
  const auto model = librt::read_model(std::move(file), limits);
  const librt::Code code = model.status().code();
  if (code != librt::Code::Ok && code != librt::Code::InvalidModel) std::abort();
  if (code == librt::Code::InvalidModel && model.status().message().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(first, first + size);
  check(librt::Blob::own(file));
  make_checksums_right(file);
  check(librt::Blob::own(std::move(file)));
  return 0;
}
