#include "tools/cli/operator_library.h"

#include <dlfcn.h>

#include <filesystem>

namespace librt::tools {
namespace {

/// More are no list.
constexpr size_t kMostOperators = 4096;

std::string add_operators_of(const std::string& library, std::vector<rt_custom_operator>& operators) {
  std::error_code error;
  // An absolute path: another one without a slash would be searched for in the system's folders.
  const std::string path = std::filesystem::absolute(library, error).string();
  if (error || !std::filesystem::exists(path, error)) return "there is no such library";
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return std::string("it cannot be loaded: ") + dlerror();
  const std::string function = RT_CUSTOM_OPERATORS_FUNCTION;
  const auto list = reinterpret_cast<rt_custom_operators_function>(dlsym(handle, function.c_str()));
  if (list == nullptr) return "it has no function " + function + ", which lists operators (rt/custom.h)";
  size_t count = 0;
  const rt_custom_operator* const found = list(&count);
  if (found == nullptr) count = 0;
  if (count == 0 || count > kMostOperators)
    return "expected " + function + " to list 1 to " + std::to_string(kMostOperators) + " operators, found " +
           std::to_string(count);
  for (size_t i = 0; i < count; ++i) {
    if (found[i].struct_size != sizeof(rt_custom_operator))
      return "expected operators of " + std::to_string(sizeof(rt_custom_operator)) + " bytes, found " +
             std::to_string(found[i].struct_size) + " in operator " + std::to_string(i) +
             "; build it with the headers of this librt";
    operators.push_back(found[i]);
  }
  return {};
}

}  // namespace

std::string add_operators(std::span<const std::string> libraries,
                          std::vector<rt_custom_operator>& operators) {
  for (const std::string& library : libraries)
    if (const std::string problem = add_operators_of(library, operators); !problem.empty())
      return "--operators: " + library + ": " + problem;
  return {};
}

}  // namespace librt::tools
