// rtrun: runs a model on files and checks it against expected outputs.
//
// Knows: the command line and how results are shown. librt is used through its public headers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/cli/cache_folder.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/onnx_model.h"
#include "tools/cli/program.h"
#include "tools/data/compare.h"
#include "tools/data/npy.h"
#include "tools/onnx/array_file.h"
#include "tools/rtrun/generate.h"
#include "tools/rtrun/inputs.h"
#include "tools/rtrun/inspect.h"
#include "tools/rtrun/interruptible.h"
#include "tools/rtrun/top_scores.h"

namespace {

using Clock = std::chrono::steady_clock;
using librt::tools::Array;

struct Options {
  std::string model;
  rt::ModelOptions load;
  rt::SessionOptions session;
  rt::run::InputOptions inputs;
  rt::run::GenerateOptions generate;
  std::vector<std::string> expect;
  std::vector<std::string> save;
  std::string checkpoint, adapter;
  double rtol = 1e-3;
  double atol = 1e-4;
  bool plan = false;
  bool inspect = false;
  bool json = false;
  bool quiet = false;
  int repeat = 0;
  double time_limit = 0;    ///< seconds of a run; 0: none
  int64_t top_k = 0;        ///< largest scores to show; 0: the first values
  std::string label_names;  ///< file
  std::string channels = "rgb";
  std::string audio_channels;
  std::string layout;
  std::vector<std::string> dims;
};

rt::Tensor tensor_of(const Array& array) {
  return rt::Tensor::borrow(static_cast<rt::DType>(array.type), array.dims,
                            const_cast<std::byte*>(array.bytes.data()));
}

Array array_of(const rt::Tensor& tensor, const std::string& name) {
  Array array;
  array.name = name;
  array.type = static_cast<librt::DType>(tensor.dtype());
  array.dims.assign(tensor.dims().begin(), tensor.dims().end());
  array.bytes.resize(tensor.bytes());
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), tensor.data(), array.bytes.size());
  return array;
}

rt::Status failed(rt::Code code, std::string message) {
  return {code, std::move(message)};
}

// The expected outputs: by --expect, and all output_I.pb of --test-data that exist.
rt::Result<std::vector<std::pair<size_t, Array>>> expectations(const Options& options,
                                                               const std::vector<rt::TensorSpec>& outputs) {
  std::vector<std::pair<size_t, Array>> expected;
  auto add = [&](size_t index, const std::string& path) -> rt::Status {
    auto array = librt::tools::read_array(path);
    if (!array) return rt::run::status_of(array.status());
    expected.emplace_back(index, std::move(*array));
    return {};
  };
  if (!options.inputs.test_data.empty())
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string path = options.inputs.test_data + "/output_" + std::to_string(i) + ".pb";
      if (!std::filesystem::exists(path)) continue;
      if (rt::Status status = add(i, path); !status) return status;
    }
  for (const std::string& text : options.expect) {
    auto assignment = rt::run::split_assignment(text);
    if (!assignment) return assignment.status();
    size_t index = outputs.size();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].name == assignment->first) index = i;
    if (index == outputs.size())
      return failed(rt::Code::InvalidArgument, "there is no output '" + assignment->first + "'");
    if (rt::Status status = add(index, assignment->second); !status) return status;
  }
  return expected;
}

void print_values(const Array& array) {
  std::printf("%s %s", array.name.c_str(), librt::tools::describe(array).c_str());
  const size_t count = array.bytes.size() / librt::size_of(array.type);
  constexpr size_t kShown = 16;
  for (size_t i = 0; i < std::min(count, kShown); ++i)
    std::printf(" %.6g", librt::tools::element_of(array, i));
  std::printf(count > kShown ? " ... (%zu more)\n" : "\n", count - std::min(count, kShown));
}

rt::Status save_outputs(const Options& options, const std::vector<Array>& outputs) {
  for (const std::string& text : options.save) {
    auto assignment = rt::run::split_assignment(text);
    if (!assignment) return assignment.status();
    const Array* found = nullptr;
    for (const Array& output : outputs)
      if (output.name == assignment->first) found = &output;
    if (found == nullptr)
      return failed(rt::Code::InvalidArgument, "there is no output '" + assignment->first + "'");
    if (const auto status = librt::tools::write_npy(assignment->second, *found); !status.ok())
      return rt::run::status_of(status);
  }
  return {};
}

