// Adapters into sessions: in librt's own format by librt, as safetensors here.
//
// Knows: states by the public C API. Must not know: what an adapter changes.
#pragma once

#include <string>

#include "rt/rt.h"
#include "runtime/core/status.h"

namespace librt::tools {

/// rt_session_load_adapter(), also for a path that ends in ".safetensors" (rtconvert --save-adapter). Such a
/// file has exactly the parameters and statistics of the session's model, by name, in their types and shapes.
/// On an error the states are unchanged.
Status load_adapter(rt_session* session, const std::string& path);

}  // namespace librt::tools
