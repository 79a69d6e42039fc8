// Finds and opens backend modules: shared libraries named librt_<backend>.so.
//
// Knows: where modules lie and how to tell that one fits this build. Every refusal is a sentence. Modules
// stay loaded until the process ends. Must not know: devices, sessions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/module.h"

namespace rt {

/// Where modules are looked for, in order: the folders in RT_MODULE_PATH (separated by ':') or, when that is
/// not set, the folder of librt.so, then ../lib/librt and ../<libdir>/librt beside the program's folder.
std::vector<std::string> module_folders();

/// The module librt_<name>.so, or the reason why it cannot be used. Loads at most once per file.
Result<const BackendModule*> load_module(std::string_view name);

/// Checks size, ABI stamp and name of what a module returned.
Status check_module(const BackendModule* module, std::string_view name, std::string_view file);

}  // namespace rt
