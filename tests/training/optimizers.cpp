// Optimizers against another framework's trajectories.
//
//   optimizers --data FOLDER --backend cpu [--only PART]
//
// FOLDER holds NAME.json (algorithm, hyperparameters) and NAME.npz: traj.P [steps + 1, ..], grads.P [steps,
// ..], lr [steps]. A single-entry model takes the gradients as inputs; every step of every parameter is
// compared.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/training/step_session.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/optimizers.h"
#include "tools/compiler/writer.h"
#include "tools/data/compare.h"
#include "tools/data/npz.h"

namespace {

namespace fs = std::filesystem;
using librt::Result;
using librt::Status;
using librt::compiler::Optimizer;
using librt::tools::Array;
using Json = nlohmann::json;

struct Settings {
  std::string data, backend = "cpu", only;
};

/// Row `index` of an array [rows, ..].
Array row_of(const Array& array, size_t index, const std::string& name) {
  const size_t bytes = array.bytes.size() / static_cast<size_t>(array.dims[0]);
  Array row{
      .name = name, .type = array.type, .dims = {array.dims.begin() + 1, array.dims.end()}, .bytes = {}};
  row.bytes.assign(array.bytes.begin() + static_cast<std::ptrdiff_t>(index * bytes),
                   array.bytes.begin() + static_cast<std::ptrdiff_t>((index + 1) * bytes));
  return row;
}

/// The algorithm and its hyperparameters; unknown names are errors.
Result<librt::compiler::TrainingOptimizer> options_of(const Json& json) {
  static const std::map<std::string, Optimizer> kAlgorithms = {
      {"SGD", Optimizer::Sgd},         {"Adam", Optimizer::Adam},       {"AdamW", Optimizer::AdamW},
      {"RMSProp", Optimizer::RmsProp}, {"Adagrad", Optimizer::Adagrad}, {"Adadelta", Optimizer::Adadelta},
      {"LAMB", Optimizer::Lamb},       {"Lion", Optimizer::Lion}};
  const auto algorithm = kAlgorithms.find(json.at("algorithm"));
  if (algorithm == kAlgorithms.end())
    return librt::unsupported("unknown algorithm ", json.at("algorithm").get<std::string>());
  librt::compiler::TrainingOptimizer options;
  librt::compiler::OptimizerOptions& o = options.optimizer;
  o.optimizer = algorithm->second;
  o.momentum = 0;
  for (const auto& [key, value] : json.at("hyperparameters").items()) {
    if (key == "lr")
      continue;
    else if (key == "momentum")
      o.momentum = value.get<float>();
    else if (key == "dampening")
      o.dampening = value;
    else if (key == "nesterov")
      o.nesterov = value;
    else if (key == "beta1")
      o.beta1 = value.get<float>();
    else if (key == "beta2")
      o.beta2 = value.get<float>();
    else if (key == "eps")
      o.epsilon = value.get<float>();
    else if (key == "alpha" || key == "rho")
      o.decay_rate = value.get<float>();
    else if (key == "centered")
      o.centered = value;
    else if (key == "amsgrad")
      o.amsgrad = value;
    else if (key == "lr_decay")
      o.learning_rate_decay = value;
    else if (key == "initial_accumulator_value")
      o.initial_accumulator = value;
    else if (key == "weight_decay")
      o.weight_decay = value;
    else if (key == "clip_global_norm")
      options.gradients.clip_norm = value.get<float>();
    else if (key == "clip_value")
      options.gradients.clip_value = value.get<float>();
    else
      return librt::unsupported("unknown hyperparameter ", key);
  }
  return options;
}

/// The arrays whose names begin with `prefix`, keyed by the rest of the name.
std::map<std::string, const Array*> group_of(const std::vector<Array>& arrays, std::string_view prefix) {
  std::map<std::string, const Array*> group;
  for (const Array& array : arrays)
    if (array.name.starts_with(prefix)) group[array.name.substr(prefix.size())] = &array;
  return group;
}

Result<std::vector<std::byte>> make_model(const librt::compiler::TrainingOptimizer& options,
                                          const std::map<std::string, const Array*>& trajectories) {
  librt::ModelGraph model;
  model.producer = "optimizers";
  librt::compiler::StateTable states(model.states);
  librt::Graph graph;
  librt::compiler::Builder builder(graph, &model.states);
  std::vector<librt::compiler::Gradient> gradients;
  for (const auto& [name, trajectory] : trajectories) {
    const Array start = row_of(*trajectory, 0, name);
    const librt::TensorInfo info{.dtype = librt::DType::F32, .shape = librt::Shape(std::span(start.dims))};
    std::vector<librt::Dim> dims;
    for (int64_t extent : start.dims) dims.push_back({.extent = extent});
    const uint32_t state = states.make(name, info, librt::StateKind::Parameter,
                                       librt::Blob::copy_of(start.bytes.data(), start.bytes.size()));
    const librt::ValueId parameter = builder.state(name, state, info);
    gradients.push_back({parameter, builder.input("grad." + name, librt::DType::F32, dims)});
  }
  const librt::ValueId rate = builder.input("learning_rate", librt::DType::F32, {});
  std::vector<librt::StateUpdate> updates;
  librt::compiler::emit_optimizer(builder, options, gradients, rate, librt::kNoValue, librt::kNoValue, states,
                                  updates);
  builder.output(builder.emit(librt::op::IdentityAttributes{}, {rate}));
  RT_TRY(Status(builder.status()));
  graph.name = "train_step";
  graph.values[graph.outputs[0]].name = "rate";
  graph.state_updates = std::move(updates);
  model.entries.push_back({.name = "train_step", .graph = std::move(graph)});
  RT_TRY(librt::compiler::optimize(model, {}, nullptr));
  return librt::compiler::serialize_model(model);
}

/// Empty when every step is within the tolerance, else the difference.
std::string run_case(const Settings& settings, const std::string& name, size_t& compared) {
  std::string error;
  const auto arrays = librt::tools::read_npz(settings.data + "/" + name + ".npz");
  if (!arrays) return arrays.status().message();
  std::ifstream file(settings.data + "/" + name + ".json");
  const Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded()) return "the description is no JSON";
  const auto options = options_of(json);
  if (!options.ok()) return options.status().message();
  const auto trajectories = group_of(*arrays, "traj."), gradients = group_of(*arrays, "grads.");
  const auto rates = group_of(*arrays, "lr");
  if (trajectories.empty() || rates.empty()) return "traj.* or lr is missing";
  const auto bytes = make_model(*options, trajectories);
  if (!bytes.ok()) return bytes.status().message();
  librt::test::StepSession session(*bytes, settings.backend, "train_step");
  const size_t steps = static_cast<size_t>(rates.begin()->second->dims[0]);
  const double relative = json["tolerance"].value("rtol", 1e-4),
               absolute = json["tolerance"].value("atol", 1e-6);
  for (size_t step = 0; step < steps; ++step) {
    std::vector<Array> inputs;
    for (const auto& [parameter, array] : gradients)
      inputs.push_back(row_of(*array, step, "grad." + parameter));
    inputs.push_back(
        librt::tools::converted(row_of(*rates.begin()->second, step, "learning_rate"), librt::DType::F32));
    if (!session.run(inputs)) return session.error();
    for (const auto& [parameter, trajectory] : trajectories) {
      const auto state = session.state(parameter);
      if (!state) return session.error();
      const auto difference =
          librt::tools::compare(*state, row_of(*trajectory, step + 1, parameter), relative, absolute);
      if (!difference.equal())
        return "step " + std::to_string(step) + ", " + parameter + ": " + difference.text;
      ++compared;
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  librt::tools::CommandLine app("Compares optimizers with another framework's trajectories");
  app.add_option("--data", settings.data, "Folder with NAME.npz, NAME.json")->required();
  app.add_option("--backend", settings.backend, "Of the session")->capture_default_str();
  app.add_option("--only", settings.only, "Only cases whose name contains this");
  if (const auto code = app.parse(argc, argv)) return *code;
  if (!fs::exists(settings.data)) {
    std::printf("SKIPPED: %s is not there\n", settings.data.c_str());
    return 77;
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(settings.data))
    if (entry.path().extension() == ".json" &&
        entry.path().stem().string().find(settings.only) != std::string::npos)
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  size_t passed = 0, failed = 0, compared = 0;
  for (const std::string& name : names) {
    const std::string reason = run_case(settings, name, compared);
    ++(reason.empty() ? passed : failed);
    if (!reason.empty()) std::printf("FAIL %s: %s\n", name.c_str(), reason.c_str());
    std::fflush(stdout);
  }
  std::printf("%s: %zu passed, %zu failed, %zu steps of parameters compared\n", settings.backend.c_str(),
              passed, failed, compared);
  return failed == 0 && passed > 0 ? librt::tools::kFine : librt::tools::kDifferent;
}
