// `rtbench MODEL ...`: a table of times at some batch sizes on every device of this machine, and a
// recommendation.
//
// Knows: its command line and the order of measurements.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <span>

#include "runtime/core/cache_folder.h"
#include "tools/cli/cache_folder.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/operator_library.h"
#include "tools/cli/written_files.h"
#include "tools/data/file.h"
#include "tools/rtbench/calibrate.h"
#include "tools/rtbench/commands/commands.h"
#include "tools/rtbench/commands/what_if.h"
#include "tools/rtbench/devices.h"
#include "tools/rtbench/machine.h"
#include "tools/rtbench/measure.h"
#include "tools/rtbench/report/report.h"
#include "tools/rtbench/source.h"
#include "tools/rtbench/tolerance.h"

namespace librt::bench {
namespace {

using tools::report_failure;

struct Options {
  std::vector<std::string> models;
  std::vector<std::string> backends = {"all"};
  std::vector<int64_t> batches = {1, 8, 32};
  std::vector<std::string> dims;
  std::vector<std::string> precisions = {""};  ///< "": the model as it is
  MeasureOptions measure;
  std::vector<std::string> operator_libraries;
  std::string check = "reference";
  std::string trace;
  std::string mode = "infer";
  bool no_tuning = false;
  double time_limit = 0;  ///< seconds of one run; 0: none
  bool devices = false;
  bool measure_devices = false;
  bool list_zoo = false;
  bool clear_cache = false;
  bool json = false;
  WhatIfCommand what_if;
  bool catalogue = false;
  bool keep_busy = false;
};

std::map<std::string, int64_t> extents_of(const BenchModel& model, const rt::Model& loaded, int64_t batch,
                                          const Options& options) {
  std::map<std::string, int64_t> extents = options.measure.dims;
  int64_t fixed = 1;
  const std::string symbol = batch_symbol(model, loaded, fixed);
  if (!symbol.empty()) extents[symbol] = batch;
  return extents;
}

// Above this ratio to the stored peak its curves are not the device's either.
constexpr double kStale = 1.25;

// The device's profile. A stored peak below a throughput just reached was measured on a busy machine, so it
// is remeasured, but only once: Winograd convolutions may exceed any peak, as their operations are counted as
// in direct convolution.
rt_device_profile profile_at_least(const rt::DeviceInfo& device, double flops_per_second,
                                   const MeasureOptions& options) {
  static std::set<std::pair<std::string, int>> renewed;
  const rt_device_profile stored = device_profile(device, options, false);
  if (!stored.measured || flops_per_second <= stored.flops_f32) return stored;
  const bool is_first = renewed.insert({device.backend, device.index}).second;
  const rt_device_profile now = device_profile(device, options, is_first);
  if (is_first && now.flops_f32 > kStale * stored.flops_f32 && forget_curves(device))
    std::fprintf(stderr,
                 "rtbench: %s:%d: its profile was measured on a busy machine (%.1f GFLOP/s, now %.1f) and is "
                 "dropped; `rtbench --measure-devices` measures it again\n",
                 device.backend.c_str(), device.index, stored.flops_f32 * 1e-9, now.flops_f32 * 1e-9);
  return now;
}

// Expected outputs at the first batch size.
struct Expected {
  std::optional<Outputs> outputs;
  std::string source;  ///< "reference", or the backend
};

// What `auto` may rely on later.
struct FinishedRun {
  BenchModel model;
  rt::DeviceInfo device;
  std::map<std::string, int64_t> extents;
  double median_ms = 0;
};

// One model on all devices and batch sizes; `original` is the model before its precision was changed.
rt::Status bench_model(const BenchModel& model, const BenchModel& original,
                       const std::vector<rt::DeviceInfo>& devices, const Options& options, Expected& want,
                       std::vector<Measurement>& results, std::vector<FinishedRun>& runs) {
  auto loaded = load(model, options.measure.load);
  if (!loaded) return loaded.status();
  int64_t fixed = 1;
  std::vector<int64_t> batches = options.batches;
  if (batch_symbol(model, *loaded, fixed).empty()) {
    if (batches.size() != 1 || batches[0] != fixed)
      std::fprintf(stderr, "rtbench: %s has a fixed batch of %ld; measuring that\n", model.name.c_str(),
                   static_cast<long>(fixed));
    batches = {fixed};
  }
  for (int64_t batch : batches) {
    const auto work = work_of(model, extents_of(model, *loaded, batch, options));
    // Outputs are compared at the first batch size; further ones run the same kernels.
    const bool check = options.check != "none" && batch == batches.front();
    const bool affordable = options.check == "reference" && (!work || work->flops <= kReferenceFlops);
    if (check && !want.outputs && (affordable || is_lower(model.precision))) {
      want.source = affordable ? "reference" : devices[0].backend;
      auto outputs = outputs_of(original, want.source, batch, options.measure);
      if (!outputs) return outputs.status();
      want.outputs = std::move(*outputs);
    }
    for (const rt::DeviceInfo& device : devices) {
      if (isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r\033[K%s, batch %ld, %s ...", model.name.c_str(), static_cast<long>(batch),
                     device.name.c_str());
      Outputs outputs;
      Measurement m = measure(model, device, batch, options.measure, check ? &outputs : nullptr);
      if (m.error.empty()) {
        if (work) m.gflops = work->flops / (m.median_ms * 1e6);
        if (options.measure.in_flight == 1 && !options.measure.profile)
          runs.push_back({model, device, extents_of(model, *loaded, batch, options), m.median_ms});
        if (work && !is_lower(model.precision)) {  // the peak is that of f32
          const rt_device_profile profile = profile_at_least(device, 1e9 * m.gflops, options.measure);
          if (profile.measured) m.percent_of_peak = 100e9 * m.gflops / profile.flops_f32;
        }
        if (check && want.outputs) {
          m.error_to_reference = relative_error(outputs, *want.outputs);
          m.compared_with = want.source;
        } else if (check) {
          want = {std::move(outputs), device.backend};
        }
      }
      if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\033[K");
      results.push_back(std::move(m));
    }
  }
  return {};
}

int list_devices(const rt::Devices& devices, const Options& options) {
  std::fputs((options.json ? devices_json(devices) : devices_table(devices)).c_str(), stdout);
  return tools::kFine;
}

int measure_devices(const std::vector<rt::DeviceInfo>& devices, const Options& options) {
  int code = tools::kFine;
  for (const rt::DeviceInfo& device : devices) {
    const std::string name = device.backend + ":" + std::to_string(device.index) + " " + device.name;
    const bool terminal = isatty(STDERR_FILENO) != 0;
    const Calibration made =
        calibrate(device, options.measure, options.keep_busy, [&](const std::string& step) {
          if (terminal) std::fprintf(stderr, "\r\033[K%s: measuring %s ...", name.c_str(), step.c_str());
        });
    if (terminal) std::fprintf(stderr, "\r\033[K");
    if (made.problem.empty() && !made.busy.empty())
      std::fprintf(stderr, "rtbench: %s: kept, but %s\n", name.c_str(), made.busy.c_str());
    if (!made.problem.empty()) {
      std::fprintf(stderr, "rtbench: %s: the profile is not kept: %s\n", name.c_str(), made.problem.c_str());
      code = tools::kBadMachine;
    }
    if (!made.profile.measured) continue;
    std::printf("%s: %.1f GFLOP/s fp32 matmul, %.1f GB/s, %.1f us for a run of one node\n", name.c_str(),
                made.profile.flops_f32 * 1e-9, made.profile.memory_bandwidth * 1e-9,
                made.profile.submit_seconds * 1e6);
    std::fputs(curves_text(made.profile).c_str(), stdout);
  }
  return code;
}

int clear_cache() {
  const std::string folder = cache_folder();
  if (folder.empty()) {
    std::fprintf(stderr, "rtbench: --clear-cache: neither XDG_CACHE_HOME nor HOME is an absolute path\n");
    return tools::kBadInput;
  }
  const tools::Cleared cleared = tools::clear_cache(folder);
  for (const tools::CacheGroup& group : cleared.deleted)
    std::printf("deleted     %s: %d files, %.1f KiB\n", group.name.c_str(), group.files,
                static_cast<double>(group.bytes) / 1024);
  for (const std::string& file : cleared.remained) std::printf("not deleted %s\n", file.c_str());
  if (cleared.deleted.empty()) std::printf("nothing to delete in %s\n", folder.c_str());
  return tools::kFine;
}

int finish(const std::vector<Measurement>& results, const Machine& machine, const Options& options) {
  int code = tools::kFine;
  for (const Measurement& m : results) {
    code = std::max(code, m.exit_code);
    if (m.error_to_reference > largest_error(m.precision)) {
      std::fprintf(stderr, "rtbench: %s on %s differs from %s by %.2g of its largest output\n",
                   m.model.c_str(), m.backend.c_str(), m.compared_with.c_str(), m.error_to_reference);
      code = std::max<int>(code, tools::kDifferent);
    }
  }
  const std::string sentence = advice(results);
  if (options.json) {
    std::fputs(to_json(results, sentence, machine).c_str(), stdout);
  } else {
    for (const std::string& warning : machine.warnings) std::printf("%s\n", warning.c_str());
    std::fputs(table(results).c_str(), stdout);
    if (options.measure.profile)
      for (const Measurement& m : results)
        if (m.error.empty()) std::printf("\n%s", profile_table(m, 20).c_str());
    std::printf("\n%s", sentence.c_str());
  }
  if (!options.trace.empty()) {
    const std::string trace = chrome_trace(results);
    if (const auto status = tools::write_file(options.trace, std::as_bytes(std::span(trace))); !status.ok())
      return std::max(code, report_failure("rtbench", status));
  }
  return code;
}

// Nothing is measured: --what-if.
int predict(const std::vector<BenchModel>& models, const std::vector<rt::DeviceInfo>& own, Options& options) {
  WhatIfCommand& command = options.what_if;
  command.precisions = options.precisions;
  command.batches = options.batches;
  command.dims = options.measure.dims;
  command.threads = options.measure.threads;
  command.json = options.json;
  if (std::find(command.precisions.begin(), command.precisions.end(), "int8") != command.precisions.end()) {
    if (models.size() != 1) {
      std::fprintf(stderr, "rtbench: --what-if with int8 predicts one model at a time\n");
      return tools::kBadInput;
    }
    auto rows = calibration_rows(models[0], options.measure);
    if (!rows) return report_failure("rtbench", rows.status());
    command.rows = std::move(*rows);
  }
  return predict_devices(models, own, command);
}

int run(Options& options) {
  if (options.list_zoo) {
    std::fputs(zoo_text().c_str(), stdout);
    return tools::kFine;
  }
  if (options.clear_cache) return clear_cache();
  if (options.catalogue) return list_catalogue();
  const auto devices = rt::Devices::list();
  if (!devices) return report_failure("rtbench", devices.status());
  if (options.devices) return list_devices(*devices, options);
  const auto chosen = choose_devices(*devices, options.backends);
  if (!chosen) return report_failure("rtbench", chosen.status());
  if (options.measure_devices) return measure_devices(*chosen, options);
  if (options.models.empty()) {
    std::fprintf(stderr, "rtbench: name a MODEL.rt or zoo:NAME (rtbench --list-zoo), or use --devices\n");
    return tools::kBadInput;
  }
  if (const std::string problem = tools::add_operators(options.operator_libraries, options.measure.operators);
      !problem.empty())
    return report_failure("rtbench", rt::Status(rt::Code::InvalidArgument, problem));
  std::vector<tools::NamedFile> read = {{"--adapter", options.measure.adapter}};
  for (const std::string& source : options.models) tools::add_model(read, source);
  const tools::NamedFile written[] = {{"--trace", options.trace}};
  if (const std::string conflict = tools::conflict_of(read, written); !conflict.empty())
    return report_failure("rtbench", rt::Status(rt::Code::InvalidArgument, conflict));
  std::vector<BenchModel> models;
  for (const std::string& source : options.models) {
    int code = 0;
    auto model = open_source(source, options.mode == "train" ? Mode::Train : Mode::Infer, code);
    if (!model) return code;
    models.push_back(std::move(*model));
  }
  if (rt::Status status = check_dims(models, options.measure); !status)
    return report_failure("rtbench", status);
  if (!options.what_if.devices.empty()) return predict(models, *chosen, options);
  const MachineWatch watch;
  std::vector<Measurement> results;
  std::vector<FinishedRun> runs;
  for (const BenchModel& model : models) {
    std::string error;
    Expected want;
    std::vector<tools::Array> rows;
    if (std::find(options.precisions.begin(), options.precisions.end(), "int8") != options.precisions.end()) {
      auto made = calibration_rows(model, options.measure);
      if (!made) return report_failure("rtbench", made.status());
      rows = std::move(*made);
    }
    for (const std::string& precision : options.precisions) {
      const auto typed = in_precision(model, precision, rows, error);
      if (!typed) {
        std::fprintf(stderr, "rtbench: %s\n", error.c_str());
        return tools::kBadInput;
      }
      if (rt::Status status = bench_model(*typed, model, *chosen, options, want, results, runs); !status)
        return report_failure("rtbench", status);
    }
  }
  const Machine machine = watch.state(versions_of(*chosen));
  if (machine.warnings.empty())  // times of a busy machine are not the devices'
    for (const FinishedRun& run : runs)
      remember_run(run.model, run.device, run.extents, options.measure, run.median_ms);
  return finish(results, machine, options);
}

}  // namespace

int measure_command(int argc, char** argv) {
  tools::CommandLine app(
      "Measures models on the devices of this machine: time, throughput, memory, and the error against the "
      "reference.");
  Options options;
  app.add_option("models", options.models,
                 "MODEL.rt, zoo:NAME, or MODEL.onnx, which rtconvert compiles into the cache folder");
  app.add_option("--backend", options.backends, "all, or a list: cpu, vulkan, vulkan:1, cuda, reference")
      ->delimiter(',')
      ->capture_default_str()
      ->suggest(tools::backends_and({"all"}));
  app.add_option("--backends", options.backends)->delimiter(',')->group("");  // its earlier name
  app.add_option("--batch", options.batches, "Batch sizes")
      ->delimiter(',')
      ->check(tools::positive())
      ->capture_default_str();
  app.add_option("--dim", options.dims, "NAME=EXTENT of another dynamic dimension, for example sequence=128");
  app.add_option(
         "--mode", options.mode,
         "infer, or train: steps of forward, backward and optimizer, for models of rtconvert --train; "
         "models of the zoo train with cross entropy and Adam")
      ->check(tools::one_of({"infer", "train"}))
      ->capture_default_str();
  tools::Option* rate =
      app.add_option("--lr", options.measure.learning_rate, "train: learning rate")->capture_default_str();
  tools::Option* target =
      app.add_option("--target-loss", options.measure.target_loss,
                     "train: also time until the loss on the one random batch is no larger");
  tools::add_model_options(app, options.measure.load);
  app.add_option("--threads", options.measure.threads, "CPU threads; 0: all this process may use");
  app.add_option("--precision", options.precisions,
                 "fp32, fp16, bf16, int8, int8-weights, int4-weights, or several: the model as rtconvert "
                 "--precision makes it, with int8 calibrated on seeded random inputs; tf32: f32 on CUDA's "
                 "tensor cores; errors are against the original model")
      ->delimiter(',')
      ->check(tools::one_of(precisions()));
  app.add_option(
      "--adapter", options.measure.adapter,
      "Adapter of rtconvert --save-adapter, also FILE.safetensors, for models compiled with --lora");
  app.add_option("--operators", options.operator_libraries, tools::kOperatorsHelp);
  app.add_option("--in-flight", options.measure.in_flight,
                 "2: keep two runs in flight, so that transfers overlap compute; times are then from the end "
                 "of one run to the end of the next")
      ->check(tools::between(1, 2))
      ->capture_default_str();
  app.add_option("--time", options.measure.seconds, "Seconds of runs for each row, after warm-up")
      ->check(tools::positive())
      ->capture_default_str();
  app.add_option("--time-limit", options.time_limit,
                 "Seconds that one run may take, planning included; a row that takes more is an error")
      ->check(tools::positive());
  app.add_option("--check", options.check,
                 "What outputs are compared with, at the first batch size: reference (large models: the "
                 "first backend), "
                 "or none")
      ->check(tools::one_of({"reference", "none"}))
      ->capture_default_str();
  app.add_flag("--no-tuning", options.no_tuning, "Choose kernels by rule instead of by timing");
  app.add_flag("--profile", options.measure.profile, "Time of every node");
  app.add_option("--trace", options.trace, "Write the profile as a Chrome trace (JSON)");
  app.add_flag("--devices", options.devices, "List devices, what they can do, and what is missing");
  app.add_flag(
      "--measure-devices", options.measure_devices,
      "Measure what nodes of every kind take on the devices, and store it for predictions and for the "
      "backend auto: about ten seconds for each device, while nothing else runs");
  app.add_flag("--keep-busy", options.keep_busy,
               "--measure-devices: store a profile although the machine was busy with other work");
  tools::Option* what_if =
      app.add_option(
             "--what-if", options.what_if.devices,
             "Predict instead of measuring: times, knee, crossovers, energy and cost on devices of the "
             "catalogue (--catalogue) or of .json files like it, beside this machine's measured ones; here: "
             "those alone")
          ->delimiter(',');
  app.add_option(
         "--price", options.what_if.price,
         "--what-if: prices per hour, DEVICE=PRICE,..., for example cpu=0.17,l4=0.71; idle time counts")
      ->check(tools::not_empty())
      ->needs(what_if);
  app.add_option("--electricity", options.what_if.electricity, "--what-if: price of a kWh")
      ->check(tools::not_empty())
      ->needs(what_if);
  app.add_flag("--catalogue", options.catalogue, "List the devices that --what-if knows, with sources");
  app.add_flag("--clear-cache", options.clear_cache,
               "Delete librt's files in the cache folder; while no other program uses librt");
  app.add_flag("--list-zoo", options.list_zoo, "List the models of the zoo");
  app.add_flag("--json", options.json, "Results as JSON");
  app.set_up_help(
      {.program = "rtbench",
       .examples =
           {"rtbench resnet50.rt --backend all --batch 1,8,32", "rtbench study resnet50.rt --budget 5min",
            "rtbench zoo:lenet5 --precision fp32,bf16,int8", "rtbench net.rt --mode train --batch 8,32",
            "rtbench net.rt --what-if l4,jetson_orin_nano_super --price l4=0.71", "rtbench --devices"},
       .notes = {"Commands, each with a --help of its own:\n" + commands_text(), tools::kCacheHelp,
                 "Models of the zoo (seeded weights, built in memory):\n" + zoo_text()}});
  if (const auto code = app.parse(argc, argv)) return *code;
  if (options.mode != "train" && (rate->count() > 0 || target->count() > 0)) {
    std::fprintf(stderr, "rtbench: --lr and --target-loss are for --mode train\n");
    return tools::kBadInput;
  }
  options.measure.time_limit_ms = tools::milliseconds(options.time_limit);
  options.measure.tuning = !options.no_tuning;
  options.measure.profile |= !options.trace.empty();
  if (options.measure.profile && options.measure.in_flight > 1) {
    std::fprintf(stderr,
                 "rtbench: --profile and --trace time nodes of one run at a time; leave out --in-flight\n");
    return tools::kBadInput;
  }
  if (rt::Status status = read_dims(options.dims, options.measure.dims); !status)
    return report_failure("rtbench", status);
  return run(options);
}

}  // namespace librt::bench
