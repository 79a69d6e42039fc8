// NVIDIA's libraries, each optional: loaded once a device is there, never linked.
//
// Knows: where they may be. Must not know: what is in them. The emulator for tests has its own library.cpp.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace librt::cuda {

struct CloseLibrary {
  void operator()(void* handle) const noexcept;
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

/// Whether `file` ("libcudnn.so.9") is one of `names` ("cublasLt,cudnn").
inline bool is_listed(std::string_view names, std::string_view file) noexcept {
  while (!names.empty()) {
    const size_t end = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, end);
    if (file.starts_with("lib") && file.substr(3).starts_with(name) &&
        file.substr(3 + name.size()).starts_with(".so."))
      return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

/// One that is loaded already, else the first that can be loaded from: the folders of RT_CUDA_LIBRARY_PATH,
/// this module's own, the system's search, the toolkit's. It stays loaded until the process ends. NotFound,
/// with the loader's reasons, if none can, or if RT_CUDA_LIBRARIES is set and does not list it: our own
/// kernels then do everything.
Result<LibraryHandle> open_library(const std::string& name);
/// Null if the library has no such function.
void* function_of(const LibraryHandle& library, const char* name) noexcept;

}  // namespace librt::cuda
