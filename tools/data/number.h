// Numbers in text that came from outside: options, files, metadata.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

namespace librt::tools {

/// The number that the whole of `text` is; nothing if it is none, or one that Number cannot hold. NaN and
/// infinities are none.
template <class Number>
std::optional<Number> number_from(std::string_view text) noexcept {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace librt::tools
