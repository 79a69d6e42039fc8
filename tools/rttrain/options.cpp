#include "tools/rttrain/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/cli/operator_library.h"
#include "tools/cli/written_files.h"
#include "tools/data/number.h"
#include "tools/rttrain/checkpoints.h"

namespace rt::train {
namespace {

void declare_data(librt::tools::CommandLine& app, Options& options) {
  const std::string group = "Data";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->group(group);
  };
  const auto flag = [&](const char* name, bool& value, const char* help) {
    app.add_flag(name, value, help)->group(group);
  };
  add("--data", options.training.paths,
      "Training data: .npz with one array for each input; .csv or .tsv; a folder with a subfolder of images "
      "for each class; .npy or IDX files (plain or .gz) with --labels; a .txt for language models")
      ->required();
  add("--labels", options.training.labels, "IDX or .npy file with the labels of --data");
  add("--validate", options.validation.paths, "Validation data, measured after each epoch");
  add("--validate-labels", options.validation.labels, "IDX or .npy file with the labels of --validate");
  add("--validate-fraction", options.validate_fraction,
      "Keep this part of --data for validation: samples chosen by --seed; of a text its end")
      ->check(librt::tools::between(0.0, 0.9));
  add("--format", options.data.format, "Format of the data, where name and content do not determine it")
      ->check(librt::tools::one_of({"auto", "npz", "npy", "csv", "tsv", "idx", "images", "text"}))
      ->capture_default_str();
  flag("--no-header", options.no_header, "Tables: the first line is data; columns are numbered from 0");
  add("--label-column", options.data.label_column,
      "Tables: name or index; default: label, labels, target, class or y");
  add("--columns", options.data.columns, "Tables: the numeric columns to use; default: all but the label")
      ->delimiter(',');
  add("--text-column", options.data.text_column,
      "Tables of texts, for models that read tokens: name or index; default: the first that is no label");
  flag("--standardize", options.data.standardize,
       "Tables: scale columns to mean 0 and deviation 1 of the training data");
  flag("--skip-missing", options.data.skip_missing, "Tables: leave out rows with empty fields");
  add("--tokenizer", options.data.tokenizer, "Texts: bytes, or a tokenizer file of llama2.c (.bin)")
      ->capture_default_str();
  add("--sequence", options.data.sequence, "Texts: tokens of a sample, where the model has a dynamic length")
      ->check(librt::tools::positive());
  add("--stride", options.data.stride, "Texts: from one window to the next; default: the window's length")
      ->check(librt::tools::positive());
  add("--padding", options.data.padding, "Tables of texts: padding token after a short text")
      ->capture_default_str();
  add("--size", options.data.size, "Images: HEIGHT,WIDTH, where they are dynamic in the model")
      ->delimiter(',')
      ->expected(2);
  flag("--bgr", options.data.bgr, "Images: BGR channel order");
  add("--cache", options.data.cache_bytes, "Images: cache of decoded images, for example 512MiB")
      ->check(librt::tools::byte_size())
      ->default_str("512MiB");
  add("--scale", options.normalization.scale, "Factor for float inputs, for example 0.00392157 for bytes");
  add("--mean", options.normalization.mean, "Mean subtracted after scaling: one value, or one per channel")
      ->delimiter(',');
  add("--std", options.normalization.deviation, "Divisor after that: one value, or one per channel")
      ->delimiter(',');
  add("--augment", options.augment,
      "Training images: flip (horizontally, with probability 0.5), crop=N (shifted by up to N pixels)")
      ->delimiter(',');
  flag("--no-shuffle", options.no_shuffle, "Take the samples in file order");
  flag("--drop-last", options.loop.drop_last, "Leave out the last, smaller batch of an epoch");
  add("--workers", options.loop.workers, "Threads that prepare batches; 0: none. Batches do not depend on it")
      ->check(librt::tools::between(0u, 256u))
      ->capture_default_str();
  add("--prefetch", options.loop.prefetch, "Batches prepared ahead")
      ->check(librt::tools::between(1u, 4096u))
      ->capture_default_str();
}

void declare_training(librt::tools::CommandLine& app, Options& options) {
  const std::string group = "Training";
  LoopOptions& loop = options.loop;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->group(group);
  };
  // CLI11 would take -1 for the largest unsigned number.
  const auto add_count = [&](const char* name, auto& value, const char* help) {
    return add(name, value, help)->check(librt::tools::non_negative());
  };
  add("--epochs", loop.epochs, "Passes over the training data")
      ->check(librt::tools::positive())
      ->capture_default_str();
  add_count("--steps", loop.steps, "Stop after so many steps; 0: --epochs decides")->capture_default_str();
  options.batch = add("--batch", loop.batch,
                      "Samples in a step; default: that of rtconvert --memory, of the model's inputs where "
                      "they fix it, or 32")
                      ->check(librt::tools::positive());
  options.micro_batch =
      add("--micro-batch", loop.micro_batch,
          "Samples computed at once, also in validation: a batch's gradients are accumulated and make one "
          "step; for models of rtconvert --train --accumulate. Default: what rtconvert --memory has chosen, "
          "or the batch");
  options.memory =
      add("--memory", options.session.memory_limit,
          "Bytes that training may take, for example 256MiB: weights, optimizer, working memory and "
          "copies of inputs. Planned and printed before anything runs; too little is an error. "
          "Default: that of rtconvert --memory, or no limit")
          ->check(librt::tools::byte_size())
          ->check(librt::tools::positive());
  options.learning_rate =
      add("--lr", loop.learning_rate,
          "Learning rate. Default: that of the model's optimizer: sgd, adagrad 0.01; adam, adamw, rmsprop, "
          "lamb 0.001; lion 0.0001; adadelta 1")
          ->check(librt::tools::non_negative());
  add("--schedule", options.schedule,
      "constant; step,every=N,gamma=0.1; linear,steps=N,end=0; cosine,steps=N,end=0; "
      "one_cycle,steps=N,rise=0.3,start=0.04,end=0.0001: factor of --lr. Default of steps: those of the "
      "whole training. All but one_cycle take warmup=N")
      ->capture_default_str();
  app.add_flag("--allow-nonfinite", loop.allow_nonfinite,
               "Continue if data, a loss or the weights to save are NaN or infinite. Default: an error that "
               "names the sample, the step or the weights and keeps the last good checkpoint")
      ->group(group);
  add_count("--seed", loop.seed, "Order of the samples, and augmentation")->capture_default_str();
  add("--top-k", loop.scoring.top_k, "K of the metric topK")
      ->check(librt::tools::positive())
      ->capture_default_str();
  add("--target", options.target,
      "METRIC=VALUE, for example accuracy=0.985: stop when the validation reaches it; exit code 1 when it "
      "never does");
  add_count("--patience", loop.patience, "Stop after so many epochs without a better value of --monitor");
  add("--monitor", loop.monitor,
      "Validation metric for --patience and --best: loss, accuracy, topK, f1_macro, perplexity; mse, mae; "
      "loss, label_error_rate, sequence_accuracy (ctc). "
      "Default: that of --target, or loss (mse)");
  add("--backend", options.session.backend, "cpu, vulkan, cuda, reference or auto")
      ->capture_default_str()
      ->suggest(librt::tools::backends_and({"auto"}));
  add("--prefer", options.session.prefer,
      "What the backend auto minimizes: latency (of a step), throughput (at batch 32) or energy")
      ->check(librt::tools::one_of({"latency", "throughput", "energy"}));
  add("--device", options.session.device,
      "Device of the backend: index, part of its name, or UUID. Default: the backend's choice; of cuda, one "
      "GPU for each rank on this machine");
  add("--time-limit", options.time_limit,
      "Seconds that a step, a micro-batch or a batch of the validation may take, planning included; more is "
      "an error, and the last checkpoint stays. Checked between nodes, not within one, nor while a GPU "
      "computes")
      ->check(librt::tools::positive());
  add("--operators", options.operator_libraries, librt::tools::kOperatorsHelp);
  librt::tools::add_model_options(app, options.load, group);
  add_count("--threads", options.session.threads, "CPU threads; 0: all this process may use");
  app.add_flag("--deterministic{ranks}", options.deterministic,
               "Equal results, bit for bit, from run to run and for any number of processes; several need "
               "--micro-batch and --threads. With =run only for the same number of processes")
      ->check(librt::tools::one_of({"ranks", "run"}))
      ->group(group);
  add("--share", options.share,
      "Several processes: which part of a batch each gets: equal; auto, in the proportion of their measured "
      "speed, for unequal devices; or a number for each such as 3,1. Results are those of one process within "
      "rounding")
      ->capture_default_str();
  add("--rank-timeout", options.ranks.answer,
      "Several processes: seconds after which a process that does not answer ends the training: it was "
      "stopped, or its machine cannot be reached")
      ->check(librt::tools::positive())
      ->capture_default_str();
  add("--rank-wait", options.ranks.wait,
      "Several processes: seconds that they wait for one that answers, but is slower; 0: no limit")
      ->check(librt::tools::non_negative())
      ->capture_default_str();
}

