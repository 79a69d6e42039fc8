// A file mapped read-only into memory.
//
// Knows: open, mmap. Must not know: what the bytes mean. The file must not shrink while it is mapped: reading
// past its new end is a bus error. Files that are replaced by rename (as the writer does) are safe.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace librt {

/// The whole file as a blob that owns the mapping; pages are read on first access. Code::NotFound or
/// Code::Io.
Result<Blob> map_file(const std::string& path);

}  // namespace librt
