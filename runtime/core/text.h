// text(...): concatenates strings and numbers into one std::string.
//
// Knows: how to write scalars. Must not know: anything else. It exists because GCC 12 has no std::format and
// librt is too small to carry a formatting library.
//
// Messages are most of a small runtime's code size, so a call compiles to no more code than printf: the
// argument types become a short format string derived at compile time (so it cannot be wrong), the parts are
// passed to one variadic function, and only that function has loops, buffers and strings to destroy.
#pragma once

#include <concepts>
#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace librt {

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
void append(std::string& out, int64_t part);
void append(std::string& out, uint64_t part);
void append(std::string& out, float part);
void append(std::string& out, double part);

template <std::integral Number>
requires(!std::same_as<Number, bool> && !std::same_as<Number, char>) void append(std::string& out,
                                                                                 Number part) {
  append(out, static_cast<std::conditional_t<std::is_signed_v<Number>, int64_t, uint64_t>>(part));
}

namespace text_detail {

/// An argument of a custom type, formatted by its own append().
struct Printable {
  const void* part;
  void (*append)(std::string&, const void*);
};

/// A std::string_view as a variadic argument.
struct View {
  const char* data;
  size_t size;
};

template <class T>
inline constexpr bool kIsString =
    std::is_convertible_v<const T&, std::string_view> && !std::is_same_v<T, std::string>;

/// The format letter by which append_parts() reads an argument.
template <class T>
constexpr char letter() {
  if constexpr (std::is_same_v<T, bool>) return 'b';
  if constexpr (std::is_same_v<T, char>) return 'c';
  if constexpr (std::is_integral_v<T>) {
    if (sizeof(T) < sizeof(int64_t)) return std::is_signed_v<T> || sizeof(T) < sizeof(int) ? 'i' : 'u';
    return std::is_signed_v<T> ? 'l' : 'm';
  }
  if constexpr (std::is_same_v<T, float>) return 'f';
  if constexpr (std::is_same_v<T, double>) return 'd';
  if constexpr (std::is_same_v<T, std::string>) return 's';
  if constexpr (std::is_convertible_v<const T&, const char*>) return 'z';
  if constexpr (kIsString<T>) return 'v';
  return 'p';
}

template <class... Parts>
inline constexpr char kLetters[] = {letter<Parts>()..., '\0'};

template <class T>
[[gnu::always_inline]] inline auto lower(const T& part) {
  constexpr char kLetter = letter<T>();
  if constexpr (std::is_arithmetic_v<T>)
    return part;
  else if constexpr (kLetter == 's')
    return &part;
  else if constexpr (kLetter == 'z')
    return static_cast<const char*>(part);
  else if constexpr (kLetter == 'v')
    return View{std::string_view(part).data(), std::string_view(part).size()};
  else
    return Printable{&part, [](std::string& out, const void* x) { append(out, *static_cast<const T*>(x)); }};
}

/// Appends the arguments, whose types the letters give.
void append_parts(std::string& out, const char* letters, va_list arguments);
void append_all(std::string& out, const char* letters, ...);
std::string join(const char* letters, ...);

template <class T>
using Decayed = std::conditional_t<std::is_array_v<T>, const char*, T>;

}  // namespace text_detail

template <class... Parts>
[[gnu::always_inline]] inline std::string text(const Parts&... parts) {
  return text_detail::join(text_detail::kLetters<text_detail::Decayed<Parts>...>,
                           text_detail::lower(parts)...);
}

/// Appends several parts: append(list, list.empty() ? "" : ", ", name). None may alias `out`.
template <class... Parts>
requires(sizeof...(Parts) > 1)
    [[gnu::always_inline]] inline void append(std::string& out, const Parts&... parts) {
  text_detail::append_all(out, text_detail::kLetters<text_detail::Decayed<Parts>...>,
                          text_detail::lower(parts)...);
}

/// The number that a text begins with after spaces, in any locale, which then begins after it; 0 if
/// there is none.
double take_number(const char*& text) noexcept;
/// "1,234,567": digits in groups of three, human-readable.
std::string grouped(uint64_t number);
/// "12.3 MiB": a human-readable byte count.
std::string bytes_text(uint64_t bytes);

}  // namespace librt
