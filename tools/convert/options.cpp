#include "tools/convert/options.h"

#include <cstring>
#include <sstream>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/convert/option_rules.h"
#include "tools/convert/training_options.h"
#include "tools/data/number.h"

namespace librt::convert {

namespace {

// "name=value" options collect here until the line has been read.
struct Raw {
  std::vector<std::string> dims;
  std::vector<std::string> constants;
  std::vector<std::string> inputs;
  std::vector<std::string> caches;
  std::vector<std::string> custom_outputs;
  std::string lora;
  std::string max_drop;
};

// Splits at the last '=', since names of tensors may hold one.
bool split(const std::string& text, std::string& name, std::string& value) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return false;
  name = text.substr(0, equals);
  value = text.substr(equals + 1);
  return true;
}

/// rank=8,alpha=16,targets=PATTERN,targets=PATTERN,dropout=0.05
compiler::LoraOptions parse_lora(const std::string& given) {
  compiler::LoraOptions lora;
  bool has_alpha = false;
  std::istringstream parts(given);
  for (std::string part; std::getline(parts, part, ',');) {
    std::string key, value;
    const auto wrong = [&](const char* expected) {
      return tools::ArgumentError("--lora", std::string("expected ") + expected + ", found " + part);
    };
    if (!split(part, key, value)) throw wrong("KEY=VALUE");
    const bool is_rank = key == "rank", is_alpha = key == "alpha";
    if (key == "targets") {
      lora.targets.push_back(value);
      continue;
    }
    if (!is_rank && !is_alpha && key != "dropout" && key != "seed")
      throw wrong("rank, alpha, targets, dropout or seed");
    const auto found = tools::number_from<double>(value);
    if (!found || *found < 0 || *found >= 1e9) throw wrong("a positive number");
    const double number = *found;
    const bool is_integer = number == static_cast<double>(static_cast<int64_t>(number));
    if ((is_rank || key == "seed") && (!is_integer || (is_rank && number < 1))) throw wrong("a whole number");
    if (is_alpha && number == 0) throw wrong("a positive number");
    if (key == "dropout" && number >= 1) throw wrong("a fraction below 1");
    if (is_rank) lora.rank = static_cast<int64_t>(number);
    if (is_alpha) lora.alpha = static_cast<float>(number);
    if (key == "dropout") lora.dropout = static_cast<float>(number);
    if (key == "seed") lora.seed = static_cast<uint64_t>(number);
    has_alpha |= is_alpha;
  }
  if (!has_alpha) lora.alpha = static_cast<float>(lora.rank);
  return lora;
}

void declare(tools::CommandLine& app, Options& options, Raw& raw) {
  app.add_option("model", options.input, "MODEL.onnx, MODEL.rt, or zoo:NAME");
  app.add_option("-o,--output", options.output,
                 "Where to write the compiled model: MODEL.rt, or MODEL.onnx for other runtimes");
  app.add_option("--dim", raw.dims, "NAME=N: fix a symbolic dimension, for example batch=8")->take_all();
  app.add_flag("--open-batch", options.open_batch,
               "ONNX models exported with batch 1: make the batch dynamic (dimension batch)");
  app.add_option(
         "--constant", raw.constants,
         "NAME=VALUE: an input of an ONNX model becomes a constant, for example axis=1, sizes=2,3,4, or "
         "NAME=FILE with a .npy, .npz or .pb tensor; needed for inputs such as a mode, an axis or a rate")
      ->take_all();
  app.add_option(
         "--custom-domain", options.custom_domains,
         "DOMAIN: keep its operators for kernels that the application gives to its sessions (rt/custom.h); "
         "types "
         "and shapes of their results are those that the model declares (value_info), or of --custom-output")
      ->take_all();
  app.add_option(
         "--custom-output", raw.custom_outputs,
         "DOMAIN:OPERATOR=SIGNATURE: keep this operator, with results such as those of [N,C],[C]->f32[N,C]; "
         "names are extents of the inputs, [*] is any shape")
      ->take_all();
  app.add_option("--weights", options.weights,
                 "FILE.safetensors: its tensors replace the weights of their names in an ONNX model");
  app.add_option(
      "--export-safetensors", options.export_safetensors,
      "MODEL.onnx: write its weights of floats as FILE.safetensors; with a --checkpoint of a training "
      "of it, or with --merge-adapter, the trained ones");
  app.add_flag("--external-data", options.external_data,
               "An ONNX file that is written has its weights in a second one, MODEL.onnx.data, as it does "
               "without this where they take more than 2 GiB");
  app.add_option("--disable-pass", options.disabled_passes, "Leave out an optimization pass, by name")
      ->take_all();
  app.add_flag("--inspect", options.inspect, "Print the graph");
  app.add_flag(
      "--memory-report", options.memory_report,
      "Report what a session of each entry will take, at the extents of --dim: of a MODEL.rt as it is, "
      "or of what is compiled");
  app.add_option("--trim", options.trim,
                 "MODEL.rt..: write what these compiled models need of librt as --output, for a build that "
                 "holds nothing else (-DRT_TRIM=FILE)")
      ->expected(-1);
  app.add_flag("--list-ops", options.list_ops, "List the ONNX operators that can be imported");
  app.add_flag("--list-passes", options.list_passes, "List the optimization passes");
  app.add_flag("--json", options.json, "Report as JSON on stdout");
  app.add_flag("--verbose", options.verbose, "Report each pass on stderr");
  app.add_flag("--verify", options.verify,
               "Compare the compiled model, read back from its file, with the reference result of the "
               "original model, at several extents of dynamic dimensions (1, the smallest valid, random "
               "ones, one above every integer constant)");
  app.add_option(
         "--input", raw.inputs,
         "NAME=FILE: a .npy or .pb tensor for --verify, --accuracy and --keep-accuracy; others are random")
      ->take_all();
  app.add_option("--verify-backend", options.verify_backend,
                 "For --verify: also run a session on this backend")
      ->suggest(tools::backends_and({}));
  app.add_option("--seed", options.seed, "For --verify: seed of the random inputs");
  app.add_option("--rtol", options.rtol,
                 "For --verify: relative tolerance; default: 0.001, or 0.03 with --precision fp16 or bf16")
      ->check(tools::non_negative());
  app.add_option("--atol", options.atol, "For --verify: absolute tolerance; default: 0.0001, or 0.03")
      ->check(tools::non_negative());
}

void declare_precision(tools::CommandLine& app, Options& options) {
  const std::string group = "Precision";
  app.add_option(
         "--precision", options.precision,
         "fp16 or bf16: half-size weights; matmuls, convolutions and the nodes between them are "
         "computed in it; precision-sensitive nodes, inputs and outputs keep fp32. int8: 8-bit "
         "integer matmuls and convolutions, with scales from --calibrate, or dynamic ones for matmuls; "
         "int8-weights, int4-weights: only the weights of matmuls")
      ->check(tools::one_of({"fp32", "fp16", "bf16", "int8", "int8-weights", "int4-weights"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--keep-fp32", options.keep_fp32,
                 "Shell patterns of node names, for example 'head*,conv1': nodes to keep in fp32")
      ->delimiter(',')
      ->group(group);
  app.add_option(
         "--keep-accuracy", options.keep_accuracy,
         "Measure each node in 16 bits on the --input given (random otherwise), or in 8 bits on the rows of "
         "--calibrate, and keep as few of the worst in fp32 as bring the error of the outputs, relative to "
         "the "
         "largest, within this bound")
      ->check(tools::positive())
      ->group(group);
}

void declare_accuracy(tools::CommandLine& app, Options& options) {
  app.add_option("--accuracy", options.accuracy,
                 "Measure the error of the outputs that --precision causes, on the --input given, the rows "
                 "of --calibrate, or random values, and warn if it is large: auto (unless a run takes over "
                 "30 G operations), always, or never")
      ->check(tools::one_of({"auto", "always", "never"}))
      ->capture_default_str()
      ->group("Precision");
}

void declare_adapters(tools::CommandLine& app, Options& options, Raw& raw) {
  const std::string group = "Adapters";
  app.add_option(
         "--lora", raw.lora,
         "rank=N,alpha=N,targets=PATTERN,dropout=P: low-rank adapters for the weights of MatMul and Conv "
         "whose name, or node's name, matches (targets= may be repeated; default: all). With --train, the "
         "adapters are trained, and --trainable adds weights; without, adapters can be loaded at run time")
      ->group(group);
  app.add_option(
         "--save-adapter", options.save_adapter,
         "MODEL.rt with a --checkpoint of its training: write what was trained, without the optimizer; "
         "a FILE.safetensors is written in that format, adapter_model.safetensors as PEFT's, with "
         "adapter_config.json")
      ->group(group);
  app.add_option("--merge-adapter", options.merge_adapter,
                 "Merge an adapter, also one of PEFT, into the weights of the model it was trained for (its "
                 "source, not a .rt)")
      ->group(group);
}

void declare_training(tools::CommandLine& app, Options& options, TrainingArguments& arguments) {
  const std::string group = "Training";
  app.add_flag("--train", options.train,
               "Add the entry train_step: loss, backward pass and optimizer, for rttrain")
      ->group(group);
  arguments.declare(app);
  auto* memory =
      app.add_option("--memory", options.memory,
                     "For example 256MiB: choose micro-batch, recomputation and the optimizer state's "
                     "type so that a training with this --batch takes no more")
          ->check(tools::byte_size())
          ->check(tools::positive())
          ->group(group);
  app.add_option("--batch", options.batch, "For --memory: samples in a step")
      ->check(tools::positive())
      ->needs(memory)
      ->group(group);
  app.add_option("--memory-backend", options.memory_backend,
                 "For --memory and --memory-report: the backend to plan for")
      ->suggest(tools::backends_and({}))
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--tie", options.tie,
         "Shell patterns of weight names: a weight that several layers share in the file, because "
         "the exporter merged equal ones, stays tied in training. Default: layers of one kind get a "
         "weight each, as in PyTorch; an embedding that is also the output layer or another embedding, "
         "and a layer that is used twice, stay tied. Give the same with --export-onnx")
      ->delimiter(',')
      ->take_all()
      ->group(group);
  app.add_option("--checkpoint", options.checkpoint,
                 "MODEL.rt with a checkpoint of rttrain: its weights become the model's, for inference")
      ->group(group);
  app.add_flag(
         "--use-ema", options.use_ema,
         "With --checkpoint, of a training with --ema: the moving averages of the weights in their place")
      ->group(group);
  app.add_option(
         "--export-onnx", options.export_onnx,
         "MODEL.onnx with the --checkpoint of a training of it, or with --merge-adapter: write a copy of the "
         "ONNX file with the trained weights")
      ->group(group);
}

void declare_cache(tools::CommandLine& app, Options& options, Raw& raw) {
  const std::string group = "Language models";
  app.add_option("--cache-length", options.cache_length,
                 "Keep keys and values in the model, up to this many positions: inputs that grow by a "
                 "Concat, and the outputs that return them, become states")
      ->check(tools::positive())
      ->group(group);
  app.add_option("--cache", raw.caches, "INPUT=OUTPUT: keep only these; default: all that grow")
      ->take_all()
      ->group(group);
}

void declare_quantization(tools::CommandLine& app, Options& options, Raw& raw) {
  const std::string group = "Quantization";
  app.add_option("--calibrate", options.calibrate,
                 "DATA.npz, or a folder of .npy: rows of each input, by its name, to calibrate ranges for "
                 "--precision int8 or --quantize-aware; or a folder with an .npz for each run")
      ->group(group);
  app.add_option(
         "--calibration", options.calibration,
         "How ranges are derived from the data: minimum and maximum, a percentile, or least information loss")
      ->check(tools::one_of({"minmax", "percentile", "entropy"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--percentile", options.percentile,
                 "For --calibration percentile: percentage of values within a range")
      ->check(tools::between(50.0, 100.0))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--quant-report", options.quant_report,
               "List the signal-to-quantization-noise ratio of each node, worst first")
      ->group(group);
  app.add_option("--evaluate", options.evaluate,
                 "Rows to measure the accuracy on; default: those of --calibrate; needs --labels")
      ->group(group);
  app.add_option("--labels", options.labels,
                 "Labels of the rows (.npy or IDX): reports the accuracy in fp32 and in int8")
      ->group(group);
  app.add_option(
         "--max-drop", raw.max_drop,
         "For example 0.5%: keep the worst nodes in fp32 until the accuracy drops by no more; needs --labels")
      ->group(group);
  app.add_option("--group-size", options.group_size,
                 "For int8-weights and int4-weights: number of weights that share a scale")
      ->check(tools::positive())
      ->capture_default_str()
      ->group(group);
}

/// "0.5%" or "0.005" as a fraction.
double share_of(const std::string& text) {
  const bool percent = text.ends_with("%");
  const auto share =
      tools::number_from<double>(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0)));
  if (!share || *share < 0)
    throw tools::ArgumentError("--max-drop", "expected a share such as 0.5%, found " + text);
  return percent ? *share / 100 : *share;
}

/// The names and values of "NAME=VALUE" options.
class Pairs {
 public:
  Pairs(const char* option, const char* expected) : option_(option), expected_(expected) {}

