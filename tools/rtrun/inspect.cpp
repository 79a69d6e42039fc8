#include "tools/rtrun/inspect.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/cli/terminal.h"

namespace rt::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStateKinds[] = {"parameter", "statistic", "optimizer", "counter"};

/// Bytes of a tensor whose extents are all known and not absurd.
std::optional<uint64_t> bytes_of(const rt::TensorSpec& spec) {
  uint64_t bytes = rt_dtype_size(static_cast<rt_dtype>(spec.dtype));
  for (const rt::Dim& dim : spec.dims)
    if (dim.extent < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim.extent), &bytes))
      return std::nullopt;
  return bytes;
}

/// dims: extents; of dynamic dimensions the symbol, or null where it has none.
Json tensor(const rt::TensorSpec& spec) {
  Json json = {{"name", spec.name}, {"dtype", rt::name_of(spec.dtype)}, {"dims", Json::array()}};
  for (const rt::Dim& dim : spec.dims) {
    json["dims"].push_back(dim.extent >= 0      ? Json(dim.extent)
                           : dim.symbol.empty() ? Json()
                                                : Json(dim.symbol));
    if (dim.extent < 0 && dim.bound > 0 && !dim.symbol.empty()) json["bounds"][dim.symbol] = dim.bound;
  }
  if (const auto bytes = bytes_of(spec)) json["bytes"] = *bytes;
  return json;
}

Json model_json(const rt::Model& model, const std::string& path) {
  Json json = {{"file", path}, {"producer", model.producer()}};
  std::error_code error;
  if (const auto bytes = std::filesystem::file_size(path, error); !error) json["bytes"] = bytes;
  json["entries"] = Json::array();
  for (const std::string& name : model.entries()) {
    Json entry = {{"name", name}, {"inputs", Json::array()}, {"outputs", Json::array()}};
    for (const rt::TensorSpec& input : model.inputs(name)) entry["inputs"].push_back(tensor(input));
    for (const rt::TensorSpec& output : model.outputs(name)) entry["outputs"].push_back(tensor(output));
    json["entries"].push_back(std::move(entry));
  }
  json["states"] = Json::array();
  uint64_t state_bytes = 0;
  for (const rt::StateSpec& state : model.states()) {
    Json entry = tensor(state);
    entry["kind"] = kStateKinds[state.kind];
    state_bytes += bytes_of(state).value_or(0);
    json["states"].push_back(std::move(entry));
  }
  json["state_bytes"] = state_bytes;
  json["metadata"] = Json::object();
  for (size_t i = 0; i < rt_model_metadata_count(model.handle()); ++i) {
    const std::string key = rt_model_metadata_key(model.handle(), i);
    json["metadata"][key] = model.metadata(key).value_or("");
  }
  return json;
}

/// "x f32[batch,28]"
std::string line_of(const Json& tensor) {
  std::string dims;
  for (const Json& dim : tensor["dims"])
    dims += (dims.empty() ? "" : ",") + (dim.is_null()     ? "?"
                                         : dim.is_string() ? dim.get<std::string>()
                                                           : dim.dump());
  return librt::tools::printable(tensor["name"].get<std::string>() + " " +
                                 tensor["dtype"].get<std::string>() + "[" + dims + "]");
}

std::string shown(const Json& text) {
  return librt::tools::printable(text.get<std::string>());
}

void print(const Json& json) {
  std::printf("file        %s, %s bytes, written by %s\n", shown(json["file"]).c_str(),
              json.value("bytes", Json()).dump().c_str(), shown(json["producer"]).c_str());
  for (const Json& entry : json["entries"]) {
    std::printf("entry       %s\n", shown(entry["name"]).c_str());
    for (const Json& input : entry["inputs"]) std::printf("  input     %s\n", line_of(input).c_str());
    for (const Json& output : entry["outputs"]) std::printf("  output    %s\n", line_of(output).c_str());
  }
  if (!json["states"].empty())
    std::printf("states      %zu, %s bytes\n", json["states"].size(), json["state_bytes"].dump().c_str());
  for (const Json& state : json["states"])
    std::printf("  %-9s %s\n", state["kind"].get<std::string>().c_str(), line_of(state).c_str());
  for (const auto& [key, value] : json["metadata"].items())
    std::printf("metadata    %s = %s\n", librt::tools::printable(key).c_str(), shown(value).c_str());
}

}  // namespace

void inspect(const rt::Model& model, const std::string& path, bool json) {
  const Json all = model_json(model, path);
  if (json)  // names of an ONNX file may be invalid UTF-8, which JSON requires
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  else
    print(all);
}

}  // namespace rt::run