void declare_files(librt::tools::CommandLine& app, Options& options) {
  const std::string group = "Checkpoints and logs";
  LoopOptions& loop = options.loop;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->group(group);
  };
  auto* checkpoint = add(
      "--checkpoint", loop.checkpoint,
      "Written after each epoch, and on Ctrl-C, SIGTERM or SIGHUP: weights, optimizer, position in the data. "
      "One training at a time: FILE.lock names it");
  add("--checkpoint-every", loop.checkpoint_every, "Also after so many steps")
      ->check(librt::tools::non_negative())
      ->needs(checkpoint);
  app.add_flag("--resume", loop.resume,
               "Continue from --checkpoint; with the same options the result is the same, bit for bit")
      ->needs(checkpoint)
      ->group(group);
  add("--on-device-lost", options.on_device_lost,
      "When the GPU fails: stop; cpu: go on from --checkpoint on the CPU; wait: go on from it as soon as a "
      "session on the GPU can be made (Vulkan; with CUDA only a new process can)")
      ->check(librt::tools::one_of({"stop", "cpu", "wait"}))
      ->capture_default_str();
  app.add_flag("--overwrite", loop.overwrite,
               "Replace files of an earlier run at --checkpoint and --best. Default: an error")
      ->group(group);
  add("--best", loop.best, "Checkpoint of the epoch with the best value of --monitor");
  add("--log", options.log, "JSON lines: one object every --log-every steps, and one an epoch");
  add("--log-every", loop.log_every, "Steps between records")
      ->check(librt::tools::positive())
      ->capture_default_str();
  add("--tensorboard", options.tensorboard, "Folder for TensorBoard's event files");
  app.add_flag("--json", loop.json, "One JSON object for each epoch on stdout")->group(group);
}

