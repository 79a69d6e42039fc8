// rtconvert: compiles a model into a .rt file.
//
// Knows: the command line, and what goes to stdout and to stderr. Must not know: how a model is compiled,
// which is librt_compiler's.
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "rt/compiler.hpp"
#include "tools/cli/exit_code.h"
#include "tools/cli/program.h"
#include "tools/cli/terminal.h"
#include "tools/convert/options.h"

namespace librt::convert {
namespace {

using Json = nlohmann::ordered_json;

int list_ops(bool json) {
  const char* list = rt_compiler_operators();
  if (list == nullptr) throw std::bad_alloc();
  if (json) {
    std::puts(list);
    return tools::kFine;
  }
  for (const Json& op : Json::parse(list)) {
    const Json& last = op["last_opset"];
    std::printf("%s %s %d%s\n", op["domain"].get<std::string>().c_str(), op["op"].get<std::string>().c_str(),
                op["first_opset"].get<int>(),
                last.is_null() ? "+" : ("-" + std::to_string(last.get<int>())).c_str());
  }
  return tools::kFine;
}

int list_passes() {
  const char* list = rt_compiler_passes();
  if (list == nullptr) throw std::bad_alloc();
  for (const Json& pass : Json::parse(list))
    std::printf("%s: %s\n", pass["pass"].get<std::string>().c_str(),
                pass["summary"].get<std::string>().c_str());
  return tools::kFine;
}

/// Says on stderr what takes long, once each.
class Notes {
 public:
  explicit Notes(const Options& options) : options_(options) {}

  bool operator()(std::string_view stage, uint64_t, uint64_t) {
    if (stage == last_) return true;
    last_ = stage;
    if (stage == "import" && options_.verbose) std::fprintf(stderr, "reading %s\n", options_.input.c_str());
    if (stage == "measure")
      std::fprintf(stderr, "measuring each node in %s; large models take a while\n",
                   options_.precision.c_str());
    if (stage == "verify")
      std::fputs("verifying with reference arithmetic; large models take a while\n", stderr);
    return true;
  }

 private:
  const Options& options_;
  std::string last_;
};

rt::Compilation compile(const Parsed& parsed) {
  const Options& options = parsed.options;
  rt::CompilerOptions wanted;
  wanted.output = options.output;
  const bool compiles = options.memory_report && options.source() != Source::Compiled;
  wanted.check_only = options.output.empty() && !options.verify && !options.writes_weights() && !compiles;
  for (const Setting& setting : parsed.settings) wanted.settings.emplace_back(setting.name, setting.value);
  wanted.progress = Notes(options);
  return rt::Compilation::of_file(options.input, wanted);
}

/// A report, which names what is in the model.
void print(std::string_view report) {
  const std::string text = tools::printable(report, tools::Lines::Several);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int convert(const Parsed& parsed) {
  const Options& options = parsed.options;
  const rt::Compilation made =
      options.trim.empty() ? compile(parsed) : rt::Compilation::trim(options.trim, options.output);
  if (options.verbose) std::fputs(std::string(made.passes()).c_str(), stderr);
  print(made.graph());
  if (options.json && !made.json().empty()) {
    const std::string json = std::string(made.json()) + "\n";
    std::fwrite(json.data(), 1, json.size(), stdout);
  } else if (!options.json) {
    for (const std::string& warning : made.ok() ? made.warnings() : std::vector<std::string>())
      std::fprintf(stderr, "warning: %s\n", tools::printable(warning, tools::Lines::Several).c_str());
    print(made.text());
  }
  if (!made.ok()) return tools::report_failure("rtconvert", made.status());
  return made.report().different > 0 ? tools::kDifferent : tools::kFine;
}

int command_line(int argc, char** argv) {
  const Parsed parsed = parse_options(argc, argv);
  if (parsed.leave) return parsed.exit_code;
  if (parsed.options.list_ops) return list_ops(parsed.options.json);
  if (parsed.options.list_passes) return list_passes();
  return convert(parsed);
}

}  // namespace
}  // namespace librt::convert

int main(int argc, char** argv) {
  return librt::tools::run_program("rtconvert", argc, argv, librt::convert::command_line);
}
