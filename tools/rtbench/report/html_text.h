// Markup and text, kept apart: what comes from files cannot become markup.
//
// Knows: escaping in HTML and of JSON within it. Must not know: reports.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace librt::bench {

/// Text in HTML, also between quotes of an attribute: special characters as entities, control characters and
/// bytes that are no UTF-8 as U+FFFD.
std::string escaped(std::string_view text);
/// JSON for a <script> element: without any '<', '>' or '&', which would be markup there.
std::string json_in_script(std::string_view json);

/// Builds HTML: string literals are markup, all other strings are text.
class Html {
 public:
  template <size_t kSize>
  Html& operator<<(const char (&markup)[kSize]) {
    out_.append(markup, kSize - 1);
    return *this;
  }
  Html& operator<<(const std::string& text) {
    out_ += escaped(text);
    return *this;
  }
  Html& operator<<(const Html& inner) {
    out_ += inner.out_;
    return *this;
  }
  /// Of this program's own files, or escaped already.
  Html& markup(std::string_view text) {
    out_ += text;
    return *this;
  }
  bool empty() const noexcept { return out_.empty(); }
  const std::string& text() const noexcept { return out_; }

 private:
  std::string out_;
};

/// A cell of a table. With `value` its column is sorted by that, and set as a number.
struct HtmlCell {
  std::string text;
  std::optional<double> value = std::nullopt;
};

/// A table that the page's script makes sortable. Column `i` is numeric if its cells have values.
Html html_table(const std::vector<std::string>& heads, const std::vector<std::vector<HtmlCell>>& rows);

}  // namespace librt::bench
