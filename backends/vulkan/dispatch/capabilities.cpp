#include "backends/vulkan/dispatch/capabilities.h"

#include <algorithm>
#include <bit>

#include "runtime/graph/in_build.h"

namespace librt::vulkan {
namespace {

struct Capability {
  uint32_t number;
  const char* what;
  bool (*has)(const DeviceFacts& facts);
  bool planned = false;  ///< only a DevicePlan chooses shaders with it
};

constexpr bool always(const DeviceFacts&) {
  return true;
}

constexpr Capability kCapabilities[] = {
    {9, "f16 arithmetic", [](const DeviceFacts& facts) { return facts.features.float16; }},
    {11, "64-bit integers", [](const DeviceFacts& facts) { return facts.features.int64; }},
    {22, "16-bit integers", [](const DeviceFacts& facts) { return facts.features.int16; }},
    {39, "8-bit integers", [](const DeviceFacts& facts) { return facts.features.int8; }},
    {46, "texel buffers", always},
    {61, "subgroups", always, true},  // basic operations are part of Vulkan 1.1
    {62, "subgroup votes", [](const DeviceFacts& facts) { return facts.subgroup_shuffle; }, true},
    {65, "subgroup shuffles", [](const DeviceFacts& facts) { return facts.subgroup_shuffle; }, true},
    {4433, "16-bit storage", [](const DeviceFacts& facts) { return facts.features.storage_16bit; }},
    {4448, "8-bit storage", [](const DeviceFacts& facts) { return facts.features.storage_8bit; }},
    {5345, "the Vulkan memory model", [](const DeviceFacts& facts) { return !facts.matrices.empty(); }, true},
    {6018, "packed dot products", [](const DeviceFacts& facts) { return facts.features.integer_dot; }, true},
    {6019, "integer dot products", [](const DeviceFacts& facts) { return facts.features.integer_dot; }, true},
    {6022, "cooperative matrices", [](const DeviceFacts& facts) { return !facts.matrices.empty(); }, true},
};

const Capability* find(uint32_t number) {
  const auto* found = std::ranges::find(kCapabilities, number, &Capability::number);
  return found == std::end(kCapabilities) ? nullptr : found;
}

uint32_t storage_buffers(const ShaderCode& code) {
  return static_cast<uint32_t>(std::popcount(code.bindings & ((1u << kStorageBindings) - 1)));
}

}  // namespace

Status runs(const DeviceFacts& facts, const ShaderCode& code) {
  if (code.words == 0) return not_in_build(text("the shader ", code.name));
  std::string lacks;
  for (const uint32_t number : code.capabilities) {
    const Capability* capability = find(number);
    if (capability != nullptr && capability->has(facts)) continue;
    const std::string what = capability != nullptr ? capability->what : text("SPIR-V's capability ", number);
    append(lacks, lacks.empty() ? "" : " and ", what);
  }
  if (storage_buffers(code) > facts.max_storage_buffers)
    append(lacks, lacks.empty() ? "" : " and ", storage_buffers(code), " storage buffers (it has ",
           facts.max_storage_buffers, ")");
  if (lacks.empty()) return {};
  return unsupported("shader ", code.name, " needs ", lacks, ", which the device lacks");
}

bool runs_basic_shaders(const DeviceFacts& facts) {
  for (size_t i = 0; i < kShaderCount; ++i) {
    const ShaderCode& code = shader_code(static_cast<Shader>(i));
    const bool planned = std::ranges::any_of(code.capabilities, [](uint32_t number) {
      const Capability* capability = find(number);
      return capability != nullptr && capability->planned;
    });
    if (!planned && !runs(facts, code).ok()) return false;
  }
  return true;
}

}  // namespace librt::vulkan
