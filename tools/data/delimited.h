// Tables in text files: comma-separated (RFC 4180) and tab-separated values.
//
// Knows: delimiters, quotes, line ends. Must not know: what the columns mean.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/data/file.h"

namespace librt::tools {

struct DelimitedOptions {
  char delimiter = ',';
  bool header = true;  ///< the first row names the columns; otherwise they are "0", "1", ...
  bool quotes = true;  ///< fields may be in double quotes, with "" for a quote inside
};

struct DelimitedTable {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `names`
  std::vector<size_t> lines;                   ///< line in the file where each row begins, from 1

  /// Index of a column, by name or, if no name matches, by number from 0.
  std::optional<size_t> find(const std::string& column) const;
};

/// Of one field.
inline constexpr size_t kLongestField = size_t{64} << 20;
inline constexpr size_t kLongestRow = size_t{256} << 20;

/// Skips empty lines. Returns a message with the line if a row has a different number of fields than the
/// first, a field more than kLongestField or a row more than kLongestRow, as soon as that much was read.
/// Code::OutOfMemory when the table takes more than `limit` bytes: a file's half of the machine's memory, a
/// pipe's or a device's limit_of_stream.
Result<DelimitedTable> read_delimited(const std::string& path, const DelimitedOptions& options,
                                      size_t limit_of_stream = kLargestStream);
/// path: for messages.
Result<DelimitedTable> parse_delimited(const std::string& path, std::string_view text,
                                       const DelimitedOptions& options, size_t limit = largest_file());

}  // namespace librt::tools
