// rttrain: fine-tunes a model that was compiled with `rtconvert --train`.
//
// Knows: the command line. The loop is in loop.cpp, data in data.cpp; librt is used through its public
// headers.
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/onnx_model.h"
#include "tools/cli/openmp_wait.h"
#include "tools/data/array.h"
#include "tools/rttrain/data.h"
#include "tools/rttrain/loop.h"

namespace {

using rt::train::bad_data;

struct Options {
  std::string model;
  rt::train::DataFiles training, validation;
  double validate_fraction = 0;
  rt::train::DataOptions data;
  rt::train::Normalization normalization;
  std::vector<std::string> augment;
  rt::SessionOptions session;
  rt::train::LoopOptions loop;
  bool no_header = false, no_shuffle = false;
  std::string target, log, tensorboard;
  std::string schedule = "constant";
  CLI::Option *batch = nullptr, *micro_batch = nullptr, *memory = nullptr;
};

void declare_data(CLI::App& app, Options& options) {
  const std::string group = "Data";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->group(group);
  };
  const auto flag = [&](const char* name, bool& value, const char* help) {
    app.add_flag(name, value, help)->group(group);
  };
  add("--data", options.training.paths,
      "Training data: .npz with one array for each input; .csv or .tsv; a folder with a subfolder of images "
      "for each class; IDX files (plain or .gz) with --labels; a .txt for language models")
      ->required();
  add("--labels", options.training.labels, "IDX file with the labels of --data");
  add("--validate", options.validation.paths, "Validation data, measured after each epoch");
  add("--validate-labels", options.validation.labels, "IDX file with the labels of --validate");
  add("--validate-fraction", options.validate_fraction,
      "Keep this part of --data for validation: samples chosen by --seed; of a text its end")
      ->check(CLI::Range(0.0, 0.9));
  add("--format", options.data.format, "Format of the data, where name and content do not determine it")
      ->check(CLI::IsMember({"auto", "npz", "csv", "tsv", "idx", "images", "text"}))
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
      ->transform(CLI::AsSizeValue(false))
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
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
  add("--prefetch", options.loop.prefetch, "Batches prepared ahead")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
}

void declare_training(CLI::App& app, Options& options) {
  const std::string group = "Training";
  rt::train::LoopOptions& loop = options.loop;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->group(group);
  };
  add("--epochs", loop.epochs, "Passes over the training data")->capture_default_str();
  add("--steps", loop.steps, "Stop after so many steps; 0: --epochs decides")->capture_default_str();
  options.batch = add("--batch", loop.batch, "Samples in a step; default: that of rtconvert --memory, or 32")
                      ->check(librt::tools::positive());
  options.micro_batch =
      add("--micro-batch", loop.micro_batch,
          "Samples computed at once: a batch's gradients are accumulated and make one step; for models of "
          "rtconvert "
          "--train --accumulate. Default: what rtconvert --memory has chosen, or the batch");
  options.memory =
      add("--memory", options.session.memory_limit,
          "Bytes that training may take, for example 256MiB: weights, optimizer, working memory and "
          "copies of inputs. Planned and printed before anything runs; too little is an error. "
          "Default: that of rtconvert --memory, or no limit")
          ->transform(CLI::AsSizeValue(false));
  add("--lr", loop.learning_rate, "Learning rate")
      ->check(librt::tools::non_negative())
      ->capture_default_str();
  add("--schedule", options.schedule,
      "constant; step,every=N,gamma=0.1; linear,steps=N,end=0; cosine,steps=N,end=0; "
      "one_cycle,steps=N,rise=0.3,start=0.04,end=0.0001: factor of --lr. All but one_cycle take warmup=N")
      ->capture_default_str();
  app.add_flag("--allow-nonfinite", loop.allow_nonfinite,
               "Continue if data, a loss or the weights to save are NaN or infinite. Default: an error that "
               "names the sample, the step or the weights and keeps the last good checkpoint")
      ->group(group);
  add("--seed", loop.seed, "Order of the samples, and augmentation")->capture_default_str();
  add("--top-k", loop.scoring.top_k, "K of the metric topK")
      ->check(librt::tools::positive())
      ->capture_default_str();
  add("--target", options.target,
      "METRIC=VALUE, for example accuracy=0.985: stop when the validation reaches it; exit code 1 when it "
      "never does");
  add("--patience", loop.patience, "Stop after so many epochs without a better value of --monitor");
  add("--monitor", loop.monitor,
      "Validation metric for --patience and --best: loss, accuracy, topK, f1_macro, perplexity; mse, mae; "
      "loss, label_error_rate, sequence_accuracy (ctc). "
      "Default: that of --target, or loss (mse)");
  add("--backend", options.session.backend, "cpu, vulkan, cuda, reference or auto")->capture_default_str();
  add("--device", options.session.device,
      "Device of the backend: index, part of its name, or UUID. Default: the backend's choice; of cuda, one "
      "GPU for each rank on this machine");
  add("--threads", options.session.threads, "CPU threads; 0: all this process may use");
  app.add_flag("--deterministic", options.session.deterministic, "Equal results from run to run")
      ->group(group);
}

