#include "tools/cli/command_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "tools/cli/exit_code.h"

namespace librt::tools {
namespace {

constexpr size_t kNarrowest = 60;
constexpr size_t kWidest = 120;
constexpr size_t kNameColumn = 26;

/// Columns of the terminal, or of COLUMNS where stdout is none.
size_t line_width() {
  size_t width = 100;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  } else if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    if (const long number = std::strtol(columns, nullptr, 10); number > 0)
      width = static_cast<size_t>(number);
  }
  return std::clamp(width, kNarrowest, kWidest);
}

/// Lines of at most `width`, broken at spaces; `indent` precedes every line but the first. Lines that begin
/// with a space stay as they are.
std::string wrapped(const std::string& text, size_t width, const std::string& indent) {
  std::string result;
  size_t column = 0;
  for (size_t begin = 0; begin < text.size();) {
    const bool verbatim = column == 0 && text[begin] == ' ';
    const size_t end = std::min(text.find_first_of(verbatim ? "\n" : " \n", begin), text.size());
    const size_t length = end - begin;
    if (column > 0 && column + 1 + length > width) {
      result += "\n" + indent;
      column = 0;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result.append(text, begin, length);
    column += length;
    if (end < text.size() && text[end] == '\n') {
      result += "\n" + indent;
      column = 0;
    }
    begin = end + 1;
  }
  return result;
}

/// A validator's values, "{a,b,c}", one by one.
std::vector<std::string> choices_of(const std::string& set) {
  std::vector<std::string> all;
  for (size_t begin = 1; begin < set.size();) {
    const size_t end = std::min(set.find_first_of(",}", begin), set.size());
    all.push_back(set.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

class WrappingFormatter : public CLI::Formatter {
 public:
  WrappingFormatter(std::vector<std::string> left_out, std::vector<std::string> only)
      : left_out_(std::move(left_out)), only_(std::move(only)) {
    column_width(kNameColumn);
  }

  // Without the empty lines that groups which are left out leave.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    std::string result;
    for (const char c : text)
      if (c != '\n' || !result.ends_with("\n\n")) result += c;
    return result;
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    const auto is_in = [&](const std::vector<std::string>& groups) {
      return std::find(groups.begin(), groups.end(), group) != groups.end();
    };
    if (is_in(left_out_) || (!only_.empty() && !is_positional && !is_in(only_))) return "";
    return CLI::Formatter::make_group(group, is_positional, std::move(options));
  }

  // The type and the default; a validator's values only where the description does not name them.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() == 0) return text;
    const std::string type = option->get_type_name();
    text = " " + type.substr(0, type.find(':'));
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " (required)";
    return text;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description() + constraint(*option), line_width() - kNameColumn, "");
  }

  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), line_width(), "") + "\n";
  }

 private:
  static std::string constraint(const CLI::Option& option) {
    const std::string type = option.get_type_name(), &description = option.get_description();
    const size_t colon = type.find(':');
    if (colon == std::string::npos || colon + 1 == type.size()) return "";
    const std::string rule = type.substr(colon + 1);
    if (rule.front() == '{') {
      std::string named;
      const auto choices = choices_of(rule);
      for (const std::string& choice : choices) named += (named.empty() ? " (" : ", ") + choice;
      const bool all = std::all_of(choices.begin(), choices.end(), [&](const std::string& choice) {
        return description.find(choice) != std::string::npos;
      });
      return all ? "" : named + ")";
    }
    const size_t range = rule.find('[');
    return range == std::string::npos ? "" : " " + rule.substr(range);
  }

  std::vector<std::string> left_out_, only_;
};

std::string footer_of(const ProgramHelp& help) {
  const size_t width = line_width();
  std::string text;
  if (!help.topics.empty()) {
    text += "More help:";
    for (const HelpTopic& topic : help.topics) text += " " + topic.flag + ",";
    text = wrapped(text + " and --help-all.", width, "  ") + "\n\n";
  }
  if (!help.examples.empty()) text += "Examples:\n";
  for (const std::string& example : help.examples) text += "  " + example + "\n";
  if (!help.examples.empty()) text += "\n";
  for (const std::string& note : help.notes) text += wrapped(note, width, "") + "\n";
  return text + wrapped(kExitCodeHelp, width, "");
}

template <class Value>
struct NumberOf {
  using Type = Value;
};
template <class Value>
struct NumberOf<std::optional<Value>> : NumberOf<Value> {};
template <class Value>
struct NumberOf<std::vector<Value>> : NumberOf<Value> {};

