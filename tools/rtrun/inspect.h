// What is in a model file: entries, inputs, outputs, states, metadata.
#pragma once

#include <string>

#include "rt/rt.hpp"

namespace rt::run {

/// Prints it as lines or as JSON.
void inspect(const rt::Model& model, const std::string& path, bool json);

}  // namespace rt::run
