#include "backends/cuda/libraries/library.h"

#include <dlfcn.h>

#include <vector>

#include "runtime/core/environment.h"

namespace librt::cuda {
namespace {

std::string own_folder() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&open_library), &self) == 0 || self.dli_fname == nullptr)
    return {};
  const std::string_view path = self.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == path.npos ? std::string() : std::string(path.substr(0, slash));
}

/// In the order in which they are tried; empty: the system's search.
std::vector<std::string> folders() {
  std::vector<std::string> folders;
  const char* path = environment("RT_CUDA_LIBRARY_PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (std::string own = own_folder(); !own.empty()) folders.push_back(std::move(own));
  folders.insert(folders.end(), {"", "/usr/local/cuda/lib64"});
  return folders;
}

}  // namespace

void CloseLibrary::operator()(void* handle) const noexcept {
  dlclose(handle);
}

Result<LibraryHandle> open_library(const std::string& name) {
  if (const char* listed = environment("RT_CUDA_LIBRARIES"); listed != nullptr && !is_listed(listed, name))
    return Status::make(Code::NotFound, name, " is not looked for: RT_CUDA_LIBRARIES is '", listed, "'");
  std::string reason;
  // RTLD_NODELETE: these libraries have state that outlives a handle, and take seconds to load again.
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  // One that the application has loaded, such as PyTorch's: two copies in a process would not know each
  // other.
  if (void* handle = dlopen(name.c_str(), kMode | RTLD_NOLOAD); handle != nullptr)
    return LibraryHandle(handle);
  dlerror();
  for (const std::string& folder : folders()) {
    const std::string path = folder.empty() ? name : folder + "/" + name;
    if (void* handle = dlopen(path.c_str(), kMode); handle != nullptr) return LibraryHandle(handle);
    if (const char* error = dlerror(); folder.empty() && error != nullptr) reason = error;
  }
  return Status::make(Code::NotFound, name, " was not found (", reason,
                      "); RT_CUDA_LIBRARY_PATH names folders to look in first");
}

void* function_of(const LibraryHandle& library, const char* name) noexcept {
  return dlsym(library.get(), name);
}

}  // namespace librt::cuda
