#include "runtime/backend/loader.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "runtime/backend/abi.h"
#include "runtime/core/environment.h"

namespace librt {

namespace {

/// An address inside the library or program that contains this file.
const char kAnchor = 0;

/// The canonical path; empty if there is no such file.
std::string resolved(const char* path) {
  char real[PATH_MAX];
  return realpath(path, real) != nullptr ? real : "";
}

std::string folder_of(const std::string& file) {
  return file.substr(0, file.rfind('/'));
}

std::string own_file() {
  Dl_info info{};
  if (dladdr(&kAnchor, &info) == 0 || info.dli_fname == nullptr) return {};
  return resolved(info.dli_fname);
}

Result<const BackendModule*> open_module(std::string_view name) {
  for (const BackendModule* module : linked_modules()) {
    if (module == nullptr || module->name == nullptr || name != module->name) continue;
    RT_TRY(check_module(module, name, "this program"));
    return module;
  }
  const std::string file_name = text("librt_", name, ".so");
  std::string searched;
  for (const std::string& folder : module_folders()) {
    const std::string path = text(folder, "/", file_name);
    if (access(path.c_str(), F_OK) != 0) {
      append(searched, searched.empty() ? "" : ", ", folder);
      continue;
    }
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      return unsupported(path, " cannot be loaded: ", reason != nullptr ? reason : "unknown reason",
                         "; install what is missing");
    }
    using Entry = const BackendModule* (*)();
    void* symbol = dlsym(handle, RT_BACKEND_MODULE_SYMBOL);
    Entry entry = nullptr;
    std::memcpy(&entry, &symbol, sizeof entry);
    if (entry == nullptr)
      return unsupported(path, " is not a backend module: it lacks the symbol ", RT_BACKEND_MODULE_SYMBOL);
    const BackendModule* module = entry();
    RT_TRY(check_module(module, name, path));
    return module;
  }
  if (std::ranges::find(kBackendNames, name) == kBackendNames.end())
    return invalid_argument("unknown backend '", name, "'; expected cpu, vulkan, cuda, reference or auto");
  return Status::make(Code::NotFound, "backend ", name, ": ", file_name, " was not found in ",
                      searched.empty() ? "any folder" : searched,
                      "; install the module or set RT_MODULE_PATH to its folder");
}

}  // namespace

std::vector<std::string> module_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    const std::string real = resolved(folder.c_str());
    const std::string& known = real.empty() ? folder : real;
    if (std::ranges::find(folders, known) == folders.end()) folders.push_back(known);
  };
  if (const char* variable = environment("RT_MODULE_PATH"); variable != nullptr && *variable != 0) {
    std::string_view rest = variable;
    while (!rest.empty()) {
      const size_t end = rest.find(':');
      if (end != 0) add(std::string(rest.substr(0, end)));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return folders;
  }
  if (const std::string file = own_file(); file.find(".so", file.rfind('/')) != std::string::npos)
    add(folder_of(file));
  std::string program = resolved("/proc/self/exe");
  if (program.empty())  // without /proc: the path that was executed
    program = resolved(reinterpret_cast<const char*>(getauxval(AT_EXECFN)));
  if (!program.empty()) {
    const std::string beside = folder_of(folder_of(program));
    add(beside + "/lib/librt");
    add(beside + "/" RT_LIBDIR "/librt");
  }
  return folders;
}

Status check_module(const BackendModule* module, std::string_view name, std::string_view file) {
  if (module == nullptr) return unsupported(file, " returned no module");
  if (module->size != sizeof(BackendModule))
    return unsupported(file, " was built for another librt (its module struct has ", module->size,
                       " bytes, this one ", sizeof(BackendModule),
                       "); build or install both from the same version");
  if (module->abi == nullptr || std::string_view(module->abi) != RT_BACKEND_ABI)
    return unsupported(file, " was built for another librt (stamp ",
                       module->abi != nullptr ? module->abi : "none", ", this one has ", RT_BACKEND_ABI,
                       "); build or install both from the same version");
  if (module->name == nullptr || name != module->name)
    return unsupported(file, " reports backend '", module->name != nullptr ? module->name : "", "', not '",
                       name, "'");
  if (module->probe == nullptr || module->open == nullptr)
    return unsupported(file, " exports a module without functions");
  return {};
}

Result<const BackendModule*> load_module(std::string_view name) {
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
      return invalid_argument("backend '", name,
                              "': names are lower-case letters and digits, such as cpu or vulkan");
  // Failures are not cached: a module path may be corrected, or a driver installed, while a program runs.
  static std::mutex mutex;
  static std::vector<const BackendModule*> loaded;
  const std::lock_guard lock(mutex);
  for (const BackendModule* module : loaded)
    if (name == module->name) return module;
  RT_ASSIGN(const BackendModule* const module, open_module(name));
  loaded.push_back(module);
  return module;
}

}  // namespace librt
