// Digests of files and values, to find out whether two programs have the same. Not against an attacker.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"

namespace librt::tools {

class Digest {
 public:
  void add(const void* data, size_t bytes) noexcept { hash_ = hash_bytes(data, bytes, hash_); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(T number) noexcept { add(&number, sizeof number); }
  template <class T>
  void add(std::span<const T> numbers) noexcept {
    add(numbers.size());
    add(numbers.data(), numbers.size_bytes());
  }
  void add(std::string_view text) noexcept { add(std::span<const char>(text)); }

  /// 16 hexadecimal digits.
  std::string text() const { return hex(hash_); }

 private:
  uint64_t hash_ = kHashSeed;
};

/// The text of the digest of a file's content. Reads all of it.
Result<std::string> digest_of_file(const std::string& path);

}  // namespace librt::tools
