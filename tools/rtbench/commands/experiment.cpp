#include "tools/rtbench/commands/experiment.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "tools/cli/exit_code.h"
#include "tools/cli/interrupt.h"
#include "tools/data/file.h"
#include "tools/rtbench/experiments/result_text.h"

namespace librt::bench {
namespace {

std::string list_text(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "--" : ", --") + std::string(name);
  return text;
}

int write_file(const std::string& path, const std::string& text) {
  const Status written = tools::write_file(path, std::as_bytes(std::span(text)));
  if (!written.ok()) return tools::report_failure("rtbench study", written);
  std::fprintf(stderr, "rtbench study: wrote %s\n", path.c_str());
  return tools::kFine;
}

}  // namespace

bool is_given(const tools::CommandLine& app, const std::string& option) {
  const auto options = app.options();
  return std::any_of(options.begin(), options.end(),
                     [&](const auto& parsed) { return parsed.name == option && parsed.is_given; });
}

std::string refused_option(const Experiment& experiment, const tools::CommandLine& app) {
  std::vector<std::string_view> taken(common_options().begin(), common_options().end());
  taken.insert(taken.end(), experiment.options.begin(), experiment.options.end());
  for (const auto& parsed : app.options()) {
    if (!parsed.is_given || parsed.name == "model") continue;
    if (std::find(taken.begin(), taken.end(), parsed.name) != taken.end()) continue;
    return "--" + parsed.name + ": the experiment " + std::string(experiment.name) +
           " does not take it; it takes " + list_text(taken);
  }
  return {};
}

rt::Status unknown_name(const std::string& name) {
  const std::string listed =
      "`rtbench study --list` lists the experiments, `rtbench --help` the networks zoo:NAME";
  if (name.empty())
    return rt::Status(rt::Code::InvalidArgument, "expected a model or the name of an experiment; " + listed);
  const std::string question = nearest_question(name);
  return rt::Status(rt::Code::InvalidArgument,
                    "'" + name + "': there is no experiment and no file of this name" +
                        (question.empty() ? "; " : "; " + question + " ") + listed);
}

int experiment_command(const Experiment& experiment, const ExperimentOptions& options,
                       const ExperimentForms& forms) {
  StopRequest stop;
  tools::Interrupt interrupt([](void* target) { static_cast<StopRequest*>(target)->request(); }, &stop);
  const auto result = run_experiment(experiment, options, stop);
  if (stop.requested()) interrupt.answer();
  if (!result) return tools::report_failure("rtbench study", result.status());
  const std::string text = forms.json              ? experiment_json(*result)
                           : forms.markdown == "-" ? experiment_markdown(*result)
                                                   : experiment_text(*result);
  std::fputs(text.c_str(), stdout);
  if (!forms.markdown.empty() && forms.markdown != "-")
    if (const int code = write_file(forms.markdown, experiment_markdown(*result)); code != tools::kFine)
      return code;
  if (result->interrupted) return tools::kInterrupted;
  // Findings without a number: that there is nothing to measure here.
  if (has_measured(*result) || !result->findings.empty()) return tools::kFine;
  std::fprintf(stderr, "rtbench study: nothing was measured; the reasons are in the result\n");
  return tools::kBadMachine;
}

std::string experiment_help() {
  std::string names;
  for (const Experiment& experiment : experiments())
    names += (names.empty() ? "" : ", ") + std::string(experiment.name);
  std::string common;
  for (const std::string_view name : common_options())
    common += (common.empty() ? "--" : ", --") + std::string(name);
  return "Experiments: " + names + ". They take " + common +
         ", and some the options that their subject has; others are refused. Where a file has the name of an "
         "experiment, ./NAME is the file.";
}

}  // namespace librt::bench
