// Tables in text files: comma separated (RFC 4180) and tab separated values.
//
// Knows: delimiters, quotes, line ends. Must not know: what the columns mean.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rt::tools {

struct DelimitedOptions {
  char delimiter = ',';
  bool header = true;  ///< the first row names the columns; else they are "0", "1", ...
  bool quotes = true;  ///< fields may stand in double quotes, a doubled quote within is one
};

struct DelimitedTable {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `names`
  std::vector<size_t> lines;                   ///< where in the file each row begins, from 1

  /// Position of a column, by name or, where no name fits, by number from 0.
  std::optional<size_t> find(const std::string& column) const;
};

/// Empty lines are skipped. A message with the line where a row has another number of fields than the first.
std::optional<DelimitedTable> read_delimited(const std::string& path, const DelimitedOptions& options,
                                             std::string& error);

}  // namespace rt::tools
