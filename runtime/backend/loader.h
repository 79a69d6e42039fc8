// Finds and opens backend modules: shared libraries named librt_<backend>.so.
//
// Knows: where modules are and how to check that one matches this build. Every failure gives a one-sentence
// reason. Modules stay loaded until the process ends. Must not know: devices, sessions.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/module.h"

namespace librt {

/// The backends of librt; a module path may hold others.
inline constexpr std::array<std::string_view, 4> kBackendNames = {"cpu", "cuda", "vulkan", "reference"};

/// Search path of modules, in order: the folders in RT_MODULE_PATH (separated by ':') or, if that is not set,
/// the folder of librt.so, then ../lib/librt and ../<libdir>/librt relative to the program's folder.
std::vector<std::string> module_folders();

/// The modules in this program: those of a static librt.a (cmake/Static.cmake), none in librt.so.
std::span<const BackendModule* const> linked_modules() noexcept;

/// The module of this name among linked_modules(), or librt_<name>.so, or the reason why it cannot be used.
/// Loads at most once per file.
Result<const BackendModule*> load_module(std::string_view name);

/// Checks size, ABI stamp and name of the struct returned by a module.
Status check_module(const BackendModule* module, std::string_view name, std::string_view file);

}  // namespace librt
