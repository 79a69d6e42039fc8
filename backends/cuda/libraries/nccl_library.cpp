#include "backends/cuda/libraries/nccl_library.h"

namespace librt::cuda::nccl {

std::string Library::version_text() const {
  const int major = version < 10000 ? 1000 : 10000;  // encoding up to 2.8, and from 2.9 on
  return text(version / major, ".", version % major / 100, ".", version % 100);
}

librt::Result<Library> load() {
  Library library;
  RT_ASSIGN(library.handle, open_library("libnccl.so.2"));
  const char* missing = nullptr;
#define RT_FUNCTION(name)                                                                       \
  library.call.name =                                                                           \
      reinterpret_cast<decltype(library.call.name)>(function_of(library.handle, "nccl" #name)); \
  if (library.call.name == nullptr) missing = "nccl" #name;
  RT_NCCL(RT_FUNCTION)
#undef RT_FUNCTION
  const bool knows =
      library.call.GetVersion != nullptr && library.call.GetVersion(&library.version) == kSuccess;
  if (knows && library.version < kOldestVersion)
    return unsupported("NCCL ", library.version_text(), " was found, 2.14 or newer is needed");
  if (missing != nullptr) return unsupported("NCCL: the library found has no function ", missing);
  return library;
}

}  // namespace librt::cuda::nccl
