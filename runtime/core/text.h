// text(...): joins strings and numbers into one std::string.
//
// Knows: how to append scalars. Must not know: anything else. It exists because GCC 12 has no std::format and
// librt is too small to carry a formatting library.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace rt {

/// Appends one part. A type can be made printable by a function `void append(std::string&, const T&)`.
inline void append(std::string& out, std::string_view part) {
  out.append(part);
}
inline void append(std::string& out, const std::string& part) {
  out.append(part);
}
inline void append(std::string& out, const char* part) {
  out.append(part);
}
inline void append(std::string& out, char part) {
  out.push_back(part);
}
inline void append(std::string& out, bool part) {
  out.append(part ? "true" : "false");
}

template <class Number>
requires((std::integral<Number> || std::floating_point<Number>)&&!std::same_as<Number, bool> &&
         !std::same_as<Number, char>) void append(std::string& out, Number part) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, part);
  out.append(buffer, end.ptr);
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

/// "1,234,567": digits in groups of three, for people.
std::string grouped(uint64_t number);
/// "12.3 MiB": a byte count for people.
std::string bytes_text(uint64_t bytes);

}  // namespace rt
