// Packs MNIST's IDX files (gzip or plain) into one .npz with the arrays `inputs` (u8 [N,28,28,1]) and
// `labels` (i64 [N]).
//
//   idx_to_npz OUTPUT.npz IMAGES... LABELS
#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "tools/common/npz.h"

namespace {

using rt::tools::Array;
using rt::tools::ElementType;

// An IDX file: two zero bytes, type 8 (u8), rank, big-endian extents, data.
bool read_idx(const char* path, std::vector<int64_t>& dims, std::vector<unsigned char>& data) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path, "rb"), gzclose);
  unsigned char head[4];
  if (!file || gzread(file.get(), head, 4) != 4 || head[0] != 0 || head[1] != 0 || head[2] != 8) return false;
  size_t count = 1;
  for (int axis = 0; axis < head[3]; ++axis) {
    unsigned char bytes[4];
    if (gzread(file.get(), bytes, 4) != 4) return false;
    const int64_t extent = (int64_t{bytes[0]} << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3];
    dims.push_back(extent);
    count *= static_cast<size_t>(extent);
  }
  data.resize(count);
  return gzread(file.get(), data.data(), static_cast<unsigned>(count)) == static_cast<int>(count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: idx_to_npz OUTPUT.npz IMAGES... LABELS\n");
    return 2;
  }
  Array images{.name = "inputs", .type = ElementType::U8, .dims = {0, 28, 28, 1}, .bytes = {}};
  Array labels{.name = "labels", .type = ElementType::I64, .dims = {0}, .bytes = {}};
  for (int i = 2; i < argc; ++i) {
    std::vector<int64_t> dims;
    std::vector<unsigned char> data;
    if (!read_idx(argv[i], dims, data)) {
      std::fprintf(stderr, "idx_to_npz: %s is not an IDX file of bytes\n", argv[i]);
      return 2;
    }
    if (i + 1 < argc) {
      images.dims[0] += dims[0];
      const auto* first = reinterpret_cast<const std::byte*>(data.data());
      images.bytes.insert(images.bytes.end(), first, first + data.size());
      continue;
    }
    labels.bytes.resize(static_cast<size_t>(images.dims[0]) * sizeof(int64_t));
    for (size_t k = 0; k < static_cast<size_t>(images.dims[0]) && k < data.size(); ++k) {
      const int64_t label = data[k];
      std::memcpy(labels.bytes.data() + k * sizeof label, &label, sizeof label);
    }
    labels.dims[0] = images.dims[0];
  }
  std::string error;
  if (rt::tools::write_npz(argv[1], {images, labels}, error)) return 0;
  std::fprintf(stderr, "idx_to_npz: %s\n", error.c_str());
  return 3;
}
