// What a SPIR-V module expects from the host: its push constants, specialization constants, bindings and
// capabilities.
//
// Knows: the words of SPIR-V modules. Must not know: what a shader computes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace librt::spirv {

struct Interface {
  /// A letter for each 32-bit word of the push constants: f (float), i (signed or unsigned integer) or . (no
  /// member). Empty where the shader reads none.
  std::string push;
  /// The largest constant_id plus 1.
  uint32_t constants = 0;
  /// Bit b: it declares binding b, below 32.
  uint32_t bindings = 0;
  /// What its OpCapability instructions declare, but for Shader, which every device has; ascending.
  std::vector<uint32_t> capabilities;
};

/// The interface of a compute shader (SPIR-V 1.x, sections 3.6 and 3.20: storage classes and decorations).
/// Members of push constants are 32-bit scalars, vectors and arrays of them, and structs. On failure `error`
/// has the reason.
Interface interface_of(std::span<const uint32_t> words, std::string& error);

}  // namespace librt::spirv
