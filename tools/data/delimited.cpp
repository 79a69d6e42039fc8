#include "tools/data/delimited.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "tools/data/array.h"

namespace librt::tools {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const DelimitedOptions& options) : rest_(text), options_(options) {}

  bool at_end() const noexcept { return rest_.empty(); }
  size_t line() const noexcept { return line_; }

  /// One row; false when a quote is never closed.
  bool row(std::vector<std::string>& fields) {
    fields.clear();
    for (;;) {
      std::string field;
      if (options_.quotes && rest_.starts_with('"')) {
        if (!quoted(field)) return false;
      } else {
        const size_t end = std::min(rest_.find_first_of(ends_), rest_.size());
        field = rest_.substr(0, end);
        rest_.remove_prefix(end);
      }
      fields.push_back(std::move(field));
      if (rest_.empty()) return true;
      const char end = rest_.front();
      rest_.remove_prefix(1);
      if (end == options_.delimiter) continue;
      if (end == '\r' && rest_.starts_with('\n')) rest_.remove_prefix(1);
      ++line_;
      return true;
    }
  }

 private:
  // Text after the closing quote, which RFC 4180 does not allow, belongs to the field.
  bool quoted(std::string& field) {
    rest_.remove_prefix(1);
    for (;;) {
      const size_t quote = rest_.find('"');
      if (quote == std::string_view::npos) return false;
      line_ += static_cast<size_t>(
          std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
      field += rest_.substr(0, quote);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      field += '"';
      rest_.remove_prefix(1);
    }
    const size_t end = std::min(rest_.find_first_of(ends_), rest_.size());
    field += rest_.substr(0, end);
    rest_.remove_prefix(end);
    return true;
  }

  std::string_view rest_;
  const DelimitedOptions& options_;
  const std::string ends_ = std::string("\r\n") + options_.delimiter;
  size_t line_ = 1;
};

}  // namespace

std::optional<size_t> DelimitedTable::find(const std::string& column) const {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  size_t number = 0;
  const char* end = column.data() + column.size();
  if (std::from_chars(column.data(), end, number).ptr != end || column.empty() || number >= names.size())
    return std::nullopt;
  return number;
}

std::optional<DelimitedTable> read_delimited(const std::string& path, const DelimitedOptions& options,
                                             std::string& error) {
  const auto bytes = read_file(path, error);
  if (!bytes) return std::nullopt;
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  DelimitedTable table;
  Parser parser(text, options);
  std::vector<std::string> fields;
  while (!parser.at_end()) {
    const size_t line = parser.line();
    if (!parser.row(fields)) {
      error = path + ": line " + std::to_string(line) + ": a quoted field has no end";
      return std::nullopt;
    }
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (table.names.empty()) {
      for (size_t i = 0; i < fields.size(); ++i)
        table.names.push_back(options.header ? fields[i] : std::to_string(i));
      if (options.header) continue;
    }
    if (fields.size() != table.names.size()) {
      error = path + ": line " + std::to_string(line) + ": expected " + std::to_string(table.names.size()) +
              " fields, found " + std::to_string(fields.size());
      return std::nullopt;
    }
    table.rows.push_back(fields);
    table.lines.push_back(line);
  }
  if (table.rows.empty()) {
    error = path + ": has no rows";
    return std::nullopt;
  }
  return table;
}

}  // namespace librt::tools