// Compares and reports; returns the exit code.
int check(const Options& options, const std::vector<Array>& outputs,
          const std::vector<std::pair<size_t, Array>>& expected, nlohmann::ordered_json& json) {
  int code = librt::tools::kFine;
  for (const auto& [index, want] : expected) {
    const librt::tools::Difference difference =
        librt::tools::compare(outputs[index], want, options.rtol, options.atol);
    if (!difference.equal()) code = librt::tools::kDifferent;
    json["compared"].push_back({{"output", outputs[index].name},
                                {"equal", difference.equal()},
                                {"largest_difference", difference.largest},
                                {"outside", difference.outside},
                                {"elements", difference.elements},
                                {"text", difference.text}});
    if (!options.json)
      std::printf("%s: %s: %s\n", outputs[index].name.c_str(), difference.equal() ? "ok" : "DIFFERENT",
                  difference.text.c_str());
  }
  return code;
}

constexpr int64_t kDefaultTop = 5;  ///< with --label-names alone

struct Times {
  double load = 0, session = 0, first_run = 0;  ///< seconds
  double median = 0;                            ///< of the repeated runs; 0: none
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

rt::Status repeat_runs(rt::Session& session, int count, Times& times) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    if (rt::Status status = session.run(); !status) return status;
    seconds.push_back(seconds_since(start));
  }
  if (seconds.empty()) return {};
  std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
  times.median = seconds[static_cast<size_t>(count / 2)];
  return {};
}

/// The device with the reason for it, and the times; stdout is for the results.
void print_run(const rt::Session& session, const Times& times, int repeat) {
  const rt::DeviceInfo device = session.device();
  const std::string reason = session.device_reason();
  std::fprintf(stderr, "device      %s %d (%s), %s\n", device.backend.c_str(), device.index,
               device.name.c_str(), reason.c_str());
  std::fprintf(stderr, "time        load %.3g ms, session %.3g ms, first run %.3g ms", 1e3 * times.load,
               1e3 * times.session, 1e3 * times.first_run);
  if (repeat > 0) std::fprintf(stderr, ", median of %d more %.3g ms", repeat, 1e3 * times.median);
  std::fputs("\n", stderr);
}

/// Whether an output's last axis can be that of classes.
bool has_classes(const Array& array) {
  return librt::is_float(array.type) && !array.dims.empty() && array.dims.back() > 0;
}

/// The names of the classes, which must be those of an output.
rt::Result<std::vector<std::string>> label_names(const Options& options, const std::vector<Array>& outputs) {
  if (options.label_names.empty()) return std::vector<std::string>();
  auto names = rt::run::read_label_names(options.label_names);
  if (!names) return names;
  std::string found;
  for (const Array& output : outputs) {
    if (!has_classes(output)) continue;
    if (output.dims.back() == static_cast<int64_t>(names->size())) return names;
    found += (found.empty() ? "" : ", ") + output.name + " has " + std::to_string(output.dims.back());
  }
  return failed(rt::Code::InvalidArgument, options.label_names +
                                               ": expected a name for each class of an output (" + found +
                                               "), found " + std::to_string(names->size()));
}

nlohmann::ordered_json top_json(const Array& output, int64_t count, const std::vector<std::string>& names) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const bool named = names.size() == static_cast<size_t>(output.dims.back());
  for (const auto& row : rt::run::top_scores(output, static_cast<size_t>(count))) {
    nlohmann::ordered_json scores = nlohmann::ordered_json::array();
    for (const rt::run::Score& score : row) {
      scores.push_back({{"class", score.index}, {"score", score.value}});
      if (named) scores.back()["name"] = names[score.index];
    }
    rows.push_back(std::move(scores));
  }
  return rows;
}

void print_top(const Array& output, int64_t count, const std::vector<std::string>& names) {
  std::printf("%s %s, the largest:\n", output.name.c_str(), librt::tools::describe(output).c_str());
  const bool named = names.size() == static_cast<size_t>(output.dims.back());
  const auto rows = rt::run::top_scores(output, static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.size() > 1) std::printf("  row %zu\n", i);
    for (const rt::run::Score& score : rows[i])
      std::printf("  %10.6g  %zu%s%s\n", score.value, score.index, named ? " " : "",
                  named ? names[score.index].c_str() : "");
  }
}

/// The whole plan if it is asked for, else what it says of the cache folder; an exit code.
int print_plan(rt::Session& session, bool whole) {
  const auto plan = session.plan_text();
  if (!plan) return librt::tools::report_failure("rtrun", plan.status());
  if (whole)
    std::fputs(plan->c_str(), stderr);
  else
    librt::tools::report_unused("rtrun", *plan);
  return librt::tools::kFine;
}