void declare_files(CLI::App& app, Options& options) {
  const std::string group = "Checkpoints and logs";
  rt::train::LoopOptions& loop = options.loop;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->group(group);
  };
  auto* checkpoint =
      add("--checkpoint", loop.checkpoint,
          "Written after each epoch, and on Ctrl-C or SIGTERM: weights, optimizer, position in the data");
  add("--checkpoint-every", loop.checkpoint_every, "Also after so many steps")->needs(checkpoint);
  app.add_flag("--resume", loop.resume,
               "Continue from --checkpoint; with the same options the result is the same, bit for bit")
      ->needs(checkpoint)
      ->group(group);
  add("--best", loop.best, "Checkpoint of the epoch with the best value of --monitor");
  add("--log", options.log, "JSON lines: one object every --log-every steps, and one an epoch");
  add("--log-every", loop.log_every, "Steps between records")
      ->check(librt::tools::positive())
      ->capture_default_str();
  add("--tensorboard", options.tensorboard, "Folder for TensorBoard's event files");
  app.add_flag("--json", loop.json, "One JSON object for each epoch on stdout")->group(group);
}

rt::Status check(Options& options) {
  options.data.header = !options.no_header;
  options.data.allow_nonfinite = options.loop.allow_nonfinite;
  options.loop.shuffle = !options.no_shuffle;
  options.loop.progress = isatty(STDERR_FILENO) != 0;
  const bool validates = !options.validation.paths.empty() || options.validate_fraction > 0;
  if (!options.validation.paths.empty() && options.validate_fraction > 0)
    return bad_data("--validate and --validate-fraction exclude each other");
  if (!validates && (!options.target.empty() || options.loop.patience > 0 || !options.loop.best.empty()))
    return bad_data("--target, --patience and --best need --validate or --validate-fraction");
  std::string error;
  const auto schedule = librt::tools::Schedule::parse(options.schedule, error);
  if (!schedule) return bad_data("--" + error);
  options.loop.schedule = *schedule;
  if (!options.target.empty()) {
    const size_t equals = options.target.find('=');
    char* end = nullptr;
    const double value =
        equals == std::string::npos ? 0 : std::strtod(options.target.c_str() + equals + 1, &end);
    if (end == nullptr || end == options.target.c_str() + equals + 1 || *end != '\0')
      return bad_data("--target " + options.target + ": expected METRIC=VALUE");
    options.loop.target = {options.target.substr(0, equals), value};
  }
  return {};
}

// Settings besides the seed that determine the batches: compared when a run is resumed.
std::string data_text(const Options& options) {
  const rt::train::DataOptions& data = options.data;
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
      .dump();
}

// Facts about the data that a user of the trained model needs.
std::vector<std::pair<std::string, std::string>> notes_of(const rt::train::DataFacts& facts) {
  std::vector<std::pair<std::string, std::string>> notes;
  const auto add = [&](const char* key, const auto& list) {
    if (!list.empty()) notes.emplace_back(key, nlohmann::json(list).dump());
  };
  add("data.classes", facts.classes);
  add("data.features", facts.features);
  add("data.mean", facts.mean);
  add("data.deviation", facts.deviation);
  return notes;
}

void stop(int) {
  rt::train::g_stop = 1;
}

void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// The inputs of train_step that come from data.
std::vector<rt::TensorSpec> data_inputs(const rt::Model& model) {
  std::vector<rt::TensorSpec> inputs = model.inputs("train_step");
  std::erase_if(inputs, [](const rt::TensorSpec& input) { return input.name == "learning_rate"; });
  return inputs;
}

rt::Result<std::optional<int64_t>> number_of(const rt::Model& model, const char* key) {
  const auto text = model.metadata(key);
  if (!text) return std::optional<int64_t>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    return bad_data(std::string("the model's metadata ") + key + ": expected a whole number, found '" +
                    *text + "'");
  return std::optional(number);
}

