// safetensors files: named tensors after a header in JSON, as Hugging Face's libraries exchange weights.
//
// A file is 8 bytes with the size of the header, the header, and the tensors' bytes. The reader takes only
// files that are whole: every byte after the header belongs to one tensor, names are unique, and sizes match
// the shapes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/data/array.h"
#include "tools/data/file.h"

namespace librt::tools {

struct Safetensors {
  std::vector<Array> arrays;                                  ///< in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;  ///< "__metadata__"
};

/// Whether a path ends in ".safetensors".
bool is_safetensors(const std::string& path) noexcept;

/// Code::OutOfMemory, before the tensors are read, when they exceed `limit` bytes; Code::InvalidModel with
/// the place in the header for a file that breaks a rule.
Result<Safetensors> read_safetensors(const std::string& path, size_t limit = largest_file());
/// Replaces the file when all is written. Tensors are in the order of the format's own library: by the size
/// of an element, the largest first, then by name. Names must be unique and valid UTF-8.
Status write_safetensors(const std::string& path, const Safetensors& content);

}  // namespace librt::tools