int run(const Options& options) {
  using librt::tools::report_failure;
  const librt::tools::CompiledPath compiled = librt::tools::compiled_path("rtrun", options.model);
  if (compiled.failed != librt::tools::kFine) return compiled.failed;
  Times times;
  Clock::time_point start = Clock::now();
  const auto model = rt::Model::load(compiled.path, options.load);
  if (!model) return report_failure("rtrun", model.status());
  times.load = seconds_since(start);
  if (options.inspect) {
    rt::run::inspect(*model, compiled.path, options.json);
    return librt::tools::kFine;
  }
  start = Clock::now();
  auto session = rt::Session::create(*model, options.session);
  if (!session) return report_failure("rtrun", session.status());
  times.session = seconds_since(start);
  if (!options.checkpoint.empty())
    if (rt::Status status = session->load_checkpoint(options.checkpoint); !status)
      return report_failure("rtrun", status);
  if (!options.adapter.empty())
    if (rt::Status status = session->load_adapter(options.adapter); !status)
      return report_failure("rtrun", status);
  if (options.generate.count > 0) {
    const int code = rt::run::generate(*model, *session, options.generate);
    return code == librt::tools::kFine ? print_plan(*session, options.plan) : code;
  }
  const auto inputs = rt::run::gather_inputs(session->inputs(), options.inputs);
  if (!inputs) return report_failure("rtrun", inputs.status());
  for (size_t i = 0; i < inputs->size(); ++i)
    if (rt::Status status = session->set_input(i, tensor_of((*inputs)[i])); !status)
      return report_failure("rtrun", status);
  const std::vector<rt::TensorSpec> specs = session->outputs();
  const auto expected = expectations(options, specs);
  if (!expected) return report_failure("rtrun", expected.status());
  if (!options.inputs.test_data.empty() && expected->empty())
    return report_failure("rtrun",
                          failed(rt::Code::InvalidArgument,
                                 options.inputs.test_data + ": holds no output_I.pb to compare with"));
  start = Clock::now();
  if (rt::Status status = rt::run::interruptible(*session, [&] { return session->run(); }); !status)
    return report_failure("rtrun", status);
  times.first_run = seconds_since(start);
  if (const int code = print_plan(*session, options.plan); code != librt::tools::kFine) return code;
  std::vector<Array> outputs;
  nlohmann::ordered_json json;
  const rt::DeviceInfo device = session->device();
  json["device"] = {{"backend", device.backend}, {"name", device.name}, {"reason", session->device_reason()}};
  for (size_t i = 0; i < specs.size(); ++i) {
    auto output = session->output(i);
    if (!output) return report_failure("rtrun", output.status());
    outputs.push_back(array_of(*output, specs[i].name));
    nlohmann::ordered_json entry = {
        {"name", specs[i].name}, {"type", rt::name_of(output->dtype())}, {"shape", outputs.back().dims}};
    const size_t count = outputs.back().bytes.size() / librt::size_of(outputs.back().type);
    if (count <= 4096)
      for (size_t k = 0; k < count; ++k)
        entry["values"].push_back(librt::tools::element_of(outputs.back(), k));
    json["outputs"].push_back(std::move(entry));
  }
  if (rt::Status status = save_outputs(options, outputs); !status) return report_failure("rtrun", status);
  // The outputs are those of the first run: further ones may change states.
  const auto repeat = [&] { return repeat_runs(*session, options.repeat, times); };
  if (rt::Status status = rt::run::interruptible(*session, repeat); !status)
    return report_failure("rtrun", status);
  json["seconds"] = {{"load", times.load}, {"session", times.session}, {"first_run", times.first_run}};
  if (options.repeat > 0) json["seconds"]["median"] = times.median;
  const auto names = label_names(options, outputs);
  if (!names) return report_failure("rtrun", names.status());
  const int64_t top = options.top_k > 0 ? options.top_k : names->empty() ? 0 : kDefaultTop;
  for (size_t i = 0; options.json && top > 0 && i < outputs.size(); ++i)
    if (has_classes(outputs[i])) json["outputs"][i]["top"] = top_json(outputs[i], top, *names);
  const int code = check(options, outputs, *expected, json);
  if (options.json)
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  if (options.json || options.quiet) return code;
  print_run(*session, times, options.repeat);
  for (const Array& output : outputs)
    if (top > 0 && has_classes(output))
      print_top(output, top, *names);
    else if (expected->empty())
      print_values(output);
  return code;
}