/// Text that is a number which Number holds. CLI11 takes what is too large as the largest, -1 of what has no
/// sign as a large number, and NaN as within every range.
template <class Number>
std::string refused_number(const std::string& text) {
  if constexpr (std::is_floating_point_v<Number>) {
    Number value = 0;
    if (CLI::detail::lexical_cast(text, value) && std::isfinite(value)) return "";
    return "expected a finite number, found " + text;
  } else {
    using Limits = std::numeric_limits<Number>;
    Number value = 0;
    errno = 0;
    const bool fits = CLI::detail::lexical_cast(text, value) && errno == 0 &&
                      (std::is_signed_v<Number> || text.find('-') == text.npos);
    return fits ? ""
                : "expected a whole number from " + std::to_string(Limits::min()) + " to " +
                      std::to_string(Limits::max()) + ", found " + text;
  }
}

/// Text that is a number for which is_valid holds.
CLI::Validator number_check(bool (*is_valid)(double), const char* wanted) {
  return CLI::Validator(
      [is_valid, wanted](const std::string& text) {
        double value = 0;
        const bool valid = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && is_valid(value);
        return valid ? std::string() : std::string("expected ") + wanted + ", found " + text;
      },
      "");
}

int exit_code(const CLI::App& app, const CLI::Error& error) {
  return app.exit(error) == 0 ? kFine : kBadInput;
}

}  // namespace

Check::Check(CLI::Validator validator, bool converts)
    : validator_(std::make_shared<const CLI::Validator>(std::move(validator))), converts_(converts) {}

Check positive() {
  return Check(number_check([](double value) { return value > 0; }, "a number above 0"));
}

Check non_negative() {
  return Check(number_check([](double value) { return value >= 0; }, "a number of at least 0"));
}

template <class Number>
Check between(Number least, Number most) {
  // CLI::Range for the help; NaN is not within it.
  const CLI::Range range(least, most);
  return Check(CLI::Validator(
      [least, most](const std::string& text) {
        Number value{};
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        return "expected a number from " + CLI::detail::to_string(least) + " to " +
               CLI::detail::to_string(most) + ", found " + text;
      },
      range.get_description()));
}
template Check between(double, double);
template Check between(int, int);
template Check between(unsigned, unsigned);

Check one_of(std::vector<std::string> names) {
  return Check(CLI::IsMember(std::move(names)));
}

Check not_empty() {
  return Check(CLI::Validator(
      [](const std::string& text) {
        return text.empty() ? std::string("expected a value, found an empty one") : std::string();
      },
      ""));
}

Check byte_size() {
  const CLI::AsSizeValue size(false);
  return Check(CLI::Validator(
                   [size](std::string& text) {
                     const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
                     return refused_number<uint64_t>(text.substr(0, end)).empty()
                                ? size(text)
                                : "expected a number of bytes such as 256MiB, found " + text;
                   },
                   size.get_description()),
               true);
}

Option* Option::group(const std::string& heading) {
  option_->group(heading);
  return this;
}

