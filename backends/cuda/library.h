// NVIDIA's libraries, each optional: looked for once a device is there, never linked.
//
// Knows: where they may lie. Must not know: what is in them. The emulator for tests has its own library.cpp.
#pragma once

#include <memory>
#include <string>

#include "runtime/core/status.h"

namespace rt::cuda {

struct CloseLibrary {
  void operator()(void* handle) const noexcept;
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

/// The first that can be loaded of: the folders of RT_CUDA_LIBRARY_PATH, this module's own, what the system
/// finds, the toolkit's. NotFound, with the loader's reasons, if none can.
Result<LibraryHandle> open_library(const std::string& name);
/// Null if the library has no such function.
void* function_of(const LibraryHandle& library, const char* name) noexcept;

}  // namespace rt::cuda
