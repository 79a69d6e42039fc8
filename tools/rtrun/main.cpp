// rtrun: runs a model on files and checks it against expected outputs.
//
// Knows: the command line and how results are shown. librt is used through its public headers.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/openmp_wait.h"
#include "tools/data/compare.h"
#include "tools/data/npy.h"
#include "tools/onnx/array_file.h"
#include "tools/rtrun/generate.h"
#include "tools/rtrun/inputs.h"

namespace {

using librt::tools::Array;

struct Options {
  std::string model;
  rt::SessionOptions session;
  rt::run::InputOptions inputs;
  rt::run::GenerateOptions generate;
  std::vector<std::string> expect;
  std::vector<std::string> save;
  std::string checkpoint, adapter;
  double rtol = 1e-3;
  double atol = 1e-4;
  bool plan = false;
  bool json = false;
  bool quiet = false;
  std::string channels = "rgb";
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
    std::string error;
    auto array = librt::tools::read_array(path, error);
    if (!array) return failed(rt::Code::Io, error);
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
    std::string error;
    if (!librt::tools::write_npy(assignment->second, *found, error)) return failed(rt::Code::Io, error);
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

int print_plan(rt::Session& session) {
  const auto plan = session.plan_text();
  if (!plan) return librt::tools::report_failure("rtrun", plan.status());
  std::fputs(plan->c_str(), stderr);
  return librt::tools::kFine;
}

int run(const Options& options) {
  using librt::tools::report_failure;
  const auto model = rt::Model::load(options.model);
  if (!model) return report_failure("rtrun", model.status());
  auto session = rt::Session::create(*model, options.session);
  if (!session) return report_failure("rtrun", session.status());
  if (!options.checkpoint.empty())
    if (rt::Status status = session->load_checkpoint(options.checkpoint); !status)
      return report_failure("rtrun", status);
  if (!options.adapter.empty())
    if (rt::Status status = session->load_adapter(options.adapter); !status)
      return report_failure("rtrun", status);
  if (options.generate.count > 0) {
    const int code = rt::run::generate(*model, *session, options.generate);
    if (options.plan && code == librt::tools::kFine) return print_plan(*session);
    return code;
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
  if (rt::Status status = session->run(); !status) return report_failure("rtrun", status);
  if (options.plan)
    if (const int code = print_plan(*session); code != librt::tools::kFine) return code;
  std::vector<Array> outputs;
  nlohmann::ordered_json json;
  const rt::DeviceInfo device = session->device();
  json["device"] = {{"backend", device.backend}, {"name", device.name}};
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
  const int code = check(options, outputs, *expected, json);
  if (options.json)
    std::printf("%s\n", json.dump(2).c_str());
  else if (!options.quiet && expected->empty())
    for (const Array& output : outputs) print_values(output);
  return code;
}

void declare_generation(CLI::App& app, Options& options) {
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
  app.add_option("--top-k", generate.sampler.top_k, "Sample among the K most probable; 0: all")
      ->check(librt::tools::non_negative())
      ->capture_default_str()
      ->group(group);
  app.add_option("--top-p", generate.sampler.top_p,
                 "Sample among the most probable that together reach probability P")
      ->check(CLI::Range(0.0, 1.0))
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

}  // namespace

int main(int argc, char** argv) {
  librt::tools::spin_briefly();
  CLI::App app("Runs a compiled model on files and optionally compares the outputs with expected ones.");
  Options options;
  app.add_option("model", options.model, "Compiled model (.rt)")->required();
  app.add_option("--backend", options.session.backend, "cpu, vulkan, cuda, reference or auto");
  app.add_option("--device", options.session.device,
                 "Device of the backend: index, part of its name, or UUID");
  app.add_option("--threads", options.session.threads, "CPU threads; 0: all this process may use");
  app.add_option("--entry", options.session.entry, "Entry to run; default: infer");
  app.add_option("--precision", options.session.precision,
                 "fp32, tf32 (f32 on CUDA's tensor cores), fp16 or bf16: compute matmuls and convolutions in "
                 "it; default: as in the file");
  app.add_flag("--strict", options.session.strict, "Fail if the device cannot run a node itself");
  app.add_flag("--validation", options.session.validation,
               "Vulkan validation layers; their messages are errors");
  app.add_option("--input", options.inputs.files, "NAME=FILE: .npy, TensorProto .pb, PNG or JPEG");
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
      ->check(CLI::IsMember({"nchw", "nhwc"}));
  app.add_option("--channels", options.channels, "Images: rgb, bgr or gray")
      ->check(CLI::IsMember({"rgb", "bgr", "gray"}));
  app.add_flag("--resize", options.inputs.resize, "Images: scale to the input's size (bilinear)");
  app.add_option("--expect", options.expect, "NAME=FILE: compare this output; exit 1 when it differs");
  app.add_option("--rtol", options.rtol, "Relative tolerance")->capture_default_str();
  app.add_option("--atol", options.atol, "Absolute tolerance")->capture_default_str();
  app.add_option("--save", options.save, "NAME=FILE.npy: write this output");
  app.add_option("--checkpoint", options.checkpoint, "Take the weights from a checkpoint of rttrain");
  app.add_option(
      "--adapter", options.adapter,
      "Take only the parameters from an adapter of rtconvert --save-adapter, or from a checkpoint");
  app.add_flag("--plan", options.plan, "Print the plan on stderr: every node, its kernel and device");
  app.add_flag("--json", options.json, "Results as JSON");
  app.add_flag("--quiet", options.quiet, "Do not print values");
  declare_generation(app, options);
  librt::tools::set_up_help(
      app,
      {.program = "rtrun",
       .examples = {
           "rtrun resnet50.rt --input image=cat.jpg --mean 123.7,116.3,103.5 --std 58.4,57.1,57.4 --resize",
           "rtrun net.rt --input x=x.npy --expect y=y.npy --backend vulkan",
           "rtrun decoder.rt --generate 200 --tokenizer tok512.bin --prompt \"Once upon a time\""}});
  if (const auto code = librt::tools::parse_arguments(app, argc, argv)) return *code;
  options.generate.sampler.seed = options.inputs.seed;
  options.generate.json = options.json;
  options.generate.quiet = options.quiet;
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
  try {
    return run(options);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "rtrun: not enough memory\n");
    return librt::tools::kBadMachine;
  }
}
