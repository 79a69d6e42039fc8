// The programs' command lines: options bound to variables, --version, help by topic and as wide as the
// terminal, examples and exit codes at its end.
//
// Knows: CLI11, which only command_line.cpp includes: it takes seconds to parse. Must not know: any program's
// options.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace librt::tools {

/// What an option's value must be.
class Check {
 public:
  /// converts: it also turns the text into that of a number.
  explicit Check(CLI::Validator validator, bool converts = false);
  const CLI::Validator& validator() const { return *validator_; }
  bool converts() const noexcept { return converts_; }

 private:
  std::shared_ptr<const CLI::Validator> validator_;
  bool converts_;
};

/// Numbers above 0, and of at least 0. NaN and infinities are refused.
Check positive();
Check non_negative();
/// Numbers from `least` to `most`. Number: double, int or unsigned.
template <class Number>
Check between(Number least, Number most);
Check one_of(std::vector<std::string> names);
/// A value that is not empty: an empty one is a variable of a shell that is not set.
Check not_empty();
/// Turns 64KiB, 256MiB (1024, 1024^2) into a number of bytes.
Check byte_size();

/// An option that a CommandLine has, and lives as long as it. Functions that return this describe it further.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  /// The heading in the help. Empty: not in the help.
  Option* group(const std::string& heading);
  Option* check(const Check& check);
  Option* required();
  /// Is refused without the other option.
  Option* needs(const Option* other);
  /// The value that the variable has now is the default in the help.
  Option* capture_default_str();
  Option* default_str(const std::string& text);
  /// One argument holds several values: 1,2,3.
  Option* delimiter(char character);
  /// How many values there must be.
  Option* expected(int count);
  /// May be given again and again; takes one argument each time.
  Option* take_all();

  /// Values that a shell may complete, beside any other text.
  Option* suggest(std::vector<std::string> words);

  /// How often the command line holds it.
  size_t count() const;
  /// "--name".
  std::string get_name() const;
  const std::vector<std::string>& suggestions() const { return suggestions_; }
  bool is(const CLI::Option& option) const { return option_ == &option; }

 private:
  CLI::Option* option_;
  std::vector<std::string> suggestions_;
};

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

/// An argument that is refused after parsing: "OPTION: what is wrong".
struct ArgumentError : std::runtime_error {
  using std::runtime_error::runtime_error;
  ArgumentError(const std::string& option, const std::string& problem)
      : std::runtime_error(option + ": " + problem) {}
};

class CommandLine {
 public:
  explicit CommandLine(const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// "--name", "-n,--name", or "name" for an argument by position. Parsing writes the value, which must live
  /// until then. Value: std::string, a type of numbers, or a std::vector or std::optional of one;
  /// command_line.cpp lists them.
  template <class Value>
  Option* add_option(const std::string& name, Value& value, const std::string& description = {});
  Option* add_flag(const std::string& name, bool& value, const std::string& description);
  /// "--name{TEXT}": --name sets the value to TEXT, --name=OTHER to OTHER.
  Option* add_flag(const std::string& name, std::string& value, const std::string& description);

  /// Adds --version, --completion-table (for cmake/completions.sh, not in the help), the topics' flags and
  /// --help-all where there are topics, and lays out the help. Call it after all options are declared.
  void set_up_help(const ProgramHelp& help);

  /// Parses the arguments. Nothing where the program goes on; else the exit code to leave with: help and
  /// version are on stdout, an error on stderr.
  std::optional<int> parse(int argc, char** argv);
  /// Parses arguments that do not come from a user's command line. Throws ArgumentError, and prints nothing.
  void read(std::vector<std::string> arguments);
  /// An option as parse() found it.
  struct Parsed {
    std::string name;  ///< without dashes
    bool is_flag;      ///< has no value
    bool is_given;
    std::vector<std::string> values;
    std::string default_text;
  };
  /// All options, --help included.
  std::vector<Parsed> options() const;
  /// Prints the error on stderr, and returns the exit code for it.
  int refuse(const ArgumentError& error) const;

 private:
  Option* keep(CLI::Option* option);
  std::string completion_table() const;
  void add_last_checks();

  std::unique_ptr<CLI::App> app_;
  std::deque<Option> options_;
  std::vector<std::function<void()>> last_checks_;  ///< add what every option of a number refuses
};

/// What --backend may be: librt's backends, and the words given.
std::vector<std::string> backends_and(std::vector<std::string> more);

/// Adds --copy-model and --skip-checksums. Options: rt::ModelOptions.
template <class Options>
void add_model_options(CommandLine& app, Options& options, const std::string& group = "Options") {
  app.add_flag("--copy-model", options.copy,
               "Read the model file into memory instead of mapping it: it may then change or be truncated")
      ->group(group);
  app.add_flag("--skip-checksums", options.skip_checksums,
               "Do not compare the checksums of the weights when they are first used")
      ->group(group);
}

/// Seconds of an option as milliseconds for librt: at least 1 unless they are 0.
uint64_t milliseconds(double seconds);

}  // namespace librt::tools
