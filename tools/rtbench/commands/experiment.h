// `rtbench study NAME`, the experiments: their options, where their results go.
#pragma once

#include <string>

#include "tools/cli/command_line.h"
#include "tools/rtbench/experiments/experiment.h"

namespace librt::bench {

struct ExperimentForms {
  std::string markdown;  ///< a file, "-": stdout; empty: not asked for
  bool json = false;     ///< on stdout
};

bool is_given(const tools::CommandLine& app, const std::string& option);
/// What is wrong with an option on the command line that the experiment does not take; empty: nothing.
std::string refused_option(const Experiment& experiment, const tools::CommandLine& app);
/// The error of a name that is neither a file nor a network nor an experiment.
rt::Status unknown_name(const std::string& name);
/// Runs it, prints and writes the result; an exit code.
int experiment_command(const Experiment& experiment, const ExperimentOptions& options,
                       const ExperimentForms& forms);
/// Paragraph for --help.
std::string experiment_help();

}  // namespace librt::bench
