// The forms of a report that a command line asks for, and the folder that studies are kept in.
//
// Knows: the options and the order of writing. Must not know: how to measure.
#pragma once

#include <string>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

struct ReportOptions {
  std::string html, markdown, csv;  ///< files; "-": stdout; empty: not asked for
  bool json = false;                ///< on stdout
  std::string save;                 ///< folder; empty: study_folder()
  bool no_save = false;
};

/// What is wrong with the options: two forms on stdout, folders that do not exist; empty: nothing. Call it
/// before measuring.
std::string problem_of(const ReportOptions& options);

/// Writes all forms that were asked for, and keeps the study. Says on stderr what lies where. Nothing is half
/// written. Returns an exit code: one file that cannot be written does not keep others from being written. A
/// study that cannot be kept is only an error if --save names the folder.
int write_reports(const Study& study, const ReportOptions& options);

/// Whether stdout belongs to a form of the report, so that no other text may go there.
bool uses_stdout(const ReportOptions& options);

}  // namespace librt::bench