/// What a training writes replaces neither what it reads nor each other.
rt::Status check_written_files(const Options& options) {
  std::vector<librt::tools::NamedFile> read = {{"--labels", options.training.labels},
                                               {"--validate-labels", options.validation.labels}};
  librt::tools::add_model(read, options.model);
  for (const std::string& path : options.training.paths) read.push_back({"--data", path});
  for (const std::string& path : options.validation.paths) read.push_back({"--validate", path});
  if (options.data.tokenizer != "bytes") read.push_back({"--tokenizer", options.data.tokenizer});
  const librt::tools::NamedFile written[] = {
      {"--checkpoint", options.loop.checkpoint}, {"--best", options.loop.best}, {"--log", options.log}};
  std::string conflict = librt::tools::conflict_of(read, written);
  return conflict.empty() ? rt::Status() : bad_data(std::move(conflict));
}

}  // namespace

void declare(librt::tools::CommandLine& app, Options& options) {
  app.add_option("model", options.model, "Compiled model (.rt) with the entry train_step")->required();
  declare_data(app, options);
  declare_training(app, options);
  declare_files(app, options);
}

rt::Status check(Options& options) {
  options.data.header = !options.no_header;
  options.data.allow_nonfinite = options.loop.allow_nonfinite;
  options.loop.shuffle = !options.no_shuffle;
  options.session.time_limit_ms = librt::tools::milliseconds(options.time_limit);
  options.session.deterministic = !options.deterministic.empty();
  if (std::string problem = librt::tools::add_operators(options.operator_libraries, options.operators);
      !problem.empty())
    return bad_data(std::move(problem));
  options.session.custom_operators = options.operators;
  options.loop.progress = isatty(STDERR_FILENO) != 0;
  if (!options.validation.paths.empty() && options.validate_fraction > 0)
    return bad_data("--validate and --validate-fraction exclude each other");
  if (!options.validates() && (!options.target.empty() || options.loop.patience > 0 ||
                               !options.loop.best.empty() || !options.loop.monitor.empty()))
    return bad_data("--target, --patience, --monitor and --best need --validate or --validate-fraction");
  if (options.on_device_lost != "stop" && options.loop.checkpoint.empty())
    return bad_data("--on-device-lost " + options.on_device_lost + " needs --checkpoint, to go on from");
  if (options.loop.resume && options.loop.overwrite)
    return bad_data("--resume and --overwrite exclude each other");
  std::string error;
  const auto schedule = librt::tools::Schedule::parse(options.schedule, error);
  if (!schedule) return bad_data("--" + error);
  options.loop.schedule = *schedule;
  const auto share = parse_share(options.share);
  if (!share) return share.status();
  options.loop.share = *share;
  if (share->is_measured && !options.deterministic.empty())
    return bad_data(
        "--share auto divides batches by measured speed, which differs from run to run, so that sums do; "
        "--deterministic needs --share equal, or a number for each process such as --share 3,1");
  if (!options.target.empty()) {
    const size_t equals = std::min(options.target.find('='), options.target.size());
    const auto value = librt::tools::number_from<double>(
        std::string_view(options.target).substr(std::min(equals + 1, options.target.size())));
    if (!value) return bad_data("--target " + options.target + ": expected METRIC=VALUE");
    options.loop.target = {options.target.substr(0, equals), *value};
  }
  if (rt::Status status = check_written_files(options); !status) return status;
  return check_checkpoint_files(options.loop);
}

