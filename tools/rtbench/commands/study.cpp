// `rtbench study MODEL ...`: every device, precision and batch size of a model, and a verdict. And `rtbench
// study NAME`: one of the experiments.
//
// Knows: its command line, Ctrl-C, where results go.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/cli/cache_folder.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/written_files.h"
#include "tools/rtbench/catalogue.h"
#include "tools/rtbench/commands/commands.h"
#include "tools/rtbench/commands/experiment.h"
#include "tools/rtbench/peer/peer.h"
#include "tools/rtbench/report/output.h"
#include "tools/rtbench/report/store.h"
#include "tools/rtbench/source.h"
#include "tools/rtbench/study/budget.h"
#include "tools/rtbench/study/engine.h"
#include "tools/rtbench/study/predicted.h"
#include "tools/rtbench/study/text.h"

namespace librt::bench {
namespace {

struct CommandOptions {
  StudyOptions study;
  ReportOptions report;
  std::string mode = "infer", budget;
  std::vector<std::string> dims, what_if;
  bool no_tuning = false, no_check = false, list = false;
  // For rttrain, with its names:
  struct Passed {
    std::string name;  ///< of rttrain
    std::string value;
  };
  std::vector<std::string> data, validation;
  std::vector<Passed> passed;
};

// Options that rttrain gets as they are: the name here, the name there, the help.
struct PassedOption {
  const char *here, *there, *help;
};
constexpr PassedOption kPassed[] = {
    {"--labels", "--labels", "IDX file with the labels of --data"},
    {"--validate-labels", "--validate-labels", "IDX file with the labels of --validate"},
    {"--validate-fraction", "--validate-fraction", "Keep this part of --data for validation"},
    {"--label-column", "--label-column", "Tables: name or index of the label's column"},
    {"--scale", "--scale", "Factor for float inputs, for example 0.00392157 for bytes"},
    {"--mean", "--mean", "Mean subtracted after scaling"},
    {"--std", "--std", "Divisor after that"},
    {"--lr", "--lr", "Learning rate"},
    {"--epochs", "--epochs", "Passes over the data, at most"},
    {"--train-batch", "--batch", "Samples in a step"},
};

void declare(tools::CommandLine& app, CommandOptions& options) {
  StudyOptions& study = options.study;
  app.add_option(
      "model", study.model,
      "MODEL.rt, zoo:NAME, or MODEL.onnx, which rtconvert compiles into the cache folder; or the name of "
      "an experiment");
  app.add_flag("--list", options.list, "List the experiments: what each shows, needs and takes");
  app.add_option("--backend", study.backends, "all, or a list: cpu, vulkan, vulkan:1, cuda")
      ->delimiter(',')
      ->capture_default_str()
      ->suggest(tools::backends_and({"all"}));
  app.add_option("--mode", options.mode, "infer, train (training steps), or both")
      ->check(tools::one_of({"infer", "train", "both"}))
      ->capture_default_str();
  app.add_option(
         "--precision", study.precisions,
         "fp32, tf32, fp16, bf16, int8, int8-weights, int4-weights. Default: all that the mode has, but the "
         "last two")
      ->delimiter(',')
      ->check(tools::one_of(precisions()));
  app.add_option(
      "--budget", options.budget,
      "Time for the whole study, such as 30s, 5min or 1h: the plan is fitted into it. Default: no limit");
  app.add_option("--time", study.measure.seconds, "Seconds of runs for each point, at most about twice that")
      ->check(tools::positive())
      ->capture_default_str();
  app.add_option(
         "--what-if", options.what_if,
         "Also predict inference in fp32 on devices of the catalogue (rtbench --catalogue) or of .json "
         "files, beside the measured ones")
      ->delimiter(',');
  app.add_option("--largest-batch", study.largest_batch, "Batches are doubled up to this")
      ->check(tools::positive())
      ->capture_default_str();
  app.add_option("--memory", study.measure.memory_limit, "Bytes that a session may take, for example 2GiB")
      ->check(tools::byte_size())
      ->check(tools::positive());
  app.add_option(
         "--price", study.price,
         "What an hour of a device costs: cpu=0.17,cuda=3.99, or cuda:1=2.50; also of --what-if: l4=0.71")
      ->check(tools::not_empty());
  app.add_option("--electricity", study.electricity,
                 "What a kWh costs, for devices whose power can be read, or is stated (--what-if)")
      ->check(tools::not_empty());
  app.add_option("--dim", options.dims, "NAME=EXTENT of another dynamic dimension, for example sequence=128");
  app.add_option("--threads", study.measure.threads, "CPU threads; 0: all this process may use")
      ->check(tools::non_negative());
  app.add_flag("--no-tuning", options.no_tuning, "Choose kernels by rule instead of by timing");
  app.add_flag("--no-check", options.no_check, "Do not compare outputs with those of fp32");
  tools::add_model_options(app, study.measure.load);
  app.add_option("--peer", study.peers,
                 "Other engines to measure in turn with the CPU, on the same ONNX file, threads and inputs: "
                 "onnxruntime, openvino, torch, ncnn, mnn, where they are installed")
      ->delimiter(',')
      ->check(tools::one_of(peer_engines()));
  app.add_option("--peer-python", study.peer_python, "The Python that has them")->capture_default_str();
  const std::string report = "Report";
  app.add_option("--html", options.report.html,
                 "Write a report with charts: one file that needs no network; - is stdout")
      ->group(report)
      ->check(tools::not_empty());
  app.add_option("--markdown", options.report.markdown, "Write the report as Markdown; - is stdout")
      ->group(report)
      ->check(tools::not_empty());
  app.add_option("--csv", options.report.csv, "Write the points as a table; - is stdout")
      ->group(report)
      ->check(tools::not_empty());
  app.add_flag("--json", options.report.json, "The study as JSON on stdout (study.schema.json)")
      ->group(report);
  app.add_option("--save", options.report.save, "Folder to keep the study in, for compare and history")
      ->group(report)
      ->check(tools::not_empty());
  app.add_flag("--no-save", options.report.no_save, "Do not keep the study")->group(report);
  const std::string group = "Time to a target, by rttrain";
  app.add_option("--data", options.data, "Training data, as for rttrain: each device trains on it")
      ->group(group);
  app.add_option("--validate", options.validation, "Validation data")->group(group);
  app.add_option("--target", study.target.target,
                 "METRIC=VALUE, for example accuracy=0.985: the seconds until the validation reaches it")
      ->group(group);
  app.add_option("--seed", study.target.seed, "Order of the samples, the same on every device")->group(group);
  options.passed.reserve(std::size(kPassed));  // the command line keeps references
  for (const PassedOption& passed : kPassed) {
    options.passed.push_back({passed.there, {}});
    app.add_option(passed.here, options.passed.back().value, passed.help)->group(group);
  }
}

rt::Status invalid(const std::string& text) {
  return rt::Status(rt::Code::InvalidArgument, text);
}

// Whether a report would replace what the study reads; empty: no.
std::string conflict_of(const CommandOptions& options) {
  std::vector<tools::NamedFile> read;
  tools::add_model(read, options.study.model);
  for (const std::string& file : options.data) read.push_back({"--data", file});
  for (const std::string& file : options.validation) read.push_back({"--validate", file});
  for (const std::string& file : options.what_if) read.push_back({"--what-if", file});
  for (size_t i = 0; i < options.passed.size(); ++i)
    if (options.passed[i].name.ends_with("labels"))
      read.push_back({kPassed[i].here, options.passed[i].value});
  const tools::NamedFile written[] = {{"--html", options.report.html},
                                      {"--markdown", options.report.markdown},
                                      {"--csv", options.report.csv}};
  return tools::conflict_of(read, written);
}

// What studies and experiments have in common.
rt::Status check_common(CommandOptions& options) {
  if (const std::string problem = problem_of(options.report); !problem.empty()) return invalid(problem);
  if (const std::string conflict = conflict_of(options); !conflict.empty()) return invalid(conflict);
  StudyOptions& study = options.study;
  if (!options.budget.empty()) {
    study.budget_seconds = parse_duration(options.budget);
    if (!study.budget_seconds)
      return invalid("--budget: expected a time above 0 such as 30s, 5min or 1h, found '" + options.budget +
                     "'");
  }
  if (options.mode == "train")
    study.modes = {Mode::Train};
  else if (options.mode == "both")
    study.modes = {Mode::Infer, Mode::Train};
  study.measure.tuning = !options.no_tuning;
  study.check = !options.no_check;
  return {};
}

rt::Status check(CommandOptions& options) {
  if (rt::Status status = check_common(options); !status) return status;
  StudyOptions& study = options.study;
  TargetOptions& target = study.target;
  if (options.data.empty()) {
    if (!target.target.empty()) return invalid("--target needs --data, to train on");
    if (!options.validation.empty()) return invalid("--validate needs --data, to train on");
    for (size_t i = 0; i < options.passed.size(); ++i)
      if (!options.passed[i].value.empty())
        return invalid(std::string(kPassed[i].here) + " needs --data, to train on");
    return {};
  }
  if (options.mode == "infer") return invalid("--data needs --mode train or both");
  if (!target.target.empty() && target.target.find('=') == std::string::npos)
    return invalid("--target " + target.target + ": expected METRIC=VALUE");
  bool validates = !options.validation.empty();
  for (const std::string& file : options.data)
    target.arguments.insert(target.arguments.end(), {"--data", file});
  for (const std::string& file : options.validation)
    target.arguments.insert(target.arguments.end(), {"--validate", file});
  for (const CommandOptions::Passed& passed : options.passed) {
    if (passed.value.empty()) continue;
    validates |= passed.name == "--validate-fraction";
    target.arguments.insert(target.arguments.end(), {passed.name, passed.value});
  }
  if (!target.target.empty() && !validates)
    return invalid("--target needs --validate or --validate-fraction");
  return {};
}

// A name without a dot or a slash that is no file is meant as an experiment's.
bool is_unknown_name(const std::string& model) {
  std::error_code error;
  return model.find_first_of("./:") == std::string::npos && !std::filesystem::exists(model, error);
}

// Runs the experiment with the options that it takes; the others are refused.
int run_as_experiment(const Experiment& experiment, const tools::CommandLine& app,
                      const CommandOptions& options, int argc, char** argv) {
  if (const std::string refused = refused_option(experiment, app); !refused.empty())
    return tools::report_failure("rtbench study", invalid(refused));
  const StudyOptions& study = options.study;
  ExperimentOptions wanted{.backends = study.backends,
                           .precisions = study.precisions,
                           .modes = {},
                           .data = options.data.empty() ? std::string() : options.data.front(),
                           .budget_seconds = study.budget_seconds,
                           .largest_batch = study.largest_batch,
                           .tuning = study.measure.tuning,
                           .threads = study.measure.threads,
                           .seed = study.target.seed,
                           .arguments = {"study"}};
  if (is_given(app, "mode")) wanted.modes = study.modes;
  wanted.arguments.insert(wanted.arguments.end(), argv + 1, argv + argc);
  return experiment_command(experiment, wanted,
                            {.markdown = options.report.markdown, .json = options.report.json});
}

int finish(const Study& study, const ReportOptions& report) {
  if (!uses_stdout(report)) std::fputs(study_text(study).c_str(), stdout);
  const int written = write_reports(study, report);
  if (written != tools::kFine) return written;
  if (study.interrupted) return tools::kInterrupted;
  bool measured = false, different = false;
  for (const Series& series : study.series) {
    measured |= !series.points.empty();
    different |= series.difference && series.difference->relative > series.difference->allowed;
  }
  if (!measured) {
    std::fprintf(stderr, "rtbench study: nothing was measured; the reasons are in the result\n");
    return tools::kBadMachine;
  }
  return different ? tools::kDifferent : tools::kFine;
}

}  // namespace

int study_command(int argc, char** argv) {
  tools::CommandLine app(
      "Measures a model on every device of this machine in every precision, doubles the batch until "
      "throughput "
      "flattens, looks for the batches from which one device overtakes another, and ends with a verdict. "
      "With the "
      "name of an experiment instead of a model: runs that, and sets articles' figures beside its own.");
  CommandOptions options;
  declare(app, options);
  app.set_up_help(
      {.program = "rtbench study",
       .examples =
           {"rtbench study resnet50.rt --budget 5min",
            "rtbench study zoo:resnet18 --mode both --backend cpu,vulkan", "rtbench study --list",
            "rtbench study perceptron --backend cpu",
            "rtbench study net.rt --mode train --data train.npz --validate test.npz --target accuracy=0.985"},
       .notes = {experiment_help(),
                 "Ctrl-C ends the study: what was measured is printed, with the verdict that it allows; the "
                 "exit code is "
                 "then 130. A second one ends the program at once.",
                 kStoreHelp, tools::kCacheHelp}});
  if (const auto code = app.parse(argc, argv)) return *code;
  for (int i = 0; i < argc; ++i) options.study.arguments.emplace_back(argv[i]);
  options.study.arguments[0] = "study";
  if (options.list) {
    std::fputs(experiments_text().c_str(), stdout);
    return tools::kFine;
  }
  const Experiment* experiment = find_experiment(options.study.model);
  if (experiment == nullptr && is_unknown_name(options.study.model))
    return tools::report_failure("rtbench study", unknown_name(options.study.model));
  rt::Status status = experiment != nullptr ? check_common(options) : check(options);
  if (status.ok() && experiment != nullptr) return run_as_experiment(*experiment, app, options, argc, argv);
  if (status.ok()) status = read_dims(options.dims, options.study.measure.dims);
  if (!status) return tools::report_failure("rtbench study", status);
  StopRequest stop;
  tools::Interrupt interrupt([](void* target) { static_cast<StopRequest*>(target)->request(); }, &stop);
  std::string error;
  if (!options.what_if.empty()) {  // before the hours of a study
    const auto described = described_devices(options.what_if, error);
    if (!described) return tools::report_failure("rtbench study", invalid(error));
    for (const DeviceDescription& device : *described) options.study.predicted.push_back(device.name);
  }
  auto study = run_study(options.study, stop);
  if (stop.requested()) interrupt.answer();
  if (!study)
    return study.status().message().empty() ? tools::exit_code_of(study.status().code())
                                            : tools::report_failure("rtbench study", study.status());
  if (!options.what_if.empty() && !add_predictions(*study, options.what_if, options.study, error))
    std::fprintf(stderr, "rtbench study: --what-if: %s\n", error.c_str());
  return finish(*study, options.report);
}

}  // namespace librt::bench
