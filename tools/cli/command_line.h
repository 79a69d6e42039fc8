// What the programs' command lines have in common: --version, help by topic and as wide as the terminal,
// examples and exit codes at its end.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace librt::tools {

/// Groups of options that `--help` leaves out and a flag of their own shows.
struct HelpTopic {
  std::string flag;  ///< "--help-training"
  std::vector<std::string> groups;
};

struct ProgramHelp {
  std::string program;                ///< "rtconvert"
  std::vector<std::string> examples;  ///< whole command lines
  std::vector<std::string> notes;     ///< paragraphs after the examples
  std::vector<HelpTopic> topics;
};

/// Adds --version, the topics' flags and --help-all where there are topics, and lays out the help. Call it
/// after all options are declared.
void set_up_help(CLI::App& app, const ProgramHelp& help);

/// Checks of numbers: above 0, and at least 0. NaN and infinities are refused.
CLI::Validator positive();
CLI::Validator non_negative();

/// Seconds of an option as milliseconds for librt: at least 1 unless they are 0.
uint64_t milliseconds(double seconds);

/// Parses the arguments. Nothing where the program goes on; else the exit code to leave with: help and
/// version are on stdout, an error on stderr.
std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv);

/// The exit code for what parsing or checking arguments threw, after printing it.
int leave(const CLI::App& app, const CLI::ParseError& error);

}  // namespace librt::tools