// All but those named here: where a rank reads and writes, what it computes on and what it prints. What was
// read is compared by its content.
Facts facts_of(const librt::tools::CommandLine& app) {
  static constexpr std::string_view kMayDiffer[] = {
      "help", "version",
      // what it reads
      "model", "copy-model", "skip-checksums", "data", "labels", "validate", "validate-labels", "format",
      "cache", "tokenizer",
      // what it computes on, and its limits
      "backend", "device", "threads", "memory", "prefetch", "workers", "rank-timeout", "rank-wait",
      "time-limit", "on-device-lost",
      // what it prints
      "log", "json", "log-every", "tensorboard"};
  static constexpr std::string_view kPaths[] = {"checkpoint", "best"};
  const auto is_one_of = [](std::span<const std::string_view> names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  Facts facts;
  for (const auto& [name, is_flag, is_given, values, default_text] : app.options()) {
    if (is_one_of(kMayDiffer, name)) continue;
    std::string value = is_given ? "" : default_text;
    for (const std::string& each : values) value += (value.empty() ? "" : ",") + plain_number(each);
    if (is_one_of(kPaths, name)) value = is_given ? "given" : "";
    set_fact(facts, "--" + name, value.empty() ? "not given" : value);
  }
  return facts;
}

std::string data_text(const Options& options) {
  const DataOptions& data = options.data;
  return nlohmann::json({{"augment", options.augment},
                         {"scale", options.normalization.scale},
                         {"mean", options.normalization.mean},
                         {"std", options.normalization.deviation},
                         {"columns", data.columns},
                         {"standardize", data.standardize},
                         {"tokenizer", data.tokenizer},
                         {"sequence", data.sequence},
                         {"stride", data.stride},
                         {"padding", data.padding},
                         {"size", data.size},
                         {"bgr", data.bgr},
                         {"validate_fraction", options.validate_fraction}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace rt::train
