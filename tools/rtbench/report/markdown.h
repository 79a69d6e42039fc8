// A study as Markdown, for a pull request or a terminal, and as CSV, for a spreadsheet.
#pragma once

#include <string>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Verdict, tables and machine. Text from files cannot become markup.
std::string study_markdown(const Study& study);

/// One line for each point (RFC 4180), with a line of names first. Text that a spreadsheet would take for a
/// formula begins with an apostrophe.
std::string study_csv(const Study& study);

}  // namespace librt::bench