void declare_generation(librt::tools::CommandLine& app, Options& options) {
  const std::string group = "Language models";
  rt::run::GenerateOptions& generate = options.generate;
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

int command_line(int argc, char** argv) {
  librt::tools::CommandLine app(
      "Runs a compiled model on files and optionally compares the outputs with expected ones.");
  Options options;
  app.add_option("model", options.model,
                 "Compiled model (.rt), or an ONNX file, which rtconvert compiles into the cache folder")
      ->required();
  app.add_option("--backend", options.session.backend, "cpu, vulkan, cuda, reference or auto");
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
  app.add_option("--input", options.inputs.files, "NAME=FILE: .npy, TensorProto .pb, PNG, JPEG or WAV");
  app.add_option("--test-data", options.inputs.test_data, "Folder with input_I.pb and output_I.pb");
  app.add_flag("--random-input", options.inputs.random, "Seeded random values for inputs without data");
  app.add_option("--seed", options.inputs.seed, "Seed of --random-input and of sampling")
      ->capture_default_str();
  app.add_option("--dim", options.dims, "NAME=EXTENT of a symbolic dimension, for --random-input; default 1");
  app.add_option("--mean", options.inputs.image.mean,
                 "Images: subtracted from 0..255, one value or one per channel")
      ->delimiter(',');
  app.add_option("--std", options.inputs.image.deviation, "Images: divisor, one value or one per channel")
      ->delimiter(',');
  app.add_option("--layout", options.layout, "Images: nchw or nhwc; default: by the input's shape")
      ->check(librt::tools::one_of({"nchw", "nhwc"}));
  app.add_option("--channels", options.channels, "Images: rgb, bgr or gray")
      ->check(librt::tools::one_of({"rgb", "bgr", "gray"}));
  app.add_flag("--resize", options.inputs.resize, "Images: scale to the input's size (bilinear)");
  app.add_option("--sample-rate", options.inputs.sample_rate,
                 "WAV: the rate in Hz that the model expects; another one is an error")
      ->check(librt::tools::positive());
  app.add_option("--audio-channels", options.audio_channels,
                 "WAV with several channels: take the first, or the mean of all")
      ->check(librt::tools::one_of({"first", "mean"}));
  app.add_option(
         "--top-k", options.top_k,
         "Print the K largest scores of each row of float outputs; with --generate: sample among the K "
         "most probable (0: all)")
      ->check(librt::tools::non_negative());
  app.add_option("--label-names", options.label_names,
                 "Text file with the name of a class per line, for --top-k (default with it: 5)");
  app.add_option("--time-limit", options.time_limit,
                 "Seconds that a run may take, planning included; more is an error. Checked between nodes, "
                 "not within "
                 "one, nor while a GPU computes")
      ->check(librt::tools::positive());
  app.add_option("--repeat", options.repeat,
                 "After the first run, run N more times and print the median time")
      ->check(librt::tools::positive());
  app.add_option("--expect", options.expect, "NAME=FILE: compare this output; exit 1 when it differs");
  app.add_option("--rtol", options.rtol, "Relative tolerance")->capture_default_str();
  app.add_option("--atol", options.atol, "Absolute tolerance")->capture_default_str();
  app.add_option("--save", options.save, "NAME=FILE.npy: write this output");
  app.add_option("--checkpoint", options.checkpoint, "Take the weights from a checkpoint of rttrain");
  app.add_option(
      "--adapter", options.adapter,
      "Take only the parameters from an adapter of rtconvert --save-adapter, or from a checkpoint");
  app.add_flag("--plan", options.plan, "Print the plan on stderr: every node, its kernel and device");
  app.add_flag("--inspect", options.inspect,
               "Print the entries, inputs, outputs, states and metadata of the model, without running it");
  app.add_flag("--json", options.json, "Results as JSON; also of --inspect");
  app.add_flag("--quiet", options.quiet, "Print neither values nor times");
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
                 "program at "
                 "once."}});
  if (const auto code = app.parse(argc, argv)) return *code;
  options.session.time_limit_ms = librt::tools::milliseconds(options.time_limit);
  options.generate.sampler.seed = options.inputs.seed;
  options.generate.sampler.top_k = options.top_k;
  options.generate.json = options.json;
  options.generate.quiet = options.quiet;
  if (!options.audio_channels.empty())
    options.inputs.mix =
        options.audio_channels == "first" ? librt::tools::Mix::First : librt::tools::Mix::Mean;
  options.inputs.layout_given = !options.layout.empty();
  options.inputs.image.channels_first = options.layout != "nhwc";
  options.inputs.image.channels = options.channels == "bgr"    ? librt::tools::Channels::Bgr
                                  : options.channels == "gray" ? librt::tools::Channels::Gray
                                                               : librt::tools::Channels::Rgb;
  for (const std::string& text : options.dims) {
    const auto assignment = rt::run::split_assignment(text);
    char* end = nullptr;
    const long long extent = assignment ? std::strtoll(assignment->second.c_str(), &end, 10) : -1;
    if (!assignment || *end != '\0' || extent < 0) {
      std::fprintf(stderr, "rtrun: --dim: expected NAME=EXTENT, found '%s'\n", text.c_str());
      return librt::tools::kBadInput;
    }
    options.inputs.dims[assignment->first] = extent;
  }
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  return librt::tools::run_program("rtrun", argc, argv, command_line);
}
