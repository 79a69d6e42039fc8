#include "tools/data/delimited.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <span>
#include <string_view>

#include "tools/data/number.h"

namespace librt::tools {
namespace {

constexpr size_t kWindow = size_t{1} << 16;

/// What became of a row.
enum class Row : uint8_t { Whole, Cut, OpenQuote, LongField, TooLarge };

/// Rows of a text that may go on after what is there of it.
class Parser {
 public:
  explicit Parser(const DelimitedOptions& options) : options_(options) {}

  /// The text from where the last whole row ended. is_last: that is all.
  void set_text(std::string_view text, bool is_last) {
    rest_ = text;
    is_last_ = is_last;
  }
  std::string_view rest() const noexcept { return rest_; }
  size_t line() const noexcept { return line_; }
  size_t row_bytes() const noexcept { return row_bytes_; }

  /// One row that takes at most `limit` bytes of memory. Cut: it goes on after the text, and is taken again
  /// with more of it.
  Row row(std::vector<std::string>& fields, size_t limit) {
    const std::string_view begin = rest_;
    const size_t line = line_;
    const Row result = take(fields, limit);
    if (result == Row::Cut) {
      rest_ = begin;
      line_ = line;
    }
    return result;
  }

 private:
  static constexpr size_t kRowBytes = sizeof(std::vector<std::string>) + sizeof(size_t);

  Row take(std::vector<std::string>& fields, size_t limit) {
    fields.clear();
    row_bytes_ = kRowBytes;
    for (;;) {
      std::string field;
      const Row found = options_.quotes && rest_.starts_with('"') ? quoted(field) : plain(field);
      if (found != Row::Whole) return found;
      row_bytes_ += sizeof(std::string) + field.size();
      if (row_bytes_ > limit) return Row::TooLarge;
      fields.push_back(std::move(field));
      if (rest_.empty()) return is_last_ ? Row::Whole : Row::Cut;
      const char end = rest_.front();
      rest_.remove_prefix(1);
      if (end == options_.delimiter) continue;
      if (end == '\r' && rest_.empty() && !is_last_) return Row::Cut;
      if (end == '\r' && rest_.starts_with('\n')) rest_.remove_prefix(1);
      ++line_;
      return Row::Whole;
    }
  }

  Row append(std::string& field, size_t count) {
    if (count > kLongestField - field.size()) return Row::LongField;
    field += rest_.substr(0, count);
    rest_.remove_prefix(count);
    return Row::Whole;
  }

  Row plain(std::string& field) { return append(field, std::min(rest_.find_first_of(ends_), rest_.size())); }

