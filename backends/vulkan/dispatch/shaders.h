// The shader variants of this build, by name; the shaders name their variants (shaders/README.md).
//
// Knows: ids and SPIR-V words. Must not know: devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace librt::vulkan {

enum class Shader : uint16_t {
#define RT_SHADER(name) name,
#include "backends/vulkan/shader_list.inc"
#undef RT_SHADER
};

inline constexpr size_t kShaderCount = 0
#define RT_SHADER(name) +1
#include "backends/vulkan/shader_list.inc"
#undef RT_SHADER
    ;

struct ShaderCode {
  const char* name;
  std::span<const uint32_t> words;  ///< empty: the build leaves it out (RT_TRIM)
  const char* push;  ///< a letter for each word of the push constants: f, i or . (tools/shaders/interface.h)
  uint32_t constants;  ///< the largest constant_id plus 1
  uint32_t bindings;   ///< bit b: it declares binding b; texel buffers are kStorageBindings and up
  std::span<const uint32_t> capabilities;  ///< of its SPIR-V, without Shader
};

/// The SPIR-V of a variant.
const ShaderCode& shader_code(Shader shader) noexcept;
/// A hash over all variants, so that pipeline caches of another build do not match.
uint64_t shader_build_hash() noexcept;

}  // namespace librt::vulkan
