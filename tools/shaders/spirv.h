// The head of a SPIR-V module (specification, section 2.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace librt::spirv {

inline constexpr uint32_t kMagic = 0x07230203;
inline constexpr size_t kHeaderWords = 5;

inline bool is_module(std::span<const uint32_t> words) noexcept {
  return words.size() >= kHeaderWords && words[0] == kMagic;
}

}  // namespace librt::spirv