Option* Option::check(const Check& check) {
  if (check.converts())
    option_->transform(check.validator());
  else
    option_->check(check.validator());
  return this;
}

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::needs(const Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::default_str(const std::string& text) {
  option_->default_str(text);
  return this;
}

Option* Option::delimiter(char character) {
  option_->delimiter(character);
  return this;
}

Option* Option::expected(int count) {
  option_->expected(count);
  return this;
}

Option* Option::take_all() {
  option_->take_all();
  return this;
}

Option* Option::suggest(std::vector<std::string> words) {
  suggestions_ = std::move(words);
  return this;
}

size_t Option::count() const {
  return option_->count();
}

std::string Option::get_name() const {
  return option_->get_name();
}

CommandLine::CommandLine(const std::string& description) : app_(std::make_unique<CLI::App>(description)) {}
CommandLine::~CommandLine() = default;

Option* CommandLine::keep(CLI::Option* option) {
  return &options_.emplace_back(*option);
}

template <class Value>
Option* CommandLine::add_option(const std::string& name, Value& value, const std::string& description) {
  CLI::Option* const option = app_->add_option(name, value, description);
  using Number = typename NumberOf<Value>::Type;
  // After the checks that the caller adds, whose messages say more.
  if constexpr (std::is_arithmetic_v<Number>)
    last_checks_.emplace_back([option] {
      option->check(CLI::Validator([](const std::string& text) { return refused_number<Number>(text); }, ""));
    });
  return keep(option);
}
template Option* CommandLine::add_option(const std::string&, std::string&, const std::string&);
template Option* CommandLine::add_option(const std::string&, int&, const std::string&);
template Option* CommandLine::add_option(const std::string&, unsigned&, const std::string&);
template Option* CommandLine::add_option(const std::string&, long&, const std::string&);
template Option* CommandLine::add_option(const std::string&, unsigned long&, const std::string&);
template Option* CommandLine::add_option(const std::string&, float&, const std::string&);
template Option* CommandLine::add_option(const std::string&, double&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<int64_t>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<float>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<unsigned>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<int64_t>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<uint64_t>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<float>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<double>&, const std::string&);

Option* CommandLine::add_flag(const std::string& name, bool& value, const std::string& description) {
  return keep(app_->add_flag(name, value, description));
}

Option* CommandLine::add_flag(const std::string& name, std::string& value, const std::string& description) {
  return keep(app_->add_flag(name, value, description));
}

void CommandLine::set_up_help(const ProgramHelp& help) {
  CLI::App& app = *app_;
  app.name(help.program);
  app.set_version_flag("--version", help.program + " " + RT_VERSION_TEXT);
  app.footer(footer_of(help));
  app.add_flag_callback("--completion-table",
                        [this] {
                          std::fputs(completion_table().c_str(), stdout);
                          throw CLI::Success();
                        })
      ->group("");
  app.get_help_ptr()->description("Print this and exit");
  app.get_option("--version")->description("Print the version and exit");
  std::vector<std::string> left_out;
  const auto show = [&app](const std::string& flag, const std::string& description,
                           const std::vector<std::string>& only) {
    app.add_flag_callback(
        flag,
        [&app, only] {
          app.formatter(std::make_shared<WrappingFormatter>(std::vector<std::string>(), only));
          throw CLI::CallForHelp();
        },
        description);
  };
  for (const HelpTopic& topic : help.topics) {
    std::string description = "Print the options of:";
    for (const std::string& group : topic.groups) {
      left_out.push_back(group);
      description += (&group == &topic.groups.front() ? " " : ", ") + group;
    }
    show(topic.flag, description, topic.groups);
  }
  if (!help.topics.empty()) show("--help-all", "Print all options", {});
  app.formatter(std::make_shared<WrappingFormatter>(left_out, std::vector<std::string>()));
}

// A line for each option that the help has: names, what its value is (flag, words, number, text), the words,
// and the first words of the description, separated by tabs.
std::string CommandLine::completion_table() const {
  std::string table;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    const bool by_position = option->get_positional();
    if (option->get_group().empty()) continue;
    const std::string type = option->get_type_name();
    const size_t colon = type.find(':');
    std::vector<std::string> words;
    for (const Option& own : options_)
      if (own.is(*option)) words = own.suggestions();
    std::string kind = type.starts_with("TEXT") ? "text" : "number";
    if (words.empty() && colon != std::string::npos && type.substr(colon + 1).starts_with("{")) {
      words = choices_of(type.substr(colon + 1));
      kind = "words";
    } else if (!words.empty()) {
      kind = "words";
    }
    if (by_position)
      table += "-";
    else
      table += option->get_name(false, true);
    std::string description = option->get_description();
    for (char& c : description)
      if (c == '\n' || c == '\t') c = ' ';
    table += "\t" + (option->get_items_expected_max() == 0 ? "flag" : kind) + "\t";
    for (const std::string& word : words) table += (&word == &words.front() ? "" : " ") + word;
    table += "\t" + description + "\n";
  }
  return table;
}

std::vector<std::string> backends_and(std::vector<std::string> more) {
  more.insert(more.begin(), {"cpu", "vulkan", "cuda", "reference"});
  return more;
}

uint64_t milliseconds(double seconds) {
  constexpr double kMost = 1e15;
  return seconds <= 0 ? 0 : static_cast<uint64_t>(std::ceil(std::min(seconds * 1000, kMost)));
}

void CommandLine::add_last_checks() {
  for (const auto& add : last_checks_) add();
  last_checks_.clear();
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  add_last_checks();
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return exit_code(*app_, error);
  }
  return std::nullopt;
}

void CommandLine::read(std::vector<std::string> arguments) {
  add_last_checks();
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    throw ArgumentError(error.what());
  }
}

std::vector<CommandLine::Parsed> CommandLine::options() const {
  std::vector<Parsed> all;
  for (const CLI::Option* option : std::as_const(*app_).get_options())
    all.push_back({option->get_single_name(), option->get_items_expected_max() == 0, option->count() > 0,
                   option->results(), option->get_default_str()});
  return all;
}

int CommandLine::refuse(const ArgumentError& error) const {
  return exit_code(*app_, CLI::ValidationError(error.what(), CLI::ExitCodes::ValidationError));
}

}  // namespace librt::tools