// Interpretation of outputs and labels for the metrics, from the metadata that rtconvert --train wrote.
rt::Status read_scoring(const rt::Model& model, rt::train::Scoring& scoring) {
  scoring.probabilities = model.metadata("train.output") == "probabilities";
  scoring.binary = model.metadata("train.loss") == "bce_with_logits";
  const auto class_axis = number_of(model, "train.class_axis");
  if (!class_axis) return class_axis.status();
  scoring.class_axis = class_axis->value_or(scoring.class_axis);
  const auto ignored = number_of(model, "train.ignore_index");
  if (!ignored) return ignored.status();
  scoring.ignored = *ignored;
  if (model.metadata("train.loss") != "ctc") return {};
  const auto blank = number_of(model, "train.blank");
  if (!blank) return blank.status();
  if (*blank) scoring.blank = static_cast<size_t>(**blank);
  return {};
}

// Extent of the first output's class axis if the labels are classes; 0 if unknown.
int64_t class_count(const rt::Model& model, const std::vector<rt::TensorSpec>& inputs,
                    const rt::train::Scoring& scoring) {
  const auto outputs = model.outputs("infer");
  const bool classes =
      std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.name == "labels"; });
  if (!classes || outputs.empty() || outputs[0].dims.empty()) return 0;
  const size_t axis = scoring.class_axis_of(outputs[0].dims.size());
  return axis < outputs[0].dims.size() ? std::max<int64_t>(outputs[0].dims[axis].extent, 0) : 0;
}

// Values chosen by rtconvert --memory, unless the command line overrides them.
void read_plan(const rt::Model& model, Options& options) {
  const auto read = [&](const char* key, const CLI::Option* option, auto& value) {
    const auto text = model.metadata(key);
    if (text && option->count() == 0) value = static_cast<std::decay_t<decltype(value)>>(std::stoull(*text));
  };
  read("train.memory", options.memory, options.session.memory_limit);
  read("train.batch", options.batch, options.loop.batch);
  read("train.micro_batch", options.micro_batch, options.loop.micro_batch);
  if (options.loop.micro_batch >= options.loop.batch && options.micro_batch->count() == 0)
    options.loop.micro_batch = 0;
}

// Checks that the number of ranks fits the model's train_step.
rt::Status check_ranks(const rt::Model& model, const rt::train::Ranks& ranks, Options& options) {
  const auto parts = number_of(model, "train.ranks");
  if (!parts) return parts.status();
  const auto count = static_cast<int64_t>(ranks.count());
  if (count > 1 && !*parts)
    return bad_data(options.model + ": " + std::to_string(count) +
                    " ranks need a model compiled with rtconvert --train --data-parallel");
  const int64_t shards = parts->value_or(0);
  if (shards > 0 && shards != count)
    return bad_data(options.model + " was compiled with --shard-optimizer " + std::to_string(shards) +
                    ", here " + (count == 1 ? "is 1 rank" : "are " + std::to_string(count) + " ranks") +
                    "; use mpirun -n " + std::to_string(shards));
  options.loop.sharded = shards > 0;
  return {};
}

// What carries the all-reduce of the gradients; empty for one rank.
std::string together_text(size_t ranks, const rt::Session& session) {
  if (ranks == 1) return {};
  const auto [carrier, reason] = session.collectives();
  std::string out = ", " + std::to_string(ranks) + " ranks over " + (carrier.empty() ? "MPI" : carrier);
  if (carrier.empty() && session.device().backend != "cpu") out += ", by way of host memory";
  return reason.empty() ? out : out + " (" + reason + ")";
}

