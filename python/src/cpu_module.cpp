#include "python/src/cpu_module.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "rt/rt.h"

namespace rt::python {

void load_cpu_module() noexcept {
  if (dlsym(RTLD_DEFAULT, "GOMP_parallel") == nullptr) return;
  if (dlsym(RTLD_DEFAULT, "__asan_init") != nullptr) return;  // ends the process at RTLD_DEEPBIND
  if (std::getenv("RT_MODULE_PATH") != nullptr) return;       // modules from elsewhere
  Dl_info info{};
  char path[PATH_MAX + sizeof "librt_cpu.so"];
  if (dladdr(reinterpret_cast<const void*>(&rt_session_create), &info) == 0 || info.dli_fname == nullptr ||
      realpath(info.dli_fname, path) == nullptr)
    return;
  char* const name = std::strrchr(path, '/');
  if (name == nullptr) return;
  std::strcpy(name + 1, "librt_cpu.so");
  if (void* const loaded = dlopen(path, RTLD_LAZY | RTLD_NOLOAD); loaded != nullptr) {
    dlclose(loaded);
    return;
  }
  dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);  // stays loaded
}

}  // namespace rt::python
