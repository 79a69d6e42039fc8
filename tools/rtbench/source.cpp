#include "tools/rtbench/source.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tools/cli/exit_code.h"
#include "tools/cli/onnx_model.h"
#include "tools/data/number.h"

namespace librt::bench {

std::optional<BenchModel> open_source(const std::string& source, Mode mode, int& code) {
  code = tools::kBadInput;
  tools::CompiledPath compiled{source};
  if (mode == Mode::Infer && !source.starts_with("zoo:"))
    compiled = tools::compiled_path("rtbench", source);
  else if (tools::is_onnx_file(source)) {
    std::fprintf(
        stderr,
        "rtbench: %s is an ONNX file, without a training step; compile it with `rtconvert %s -o MODEL.rt "
        "--train --loss cross_entropy --optimizer adam`\n",
        source.c_str(), source.c_str());
    return std::nullopt;
  }
  if (compiled.failed != tools::kFine) {
    code = compiled.failed;
    return std::nullopt;
  }
  std::string error;
  auto model = open_model(compiled.path, mode, error);
  if (!model)
    std::fprintf(stderr, "rtbench: %s\n", error.c_str());
  else if (compiled.path != source)
    model->name = std::filesystem::path(source).stem().string();
  return model;
}

rt::Status read_dims(const std::vector<std::string>& texts, std::map<std::string, int64_t>& dims) {
  for (const std::string& text : texts) {
    const size_t at = std::min(text.find('='), text.size());
    const auto extent =
        tools::number_from<int64_t>(std::string_view(text).substr(std::min(at + 1, text.size())));
    if (!extent || *extent <= 0)
      return rt::Status(rt::Code::InvalidArgument, "--dim: expected NAME=EXTENT, found '" + text + "'");
    dims[text.substr(0, at)] = *extent;
  }
  return {};
}

rt::Status check_dims(const std::vector<BenchModel>& models, const MeasureOptions& options) {
  std::set<std::string> symbols;
  for (const BenchModel& model : models) {
    const auto loaded = load(model, options.load);
    if (!loaded) return loaded.status();
    for (const rt::TensorSpec& input : loaded->inputs(model.entry))
      for (const rt::Dim& dim : input.dims)
        if (dim.extent < 0) symbols.insert(dim.symbol);
  }
  for (const auto& [name, extent] : options.dims) {
    if (symbols.contains(name)) continue;
    std::string known;
    for (const std::string& symbol : symbols) known += (known.empty() ? "" : ", ") + symbol;
    return rt::Status(rt::Code::InvalidArgument, "--dim: expected a dynamic dimension of the model (" +
                                                     (known.empty() ? "none" : known) + "), found '" + name +
                                                     "'");
  }
  return {};
}

}  // namespace librt::bench