  // Text after the closing quote, which RFC 4180 does not allow, belongs to the field.
  Row quoted(std::string& field) {
    rest_.remove_prefix(1);
    for (;;) {
      const size_t quote = rest_.find('"');
      if (quote == std::string_view::npos)
        return !is_last_ && rest_.size() > kLongestField ? Row::LongField
               : is_last_                                ? Row::OpenQuote
                                                         : Row::Cut;
      line_ += static_cast<size_t>(
          std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
      if (const Row taken = append(field, quote); taken != Row::Whole) return taken;
      rest_.remove_prefix(1);
      if (!rest_.starts_with('"')) return plain(field);
      field += '"';
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
  bool is_last_ = false;
  const DelimitedOptions& options_;
  const std::string ends_ = std::string("\r\n") + options_.delimiter;
  size_t line_ = 1;
  size_t row_bytes_ = 0;
};

/// A table that grows by the rows of a text, given in parts.
class TableReader {
 public:
  TableReader(const std::string& path, const DelimitedOptions& options, size_t limit)
      : path_(path), options_(options), parser_(options), limit_(limit) {}

  /// Takes the whole rows of the text; how many bytes they are.
  Result<size_t> add(std::string_view text, bool is_last) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (!has_begun_ && text.size() < kByteOrderMark.size() && !is_last) return size_t{0};
    const size_t mark = !has_begun_ && text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    has_begun_ = true;
    parser_.set_text(text.substr(mark), is_last);
    while (!parser_.rest().empty()) {
      const size_t line = parser_.line();
      const Row row = parser_.row(fields_, limit_ - taken_);
      if (row == Row::Cut) break;
      if (row != Row::Whole) return refused(line, row);
      RT_TRY(take_row(line));
    }
    const size_t left = parser_.rest().size();
    if (left > kLongestRow)
      return at_line(parser_.line(), "a row has more than ", bytes_text(kLongestRow),
                     "; is this file a table?");
    return text.size() - left;
  }

  Result<DelimitedTable> table() {
    if (table_.rows.empty()) return Status::make(Code::Io, path_, ": has no rows");
    return std::move(table_);
  }

 private:
  template <class... Parts>
  Status at_line(size_t line, const Parts&... parts) const {
    return Status::make(Code::Io, path_, ": line ", line, ": ", parts...);
  }

  Status refused(size_t line, Row row) const {
    if (row == Row::OpenQuote) return at_line(line, "a quoted field has no end");
    if (row == Row::LongField)
      return at_line(line, "a field has more than ", bytes_text(kLongestField), "; is this file a table?");
    return Status::make(Code::OutOfMemory, path_, ": line ", line, ": the table takes more than ",
                        bytes_text(limit_), " in memory; split the file");
  }

  Status take_row(size_t line) {
    taken_ += parser_.row_bytes();
    if (fields_.size() == 1 && fields_[0].empty()) return {};
    if (table_.names.empty()) {
      for (size_t i = 0; i < fields_.size(); ++i)
        table_.names.push_back(options_.header ? fields_[i] : std::to_string(i));
      if (options_.header) return {};
    }
    if (fields_.size() != table_.names.size())
      return at_line(line, "expected ", table_.names.size(), " fields, found ", fields_.size());
    table_.rows.push_back(fields_);
    table_.lines.push_back(line);
    return {};
  }

  const std::string& path_;
  const DelimitedOptions& options_;
  Parser parser_;
  const size_t limit_;
  size_t taken_ = 0;
  bool has_begun_ = false;
  std::vector<std::string> fields_;
  DelimitedTable table_;
};

/// Reads until the table is whole or an error: no more than a row that is not yet whole is kept beside it.
Result<DelimitedTable> read_stream(FileStream& file, TableReader& reader) {
  Bytes bytes(kWindow);
  size_t filled = 0;
  for (bool at_end = false; !at_end;) {
    RT_ASSIGN(const size_t got, file.read(std::span(bytes).subspan(filled)));
    at_end = got == 0;
    filled += got;
    if (filled < bytes.size() && !at_end) continue;
    RT_ASSIGN(const size_t taken, reader.add({reinterpret_cast<const char*>(bytes.data()), filled}, at_end));
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(taken),
              bytes.begin() + static_cast<std::ptrdiff_t>(filled), bytes.begin());
    filled -= taken;
    if (filled > bytes.size() / 2) bytes.resize(2 * bytes.size());
  }
  return reader.table();
}

}  // namespace

std::optional<size_t> DelimitedTable::find(const std::string& column) const {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const auto number = number_from<size_t>(column);
  return number && *number < names.size() ? number : std::nullopt;
}

Result<DelimitedTable> read_delimited(const std::string& path, const DelimitedOptions& options,
                                      size_t limit_of_stream) {
  RT_ASSIGN(FileStream file, FileStream::open(path));
  const size_t limit = file.is_regular() ? largest_file() : limit_of_stream;
  if (file.size() > limit) return too_large(path, "the file", file.size(), limit);
  try {
    TableReader reader(path, options, limit);
    return read_stream(file, reader);
  } catch (const std::bad_alloc&) {
    return Status::make(Code::OutOfMemory, path, ": not enough memory to read it");
  }
}

Result<DelimitedTable> parse_delimited(const std::string& path, std::string_view text,
                                       const DelimitedOptions& options, size_t limit) {
  TableReader reader(path, options, limit);
  RT_TRY(reader.add(text, true).status());
  return reader.table();
}

}  // namespace librt::tools