  template <class Add>
  void read(const std::vector<std::string>& given, const Add& add) const {
    std::string name, value;
    for (const std::string& text : given)
      if (!split(text, name, value) || !add(name, value))
        throw tools::ArgumentError(option_, std::string("expected ") + expected_ + ", found " + text);
  }

 private:
  const char* option_;
  const char* expected_;
};

bool read_extent(const std::string& text, int64_t& extent) {
  const auto number = tools::number_from<int64_t>(text);
  if (number) extent = *number;
  return number && extent >= 0;
}

/// All options, bound to variables.
struct Table {
  Options options;
  Raw raw;
  TrainingArguments training;
  tools::CommandLine app{"rtconvert compiles a model for librt."};

  Table() {
    declare(app, options, raw);
    declare_training(app, options, training);
    declare_adapters(app, options, raw);
    declare_precision(app, options);
    declare_accuracy(app, options);
    declare_cache(app, options, raw);
    declare_quantization(app, options, raw);
  }

  /// After parsing: what is more than one variable, and rules. Throws ArgumentError.
  void finish() {
    Pairs("--dim", "NAME=N").read(raw.dims, [&](const std::string& name, const std::string& value) {
      return read_extent(value, options.dims[name]);
    });
    Pairs("--custom-output", "DOMAIN:OPERATOR=SIGNATURE")
        .read(raw.custom_outputs, [&](const std::string& name, const std::string& value) {
          return options.custom_outputs.emplace(name, value).second;
        });
    Pairs("--constant", "NAME=VALUE or NAME=FILE")
        .read(raw.constants, [&](const std::string& name, const std::string& value) {
          if (!options.constants.emplace(name, value).second || options.constant_arrays.contains(name))
            throw tools::ArgumentError("--constant", "'" + name + "' is given twice");
          return true;
        });
    Pairs("--input", "NAME=FILE").read(raw.inputs, [&](const std::string& name, const std::string& value) {
      options.verify_inputs[name] = value;
      return true;
    });
    Pairs("--cache", "INPUT=OUTPUT").read(raw.caches, [&](const std::string& name, const std::string& value) {
      options.cache_pairs.emplace_back(name, value);
      return true;
    });
    if (!raw.lora.empty()) options.lora = parse_lora(raw.lora);
    if (!raw.max_drop.empty()) options.max_drop = share_of(raw.max_drop);
    options.training = training.checked(options.train, options.precision == "fp16");
    check_rules(options);
    if (options.lora) options.training.adapter_dropout = options.lora->dropout;
    options.loss = training.loss();
    options.optimizer = training.optimizer();
  }
};

/// Options that choose what is converted and where to, or what a program prints.
bool is_of_programs(const std::string& name) {
  return name == "model" || name == "output" || name == "trim" || name == "list-ops" ||
         name == "list-passes" || name == "verbose" || name == "version" || name == "completion-table" ||
         name.starts_with("help");
}

/// The setting as an argument of a command line; nothing for a flag that is off.
std::optional<std::string> argument_of(const tools::CommandLine& app, const Setting& setting) {
  const std::string option = "--" + setting.name;
  for (const tools::CommandLine::Parsed& known : app.options()) {
    if (known.name != setting.name || is_of_programs(known.name)) continue;
    const std::string& value = setting.value;
    if (!known.is_flag) return option + "=" + value;
    if (value == "0" || value == "false") return {};
    if (value.empty() || value == "1" || value == "true") return option;
    throw tools::ArgumentError(option, "expected 1 or 0, found " + value);
  }
  throw tools::ArgumentError(option,
                             "there is no such option of a conversion; rtconvert --help-all lists them");
}

}  // namespace

