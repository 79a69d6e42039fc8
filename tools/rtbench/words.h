// Numbers as words, for sentences and tables.
#pragma once

#include <string>
#include <vector>

#include "tools/rtbench/mode.h"
#include "tools/rtbench/statistics.h"

namespace librt::bench::words {

/// printf into a string.
__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...);

/// "0.447 ms", "17.2 us", "1.23 s".
std::string time_text(double ms);
/// "0.447 ms (0.44 to 0.46)": a time with its interval, in one unit.
std::string time_text(double ms, const Interval& interval);
/// Four significant digits without an exponent: "12340", "1.234".
std::string number_text(double value);
/// "3.1 times (2.9 to 3.3)", or "3.1 times" where the interval would show the same numbers.
std::string times_text(double ratio, const Interval& interval);
/// "12.3 MiB".
std::string bytes_text(uint64_t bytes);
/// "inference", "training".
const char* mode_text(Mode mode);
/// Cells as aligned columns, of which the first `left` are left-aligned.
std::string columns(const std::vector<std::vector<std::string>>& rows, size_t left);

}  // namespace librt::bench::words
