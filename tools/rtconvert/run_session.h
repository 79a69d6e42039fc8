// Runs a model once in a session. In a file of its own, because librt's public headers and its inner ones
// name the same things.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/common/array.h"

namespace rt::convert {

/// A session on the bytes of a .rt file, inputs in the model's order; nullopt with a message. strict: no node
/// may fall back to another backend.
std::optional<std::vector<tools::Array>> run_session(std::span<const std::byte> file,
                                                     const std::string& backend, bool strict,
                                                     std::span<const tools::Array> inputs,
                                                     std::string& error);

}  // namespace rt::convert