Source Options::source() const {
  constexpr std::string_view kCompiled = "\x8dLRT";
  if (!bytes.empty()) {
    const bool compiled = bytes.size() >= kCompiled.size() &&
                          std::memcmp(bytes.data(), kCompiled.data(), kCompiled.size()) == 0;
    return compiled ? Source::Compiled : Source::Onnx;
  }
  if (input.starts_with("zoo:")) return Source::Zoo;
  return input.ends_with(".rt") ? Source::Compiled : Source::Onnx;
}

Parsed parse_options(int argc, char** argv) {
  Table table;
  table.app.set_up_help(
      {.program = "rtconvert",
       .examples = {"rtconvert resnet50.onnx -o resnet50.rt --verify",
                    "rtconvert resnet50.onnx -o resnet50.bf16.rt --precision bf16",
                    "rtconvert resnet50.onnx -o resnet50_int8.rt --precision int8 --calibrate images.npz",
                    "rtconvert net.onnx -o net.rt --train --loss cross_entropy --optimizer adam"},
       .topics = {{"--help-training", {"Training", "Adapters"}},
                  {"--help-precision", {"Precision", "Quantization"}},
                  {"--help-language", {"Language models"}}}});
  Parsed parsed;
  if (const auto code = table.app.parse(argc, argv)) {
    parsed.leave = true;
    parsed.exit_code = *code;
    return parsed;
  }
  try {
    table.finish();
  } catch (const tools::ArgumentError& error) {
    parsed.leave = true;
    parsed.exit_code = table.app.refuse(error);
    return parsed;
  }
  for (const tools::CommandLine::Parsed& option : table.app.options()) {
    if (!option.is_given || is_of_programs(option.name)) continue;
    if (option.is_flag)
      parsed.settings.push_back({option.name, {}});
    else
      for (const std::string& value : option.values) parsed.settings.push_back({option.name, value});
  }
  parsed.options = std::move(table.options);
  return parsed;
}

Status apply_settings(std::span<const Setting> settings, Options& options) {
  try {
    Table table;
    table.options = std::move(options);
    std::vector<std::string> arguments;
    for (const Setting& setting : settings)
      if (auto argument = argument_of(table.app, setting)) arguments.push_back(std::move(*argument));
    table.app.read(std::move(arguments));
    table.finish();
    options = std::move(table.options);
    return {};
  } catch (const tools::ArgumentError& error) {
    return invalid_argument(error.what());
  }
}

}  // namespace librt::convert
