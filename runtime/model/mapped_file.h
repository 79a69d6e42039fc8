// A file mapped read-only into memory, or read into it.
//
// Knows: open, mmap, read. Must not know: what the bytes mean. The file must not shrink while it is mapped:
// reading past its new end is a bus error. Files that are replaced by rename (as the writer does) are safe.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace librt {

/// The whole file as a blob that owns the mapping; pages are read on first access. Code::NotFound or
/// Code::Io.
Result<Blob> map_file(const std::string& path);

/// The whole file in memory of the blob's own. Errors as above, Code::OutOfMemory.
Result<Blob> read_file(const std::string& path);

}  // namespace librt
