#include "runtime/backend/loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "runtime/backend/abi.h"

namespace rt {
namespace fs = std::filesystem;

namespace {

/// An address inside the library or program that this file was linked into.
const char kAnchor = 0;

std::string own_file() {
  Dl_info info{};
  if (dladdr(&kAnchor, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path real = fs::canonical(info.dli_fname, error);
  return error ? std::string() : real.string();
}

Result<const BackendModule*> open_module(std::string_view name) {
  const std::string file_name = text("librt_", name, ".so");
  std::string searched;
  for (const std::string& folder : module_folders()) {
    const fs::path path = fs::path(folder) / file_name;
    std::error_code error;
    if (!fs::exists(path, error)) {
      append(searched, text(searched.empty() ? "" : ", ", folder));
      continue;
    }
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      return unsupported(path.string(), " cannot be loaded: ", reason != nullptr ? reason : "unknown reason",
                         "; install what is missing");
    }
    using Entry = const BackendModule* (*)();
    void* symbol = dlsym(handle, RT_BACKEND_MODULE_SYMBOL);
    Entry entry = nullptr;
    std::memcpy(&entry, &symbol, sizeof entry);
    if (entry == nullptr)
      return unsupported(path.string(), " is not a backend module: it lacks the symbol ",
                         RT_BACKEND_MODULE_SYMBOL);
    const BackendModule* module = entry();
    RT_TRY(check_module(module, name, path.string()));
    return module;
  }
  return Status::make(Code::NotFound, "backend ", name, ": ", file_name, " was not found in ",
                      searched.empty() ? "any folder" : searched,
                      "; install the module or set RT_MODULE_PATH to its folder");
}

}  // namespace

std::vector<std::string> module_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& folder) {
    std::error_code error;
    const std::string clean = fs::weakly_canonical(folder, error).string();
    if (error || clean.empty()) return;
    for (const std::string& known : folders)
      if (known == clean) return;
    folders.push_back(clean);
  };
  if (const char* variable = std::getenv("RT_MODULE_PATH"); variable != nullptr && *variable != 0) {
    std::string_view rest = variable;
    while (!rest.empty()) {
      const size_t end = rest.find(':');
      if (end != 0) add(fs::path(std::string(rest.substr(0, end))));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return folders;
  }
  if (const std::string file = own_file();
      !file.empty() && fs::path(file).filename().string().find(".so") != std::string::npos)
    add(fs::path(file).parent_path());
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    add(program.parent_path() / ".." / "lib" / "librt");
    add(program.parent_path() / ".." / RT_LIBDIR / "librt");
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
    return unsupported(file, " says that it is backend '", module->name != nullptr ? module->name : "",
                       "', not '", name, "'");
  if (module->probe == nullptr || module->open == nullptr)
    return unsupported(file, " exports a module without functions");
  return {};
}

Result<const BackendModule*> load_module(std::string_view name) {
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
      return invalid_argument("backend '", name,
                              "': names are lower-case letters and digits, such as cpu or vulkan");
  // Refusals are not kept: a module path may be set right, or a driver be installed, while a program runs.
  static std::mutex mutex;
  static std::map<std::string, const BackendModule*, std::less<>> loaded;
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(name); found != loaded.end()) return found->second;
  RT_ASSIGN(const BackendModule* module, open_module(name));
  loaded.emplace(name, module);
  return module;
}

}  // namespace rt
