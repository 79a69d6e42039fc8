// A study as Markdown, for a pull request or a terminal, and as CSV, for a spreadsheet.
#pragma once

#include <string>
#include <vector>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Verdict, tables and machine. Text from files cannot become markup.
std::string study_markdown(const Study& study);

/// Text within Markdown: characters of its syntax and of HTML are escaped.
std::string markdown_text(const std::string& text);
/// rows[0] is the head; the first `left` columns are left-aligned.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows, size_t left);
/// An item for each line; empty for none.
std::string markdown_list(const std::vector<std::string>& lines);

/// One line for each point (RFC 4180), with a line of names first. Text that a spreadsheet would take for a
/// formula begins with an apostrophe.
std::string study_csv(const Study& study);

}  // namespace librt::bench
