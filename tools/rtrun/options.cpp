#include "tools/rtrun/options.h"

#include <charconv>

#include "tools/cli/cache_folder.h"
#include "tools/cli/command_line.h"
#include "tools/cli/onnx_model.h"
#include "tools/cli/operator_library.h"
#include "tools/cli/written_files.h"

namespace rt::run {
namespace {

using librt::tools::ArgumentError;
using librt::tools::CommandLine;

/// Options that parse_options() converts.
struct Texts {
  double time_limit = 0;  ///< seconds of a run; 0: none
  std::string channels = "rgb";
  std::string audio_channels;
  std::string layout;
  std::vector<std::string> dims;
  std::vector<std::string> operators;
};

void declare_session(CommandLine& app, Options& options, Texts& texts) {
  app.add_option("model", options.model,
                 "Compiled model (.rt), or an ONNX file, which rtconvert compiles into the cache folder")
      ->required();
  app.add_option("--backend", options.session.backend, "cpu, vulkan, cuda, reference or auto")
      ->suggest(librt::tools::backends_and({"auto"}));
  app.add_option("--prefer", options.session.prefer,
                 "What the backend auto minimizes: latency, throughput (at batch 32) or energy")
      ->check(librt::tools::one_of({"latency", "throughput", "energy"}));
  app.add_option("--device", options.session.device,
                 "Device of the backend: index, part of its name, or UUID");
  app.add_option("--threads", options.session.threads, "CPU threads; 0: all this process may use");
  app.add_option("--entry", options.session.entry, "Entry to run; default: infer");
  app.add_option("--precision", options.session.precision,
                 "fp32, tf32 (f32 on CUDA's tensor cores), fp16 or bf16: compute matmuls and convolutions in "
                 "it; default: as in the file");
  app.add_flag("--strict", options.session.strict, "Fail if the device cannot run a node itself");
  librt::tools::add_model_options(app, options.load);
  app.add_flag("--validation", options.session.validation,
               "Vulkan validation layers; their messages are errors");
  app.add_option("--checkpoint", options.checkpoint, "Take the weights from a checkpoint of rttrain");
  app.add_option("--adapter", options.adapter,
                 "Take only the parameters from an adapter of rtconvert --save-adapter, also "
                 "FILE.safetensors, or from a "
                 "checkpoint");
  app.add_option("--operators", texts.operators, librt::tools::kOperatorsHelp);
  app.add_option("--memory", options.session.memory_limit,
                 "Bytes that the session may take, for example 256MiB; more is an error. Default: what the "
                 "machine has")
      ->check(librt::tools::byte_size())
      ->check(librt::tools::positive());
  app.add_option("--time-limit", texts.time_limit,
                 "Seconds that a run may take, planning included; more is an error. Checked between nodes, "
                 "not within one, nor while a GPU computes")
      ->check(librt::tools::positive());
}

void declare_inputs(CommandLine& app, Options& options, Texts& texts) {
  app.add_option("--input", options.inputs.files, "NAME=FILE: .npy, TensorProto .pb, PNG, JPEG or WAV");
  app.add_option("--test-data", options.inputs.test_data, "Folder with input_I.pb and output_I.pb");
  app.add_flag("--random-input", options.inputs.random, "Seeded random values for inputs without data");
  app.add_option("--seed", options.inputs.seed, "Seed of --random-input and of sampling")
      ->capture_default_str();
  app.add_option("--dim", texts.dims, "NAME=EXTENT of a symbolic dimension, for --random-input; default 1");
  app.add_option("--mean", options.inputs.image.mean,
                 "Images: subtracted from 0..255, one value or one per channel")
      ->delimiter(',');
  app.add_option("--std", options.inputs.image.deviation, "Images: divisor, one value or one per channel")
      ->check(librt::tools::positive())
      ->delimiter(',');
  app.add_option("--layout", texts.layout, "Images: nchw or nhwc; default: by the input's shape")
      ->check(librt::tools::one_of({"nchw", "nhwc"}));
  app.add_option("--channels", texts.channels, "Images: rgb, bgr or gray")
      ->check(librt::tools::one_of({"rgb", "bgr", "gray"}));
  app.add_flag("--resize", options.inputs.resize, "Images: scale to the input's size (bilinear)");
  app.add_option("--sample-rate", options.inputs.sample_rate,
                 "WAV: the rate in Hz that the model expects; another one is an error")
      ->check(librt::tools::positive());
  app.add_option("--audio-channels", texts.audio_channels,
                 "WAV with several channels: take the first, or the mean of all")
      ->check(librt::tools::one_of({"first", "mean"}));
}

void declare_results(CommandLine& app, Options& options) {
  app.add_option(
         "--top-k", options.top_k,
         "Print the K largest scores of each row of float outputs; with --generate: sample among the K "
         "most probable (0: all)")
      ->check(librt::tools::non_negative());
  app.add_option("--label-names", options.label_names,
                 "Text file with the name of a class per line, for --top-k (default with it: 5)");
  app.add_option("--repeat", options.repeat,
                 "After the first run, run N more times and print the median time")
      ->check(librt::tools::positive());
  app.add_option("--expect", options.expect, "NAME=FILE: compare this output; exit 1 when it differs");
  app.add_option("--rtol", options.rtol, "Relative tolerance")
      ->check(librt::tools::non_negative())
      ->capture_default_str();
  app.add_option("--atol", options.atol, "Absolute tolerance")
      ->check(librt::tools::non_negative())
      ->capture_default_str();
  app.add_option("--save", options.save, "NAME=FILE.npy: write this output");
  app.add_flag("--plan", options.plan, "Print the plan on stderr: every node, its kernel and device");
  app.add_flag("--inspect", options.inspect,
               "Print the entries, inputs, outputs, states and metadata of the model, without running it");
  app.add_flag("--json", options.json, "Results as JSON; also of --inspect");
  app.add_flag("--quiet", options.quiet, "Print neither values nor times");
}

void declare_generation(CommandLine& app, Options& options) {
  const std::string group = "Language models";
  GenerateOptions& generate = options.generate;
  app.add_option(
         "--generate", generate.count,
         "New tokens to generate. A model converted with --cache-length reads each token once; any other "
         "reads the whole text again for every token, and makes a plan for every length")
      ->check(librt::tools::positive())
      ->group(group);
  app.add_option("--prompt", generate.prompt, "Prompt text; needs --tokenizer")->group(group);
  app.add_option("--prompt-tokens", generate.prompt_tokens, "Prompt as token ids; default: 1")
      ->delimiter(',')
      ->group(group);
  app.add_option("--tokenizer", generate.tokenizer, "Tokenizer file of llama2.c (.bin); without: print ids")
      ->group(group);
  app.add_option("--temperature", generate.sampler.temperature, "0: always the most probable token")
      ->check(librt::tools::non_negative())
      ->capture_default_str()
      ->group(group);
  app.add_option("--top-p", generate.sampler.top_p,
                 "Sample among the most probable that together reach probability P")
      ->check(librt::tools::between(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  app.add_option("--stop-token", generate.stop_tokens, "Ids that end the text")->delimiter(',')->group(group);
  app.add_option("--token-input", generate.token_input, "Default: token, tokens or input_ids")->group(group);
  app.add_option("--position-input", generate.position_input, "Default: pos, position or position_ids")
      ->group(group);
  app.add_option("--mask-input", generate.mask_input, "Is set to ones; default: attention_mask")
      ->group(group);
  app.add_option("--logits-output", generate.logits, "Default: logits, or the only output")->group(group);
  app.add_flag("--profile", options.session.profile, "With --json: also the time of each kernel in a run")
      ->group(group);
}

/// NAME=EXTENT.
std::optional<std::pair<std::string, int64_t>> parse_dim(const std::string& text) {
  const auto assignment = split_assignment(text);
  if (!assignment) return std::nullopt;
  const std::string& number = assignment->second;
  int64_t extent = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), extent);
  if (error != std::errc() || end != number.data() + number.size() || extent < 0) return std::nullopt;
  return std::pair(assignment->first, extent);
}

/// What is wrong with the files of --save; empty: nothing. They may be those of inputs, which are read
/// before: the state of a model goes round.
std::string conflict_of(const Options& options) {
  std::vector<librt::tools::NamedFile> read = {{"--checkpoint", options.checkpoint},
                                               {"--adapter", options.adapter},
                                               {"--label-names", options.label_names},
                                               {"--tokenizer", options.generate.tokenizer}};
  librt::tools::add_model(read, options.model);
  librt::tools::add_assigned(read, "--expect", options.expect);
  if (!options.inputs.test_data.empty())
    librt::tools::add_file_or_folder(read, "--test-data", options.inputs.test_data, ".pb");
  std::vector<librt::tools::NamedFile> written;
  librt::tools::add_assigned(written, "--save", options.save);
  return librt::tools::conflict_of(read, written);
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, Options& options) {
  Texts texts;
  CommandLine app("Runs a compiled model on files and optionally compares the outputs with expected ones.");
  declare_session(app, options, texts);
  declare_inputs(app, options, texts);
  declare_results(app, options);
  declare_generation(app, options);
  app.set_up_help(
      {.program = "rtrun",
       .examples =
           {"rtrun resnet50.rt --input image=cat.jpg --mean 123.7,116.3,103.5 --std 58.4,57.1,57.4 --resize "
            "--label-names classes.txt",
            "rtrun speech.rt --input samples=speech.wav --sample-rate 16000",
            "rtrun net.rt --input x=x.npy --expect y=y.npy --backend vulkan",
            "rtrun decoder.rt --generate 200 --tokenizer tok512.bin --prompt \"Once upon a time\""},
       .notes = {librt::tools::kCacheHelp,
                 "Ctrl-C cancels the run, between two nodes, and the exit code is 130; a second one ends the "
                 "program at once."}});
  if (const auto code = app.parse(argc, argv)) return code;
  options.session.time_limit_ms = librt::tools::milliseconds(texts.time_limit);
  options.generate.sampler.seed = options.inputs.seed;
  options.generate.sampler.top_k = options.top_k;
  options.generate.json = options.json;
  options.generate.quiet = options.quiet;
  if (!texts.audio_channels.empty())
    options.inputs.mix = texts.audio_channels == "first" ? librt::tools::Mix::First : librt::tools::Mix::Mean;
  options.inputs.layout_given = !texts.layout.empty();
  options.inputs.image.channels_first = texts.layout != "nhwc";
  options.inputs.image.channels = texts.channels == "bgr"    ? librt::tools::Channels::Bgr
                                  : texts.channels == "gray" ? librt::tools::Channels::Gray
                                                             : librt::tools::Channels::Rgb;
  for (const std::string& text : texts.dims) {
    const auto dim = parse_dim(text);
    if (!dim) return app.refuse(ArgumentError("--dim", "expected NAME=EXTENT, found " + text));
    options.inputs.dims[dim->first] = dim->second;
  }
  if (const std::string problem = librt::tools::add_operators(texts.operators, options.operators);
      !problem.empty())
    return app.refuse(ArgumentError(problem));
  options.session.custom_operators = options.operators;
  if (const std::string conflict = conflict_of(options); !conflict.empty())
    return app.refuse(ArgumentError(conflict));
  return std::nullopt;
}

}  // namespace rt::run