rt::Result<rt::train::Outcome> train(Options& options, const rt::train::Ranks& ranks) {
  using namespace rt::train;
  if (rt::Status status = check(options); !status) return status;
  const auto augmentation = parse_augmentation(options.augment);
  if (!augmentation) return augmentation.status();
  if (librt::tools::is_onnx_file(options.model))
    return bad_data(options.model + " is an ONNX file, without a training step; compile it with `rtconvert " +
                    options.model +
                    " -o MODEL.rt --train --loss cross_entropy --optimizer adam` (or another "
                    "loss and optimizer), and give MODEL.rt");
  const auto model = rt::Model::load(options.model);
  if (!model) return model.status();
  const std::vector<rt::TensorSpec> inputs = data_inputs(*model);
  if (inputs.empty())
    return bad_data(options.model + " has no entry train_step; compile it with rtconvert --train");
  if (rt::Status status = check_ranks(*model, ranks, options); !status) return status;
  options.session.communicator = ranks.communicator();

  DataFacts facts;
  const bool validates = !options.validation.paths.empty() || options.validate_fraction > 0;
  if (rt::Status status = read_scoring(*model, options.loop.scoring); !status) return status;
  if (validates && model->metadata("train.loss") == "ctc" && !options.loop.scoring.blank)
    return bad_data(options.model +
                    " does not say which class is the blank; compile it again, or leave out --validate");
  const int64_t classes = class_count(*model, inputs, options.loop.scoring);
  const Part training_part{0, 1 - options.validate_fraction, options.loop.seed};
  const auto training = open_source(options.training, options.data, training_part, inputs, classes, facts);
  if (!training) return training.status();
  read_plan(*model, options);
  const auto transform = Transform::create((*training)->columns(), options.normalization, *augmentation);
  if (!transform) return transform.status();
  rt::Result<SourcePtr> validation = SourcePtr();
  if (validates) {
    const bool part = options.validation.paths.empty();
    validation =
        open_source(part ? options.training : options.validation, options.data,
                    part ? Part{training_part.end, 1, options.loop.seed} : Part{}, inputs, classes, facts);
    if (!validation) return validation.status();
  }
  const auto plain = Transform::create((*training)->columns(), options.normalization, {});
  if (!plain) return plain.status();

  auto trainer = rt::Trainer::create(*model, options.session);
  if (!trainer) return trainer.status();
  const rt::DeviceInfo device = trainer->session().device();
  if (ranks.is_first())
    std::fprintf(stderr, "rttrain: %zu samples on %s (%s)%s\n", (*training)->size(), device.backend.c_str(),
                 device.name.c_str(), together_text(ranks.count(), trainer->session()).c_str());
  options.loop.progress = options.loop.progress && ranks.is_first();
  auto log = ranks.is_first() ? RunLog::open(options.log, options.tensorboard, options.loop.resume)
                              : RunLog::open({}, {}, false);
  if (!log) return log.status();
  options.loop.data_text = data_text(options);
  for (const rt::StateSpec& state : model->states())
    if (librt::is_float(static_cast<librt::DType>(state.dtype)))
      options.loop.float_states.push_back(state.name);
  options.loop.notes = notes_of(facts);
  stop_on_signals();
  const Samples training_samples{**training, *transform};
  std::optional<Samples> validation_samples;
  if (*validation != nullptr) validation_samples.emplace(Samples{**validation, *plain});
  Budget budget(*model, *trainer, options.session, options.session.memory_limit);
  return run_training(*trainer, budget, training_samples, validation_samples ? &*validation_samples : nullptr,
                      *log, ranks, options.loop);
}

int run(Options& options, const rt::train::Ranks& ranks) {
  using namespace librt::tools;
  const std::string name = ranks.count() > 1 ? "rttrain: rank " + std::to_string(ranks.rank()) : "rttrain";
  try {
    const auto outcome = train(options, ranks);
    if (!outcome) return report_failure(name.c_str(), outcome.status());
    if (*outcome != rt::train::Outcome::Finished || options.target.empty()) return kFine;
    if (ranks.is_first())
      std::fprintf(stderr, "rttrain: the target %s was not reached\n", options.target.c_str());
    return kDifferent;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: not enough memory\n", name.c_str());
    return kBadMachine;
  }
}

}  // namespace

int main(int argc, char** argv) {
  librt::tools::spin_briefly();
  using namespace librt::tools;
  CLI::App app(
      "Fine-tunes a model compiled with `rtconvert MODEL.onnx -o MODEL.rt --train`.\n"
      "The weights after training are in the checkpoint; `rtconvert MODEL.rt --checkpoint FILE -o NEW.rt` "
      "puts them into a model.");
  Options options;
  app.add_option("model", options.model, "Compiled model (.rt) with the entry train_step")->required();
  declare_data(app, options);
  declare_training(app, options);
  declare_files(app, options);
  set_up_help(
      app,
      {.program = "rttrain",
       .examples = {"rttrain net.rt --data train/ --validate test/ --augment flip,crop=4 --epochs 5 --lr "
                    "0.001 --checkpoint net.ckpt",
                    "rttrain net.rt --data train.npz --epochs 5 --checkpoint net.ckpt --resume",
                    "mpirun -n 4 rttrain net.rt --data train/ --epochs 5    (compiled with --data-parallel)"},
       .notes = {"Ctrl-C and SIGTERM end a run after its step: with --checkpoint it is saved and the exit "
                 "code is 0. Exit "
                 "code 1 means that the target was not reached."}});
  if (const auto code = parse_arguments(app, argc, argv)) return *code;
  auto ranks = rt::train::Ranks::join();
  if (!ranks) return report_failure("rttrain", ranks.status());
  const int code = run(options, *ranks);
  if (ranks->count() > 1 && code != kFine && code != kDifferent) {
    // No leave(), so that mpirun ends the other ranks, which would wait for this one.
    std::fflush(nullptr);
    _exit(code);
  }
  ranks->leave();
  return code;
}
