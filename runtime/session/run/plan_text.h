// The printed form of plans.
#pragma once

#include <string>

#include "runtime/session/prepare/program.h"

namespace librt {

/// One paragraph per step, each line indented.
std::string steps_text(const Program& program, DeviceSet& devices, const std::string& indent);

/// Location of a value: "arena+64", "input 0", "constant".
std::string location_text(const Program& program, const DeviceSet& devices, Ref value);

}  // namespace librt
