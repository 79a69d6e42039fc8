// The printed form of plans.
#pragma once

#include <string>

#include "runtime/session/program.h"

namespace rt {

/// One paragraph for each step, each line indented.
std::string steps_text(const Program& program, DeviceSet& devices, const std::string& indent);

/// Where a value lies: "arena+64", "input 0", "constant".
std::string place_text(const Program& program, const DeviceSet& devices, Ref value);

}  // namespace rt
