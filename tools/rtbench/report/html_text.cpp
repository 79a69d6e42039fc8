#include "tools/rtbench/report/html_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";  // U+FFFD

/// UTF-8 as it is, other bytes as U+FFFD.
std::string as_utf8(std::string_view text) {
  using nlohmann::json;
  const std::string quoted = json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(quoted).get<std::string>();
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char byte : as_utf8(text)) {
    switch (byte) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\n':
      case '\t': out += byte; break;
      default:
        if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f)
          out += kReplacement;
        else
          out += byte;
    }
  }
  return out;
}

std::string json_in_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char byte : json) {
    switch (byte) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += byte;
    }
  }
  return out;
}

Html html_table(const std::vector<std::string>& heads, const std::vector<std::vector<HtmlCell>>& rows) {
  std::vector<bool> numeric(heads.size(), false);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size() && i < heads.size(); ++i)
      if (row[i].value) numeric[i] = true;
  Html out;
  out << "<div class=\"wide\"><table class=\"sortable\"><thead><tr>";
  for (size_t i = 0; i < heads.size(); ++i) {
    if (numeric[i])
      out << "<th scope=\"col\" class=\"number\">" << heads[i] << "</th>";
    else
      out << "<th scope=\"col\">" << heads[i] << "</th>";
  }
  out << "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out << "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool is_number = i < heads.size() && numeric[i];
      if (is_number && row[i].value && std::isfinite(*row[i].value))
        out << "<td class=\"number\" data-value=\"" << format("%.17g", *row[i].value) << "\">";
      else if (is_number)
        out << "<td class=\"number\">";
      else
        out << "<td>";
      out << row[i].text << "</td>";
    }
    out << "</tr>\n";
  }
  out << "</tbody></table></div>\n";
  return out;
}

}  // namespace librt::bench
