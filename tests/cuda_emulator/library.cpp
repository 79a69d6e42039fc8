// The libraries that the emulated device finds: those that RT_EMULATOR_LIBRARIES names ("cublasLt"), none
// without it. In the place of backends/cuda/library.cpp.
#include "backends/cuda/library.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/cuda_emulator/fake_cublaslt.h"

namespace rt::cuda {

void CloseLibrary::operator()(void*) const noexcept {}

Result<LibraryHandle> open_library(const std::string& name) {
  static int opened;
  const char* named = std::getenv("RT_EMULATOR_LIBRARIES");
  if (named != nullptr && std::strcmp(named, "cublasLt") == 0 && name.starts_with("libcublasLt.so."))
    return LibraryHandle(&opened);
  return Status(Code::NotFound, text(name, " was not found (the emulated device has those that ",
                                     "RT_EMULATOR_LIBRARIES names)"));
}

void* function_of(const LibraryHandle&, const char* name) noexcept {
  return cuda_emulator::fake_cublaslt_function(name);
}

}  // namespace rt::cuda
