#include "tools/data/delimited.h"

#include <algorithm>
#include <string_view>

#include "tools/data/number.h"

namespace librt::tools {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const DelimitedOptions& options) : rest_(text), options_(options) {}

  bool at_end() const noexcept { return rest_.empty(); }
  size_t line() const noexcept { return line_; }
  size_t row_bytes() const noexcept { return row_bytes_; }
  bool has_open_quote() const noexcept { return has_open_quote_; }
  bool has_long_field() const noexcept { return has_long_field_; }

  /// One row that takes at most `limit` bytes of memory; false when it takes more, when a quote is never
  /// closed, and when a field is too long.
  bool row(std::vector<std::string>& fields, size_t limit) {
    fields.clear();
    row_bytes_ = kRowBytes;
    for (;;) {
      std::string field;
      if (options_.quotes && rest_.starts_with('"')) {
        if (!quoted(field)) return false;
      } else {
        const size_t end = std::min(rest_.find_first_of(ends_), rest_.size());
        if (!append(field, end)) return false;
        rest_.remove_prefix(end);
      }
      row_bytes_ += sizeof(std::string) + field.size();
      if (row_bytes_ > limit) return false;
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
  static constexpr size_t kRowBytes = sizeof(std::vector<std::string>) + sizeof(size_t);

  bool append(std::string& field, size_t count) {
    has_long_field_ = count > kLongestField - field.size();
    if (!has_long_field_) field += rest_.substr(0, count);
    return !has_long_field_;
  }

  // Text after the closing quote, which RFC 4180 does not allow, belongs to the field.
  bool quoted(std::string& field) {
    rest_.remove_prefix(1);
    for (;;) {
      const size_t quote = rest_.find('"');
      has_open_quote_ = quote == std::string_view::npos;
      if (has_open_quote_) return false;
      line_ += static_cast<size_t>(
          std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
      if (!append(field, quote)) return false;
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      field += '"';
      rest_.remove_prefix(1);
    }
    const size_t end = std::min(rest_.find_first_of(ends_), rest_.size());
    if (!append(field, end)) return false;
    rest_.remove_prefix(end);
    return true;
  }

  std::string_view rest_;
  const DelimitedOptions& options_;
  const std::string ends_ = std::string("\r\n") + options_.delimiter;
  size_t line_ = 1;
  size_t row_bytes_ = 0;
  bool has_open_quote_ = false, has_long_field_ = false;
};

}  // namespace

std::optional<size_t> DelimitedTable::find(const std::string& column) const {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const auto number = number_from<size_t>(column);
  return number && *number < names.size() ? number : std::nullopt;
}

Result<DelimitedTable> read_delimited(const std::string& path, const DelimitedOptions& options) {
  RT_ASSIGN(const Bytes bytes, read_file(path));
  return parse_delimited(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options);
}

Result<DelimitedTable> parse_delimited(const std::string& path, std::string_view text,
                                       const DelimitedOptions& options, size_t limit) {
  const auto at_line = [&](size_t line, const auto&... parts) {
    return Status::make(Code::Io, path, ": line ", line, ": ", parts...);
  };
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  DelimitedTable table;
  Parser parser(text, options);
  std::vector<std::string> fields;
  size_t taken = 0;
  while (!parser.at_end()) {
    const size_t line = parser.line();
    if (!parser.row(fields, limit - taken)) {
      if (parser.has_open_quote()) return at_line(line, "a quoted field has no end");
      if (parser.has_long_field())
        return at_line(line, "a field has more than ", bytes_text(kLongestField), "; is this file a table?");
      return Status::make(Code::OutOfMemory, path, ": line ", line, ": the table takes more than ",
                          bytes_text(limit), " in memory; split the file");
    }
    taken += parser.row_bytes();
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (table.names.empty()) {
      for (size_t i = 0; i < fields.size(); ++i)
        table.names.push_back(options.header ? fields[i] : std::to_string(i));
      if (options.header) continue;
    }
    if (fields.size() != table.names.size())
      return at_line(line, "expected ", table.names.size(), " fields, found ", fields.size());
    table.rows.push_back(fields);
    table.lines.push_back(line);
  }
  if (table.rows.empty()) return Status::make(Code::Io, path, ": has no rows");
  return table;
}

}  // namespace librt::tools
