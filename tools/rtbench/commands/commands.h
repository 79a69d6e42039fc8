// The commands of rtbench, each with its own command line: `rtbench NAME ...`.
//
// A command is a file of this folder, a declaration here and a row in commands.cpp. It gets the arguments
// from its name on, and returns an exit code.
#pragma once

#include <string>

namespace librt::bench {

/// Without a command's name: the table of times.
int measure_command(int argc, char** argv);
/// `rtbench study MODEL`: all devices, precisions and batch sizes, and a verdict.
int study_command(int argc, char** argv);

/// `rtbench compare OLD.json NEW.json`: what changed. kDifferent if something became worse by more than the
/// tolerance.
int compare_command(int argc, char** argv);
/// `rtbench history`: the stored studies.
int history_command(int argc, char** argv);
/// `rtbench view TRACE`: a Chrome trace as a table by node.
int view_command(int argc, char** argv);

/// Calls the command that argv[1] names, else measure_command.
int run_command(int argc, char** argv);

/// Lines for the help of rtbench without a command.
std::string commands_text();

}  // namespace librt::bench
