// Text for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace librt::tools {

enum class Lines : bool { One, Several };

/// Text that may hold names from a file, for a terminal: control characters of ASCII and of ISO 6429's second
/// set (in UTF-8: C2 80 to C2 9F), which could move the cursor or change the title, become '?'. Several:
/// newlines and tabs stay.
inline std::string printable(std::string_view text, Lines lines = Lines::One) {
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool of_lines = lines == Lines::Several && (byte == '\n' || byte == '\t');
    if (byte >= 0x80 && byte < 0xa0 && out.ends_with('\xc2'))
      out.back() = '?';
    else
      out += (byte < 0x20 && !of_lines) || byte == 0x7f ? '?' : letter;
  }
  return out;
}

}  // namespace librt::tools
