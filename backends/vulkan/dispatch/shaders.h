// The shader variants of this build, by name; the shaders name their variants (shaders/README.md).
//
// Knows: ids and SPIR-V words. Must not know: devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/status.h"

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
  size_t words = 0;                ///< of its SPIR-V; 0: the build leaves it out (RT_TRIM)
  const uint32_t* at = nullptr;    ///< null in a build that compresses them
  uint32_t stream = 0, first = 0;  ///< there: where they are
  const char* push;  ///< a letter for each word of the push constants: f, i or . (tools/shaders/interface.h)
  uint32_t constants;  ///< the largest constant_id plus 1
  uint32_t bindings;   ///< bit b: it declares binding b; texel buffers are kStorageBindings and up
  std::span<const uint32_t> capabilities;  ///< of its SPIR-V, without Shader
};

/// Words of several variants, as a raw LZMA2 stream.
struct ShaderStream {
  std::span<const uint8_t> bytes;
  size_t words;
};

const ShaderCode& shader_code(Shader shader) noexcept;
std::span<const ShaderStream> shader_streams() noexcept;
/// The SPIR-V of a variant that the build has. Decompresses a stream when one of its variants is first asked
/// for, and keeps it. Thread-safe. Code::OutOfMemory where there is no room for it.
Result<std::span<const uint32_t>> shader_words(const ShaderCode& code) noexcept;
/// A hash over all variants, so that pipeline caches of another build do not match.
uint64_t shader_build_hash() noexcept;

}  // namespace librt::vulkan
