// Gradients of ONNX graphs against another framework's values.
//
//   gradients --data FOLDER --backend cpu [--only PART] [--verbose]
//
// FOLDER holds NAME.onnx, NAME.npz and NAME.json for every case. Each model is imported, gets the entry
// `gradients`, is optimized, written, read back and run in a session; every gradient and every output is
// compared.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/training_graph.h"
#include "tools/compiler/writer.h"
#include "tools/convert/run_session.h"
#include "tools/data/compare.h"
#include "tools/data/npz.h"
#include "tools/onnx/import.h"

namespace {

namespace fs = std::filesystem;
using librt::tools::Array;

struct Settings {
  std::string data, backend = "cpu", only;
  bool verbose = false;
};

struct Tolerance {
  double relative = 1e-4, absolute = 1e-5;
};

/// The arrays of a case, by their role in the graph.
class CaseData {
 public:
  static std::optional<CaseData> read(const std::string& path, std::string& error) {
    auto arrays = librt::tools::read_npz(path);
    if (!arrays) error = arrays.status().message();
    if (!arrays) return std::nullopt;
    CaseData data;
    data.arrays_ = std::move(*arrays);
    return data;
  }
  const Array* find(const std::string& name) const {
    const auto found =
        std::find_if(arrays_.begin(), arrays_.end(), [&](const Array& array) { return array.name == name; });
    return found == arrays_.end() ? nullptr : &*found;
  }
  /// An input of the graph.
  const Array* input(const std::string& name) const {
    for (const char* role : {"in.", "param."})
      if (const Array* array = find(role + name)) return array;
    constexpr std::string_view kGradient = "grad.";
    return name.starts_with(kGradient) ? find("grad_out." + name.substr(kGradient.size())) : nullptr;
  }
  /// The outputs that have an upstream gradient.
  std::vector<std::string> outputs_with_gradient() const {
    constexpr std::string_view kUpstream = "grad_out.";
    std::vector<std::string> names;
    for (const Array& array : arrays_)
      if (array.name.starts_with(kUpstream)) names.push_back(array.name.substr(kUpstream.size()));
    return names;
  }
  size_t gradients() const {
    return static_cast<size_t>(std::count_if(
        arrays_.begin(), arrays_.end(), [](const Array& array) { return array.name.starts_with("grad."); }));
  }

 private:
  std::vector<Array> arrays_;
};

std::optional<Tolerance> read_tolerance(const std::string& path, std::string& error) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) {
    error = path + " is no JSON";
    return std::nullopt;
  }
  Tolerance tolerance;
  if (json.contains("tolerance")) {
    tolerance.relative = json["tolerance"].value("rtol", tolerance.relative);
    tolerance.absolute = json["tolerance"].value("atol", tolerance.absolute);
  }
  return tolerance;
}

librt::Result<librt::ModelGraph> import_with_gradients(const std::string& path, const CaseData& data) {
  librt::onnx::ImportReport report;
  auto model = librt::onnx::import_onnx(path, {}, report);
  if (!model.ok()) return model;
  RT_TRY(librt::compiler::add_gradient_entry(*model, data.outputs_with_gradient()));
  std::erase_if(model->entries, [](const auto& entry) { return entry.name != "gradients"; });
  RT_TRY(librt::compiler::optimize(*model, {}, nullptr));
  return model;
}

/// Empty when all is within the tolerance, else the difference.
std::string run_case(const Settings& settings, const std::string& name, size_t& compared) {
  const std::string stem = settings.data + "/" + name;
  std::string error;
  const auto data = CaseData::read(stem + ".npz", error);
  if (!data) return error;
  const auto tolerance = read_tolerance(stem + ".json", error);
  if (!tolerance) return error;
  const auto model = import_with_gradients(stem + ".onnx", *data);
  if (!model.ok()) return model.status().message();
  const librt::Graph& graph = model->entries[0].graph;
  std::vector<Array> inputs;
  for (librt::ValueId id : graph.inputs) {
    const Array* array = data->input(graph[id].name);
    if (array == nullptr) return "no data for the input " + graph[id].name;
    inputs.push_back(*array);
    if (graph[id].rank() == 0) inputs.back().dims.clear();  // NumPy's files store a scalar as one element
  }
  const auto file = librt::compiler::serialize_model(*model);
  if (!file.ok()) return file.status().message();
  const auto outputs = librt::convert::run_session(*file, settings.backend, false, inputs, error);
  if (!outputs) return error;
  size_t gradients = 0;
  for (size_t i = 0; i < outputs->size(); ++i) {
    const std::string& output = graph[graph.outputs[i]].name;
    const bool gradient = output.starts_with("grad.");
    const Array* want = data->find(gradient ? output : "out." + output);
    if (want == nullptr) continue;  // no reference gradient, as for labels
    gradients += gradient;
    Array expected = *want;
    if ((*outputs)[i].dims.empty() && expected.dims == std::vector<int64_t>{1}) expected.dims.clear();
    const auto difference =
        librt::tools::compare((*outputs)[i], expected, tolerance->relative, tolerance->absolute);
    if (!difference.equal()) return output + ": " + difference.text;
    ++compared;
  }
  if (gradients != data->gradients()) return "compared fewer gradients than there are";
  return {};
}

std::vector<std::string> case_names(const Settings& settings) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(settings.data))
    if (entry.path().extension() == ".onnx" &&
        entry.path().stem().string().find(settings.only) != std::string::npos)
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  librt::tools::CommandLine app("Compares gradients of ONNX graphs with another framework's");
  app.add_option("--data", settings.data, "Folder with NAME.onnx, NAME.npz, NAME.json")->required();
  app.add_option("--backend", settings.backend, "Of the session")->capture_default_str();
  app.add_option("--only", settings.only, "Only cases whose name contains this");
  app.add_flag("--verbose", settings.verbose, "Also name what passes");
  if (const auto code = app.parse(argc, argv)) return *code;
  if (!fs::exists(settings.data)) {
    std::printf("SKIPPED: %s is not there\n", settings.data.c_str());
    return 77;
  }
  size_t passed = 0, failed = 0, compared = 0;
  for (const std::string& name : case_names(settings)) {
    const std::string reason = run_case(settings, name, compared);
    ++(reason.empty() ? passed : failed);
    if (!reason.empty()) std::printf("FAIL %s: %s\n", name.c_str(), reason.c_str());
    if (reason.empty() && settings.verbose) std::printf("ok %s\n", name.c_str());
    std::fflush(stdout);
  }
  std::printf("%s: %zu passed, %zu failed, %zu tensors compared\n", settings.backend.c_str(), passed, failed,
              compared);
  return failed == 0 && passed > 0 ? librt::tools::kFine : librt::tools::kDifferent;
}
