// FNV-1a, to name files and keys, and to notice torn files. Not against an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace librt {

inline constexpr uint64_t kHashSeed = 0xcbf29ce484222325u;

/// Continues the hash `seed` with the bytes.
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = kHashSeed) noexcept;
/// 16 hexadecimal digits.
std::string hex(uint64_t number);

}  // namespace librt
