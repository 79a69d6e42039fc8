#include "tools/data/peft.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "runtime/core/convert_floats.h"
#include "runtime/core/text.h"

namespace librt::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "base_model.model.", kWeight = ".weight";
constexpr std::string_view kPeftA = ".lora_A.weight", kPeftB = ".lora_B.weight";
constexpr std::string_view kA = ".lora_a", kB = ".lora_b", kScale = "lora.scale";
constexpr size_t kLargestConfig = size_t{1} << 20;

std::string config_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + "adapter_config.json";
}

std::string without(const std::string& name, std::string_view ending) {
  return name.substr(0, name.size() - ending.size());
}

/// One end of a name: the module itself, or one that ends in ".MODULE".
bool is_module(const std::string& module, const std::string& pattern) {
  return module == pattern || module.ends_with("." + pattern);
}

/// What scales the results of a module.
class Config {
 public:
  static Result<Config> read(const std::string& path) {
    auto bytes = read_file(path, kLargestConfig);
    if (!bytes.ok())
      return std::move(bytes).status().in("an adapter of PEFT has its configuration beside it");
    Config config;
    const auto* const text_of = reinterpret_cast<const char*>(bytes->data());
    config.json_ = Json::parse(text_of, text_of + bytes->size(), nullptr, false);
    if (!config.json_.is_object()) return invalid_argument(path, ": expected a JSON object");
    if (config.json_.value("peft_type", Json("LORA")) != "LORA")
      return unsupported(path, ": peft_type ", config.json_["peft_type"].dump(), "; expected \"LORA\"");
    if (config.is_true("use_dora")) return unsupported(path, ": use_dora; librt has no DoRA");
    for (const char* key : {"r", "lora_alpha"})
      if (!config.json_.contains(key) || !config.json_[key].is_number() ||
          !(config.json_[key].get<double>() > 0))
        return invalid_argument(path, ": ", key, ": expected a number above 0");
    return config;
  }

  /// alpha / r, or alpha / sqrt(r) with use_rslora.
  double scale_of(const std::string& module) const {
    const double rank = number("r", "rank_pattern", module),
                 alpha = number("lora_alpha", "alpha_pattern", module);
    return alpha / (is_true("use_rslora") ? std::sqrt(rank) : rank);
  }

 private:
  bool is_true(const char* key) const { return json_.contains(key) && json_[key] == true; }
  double number(const char* key, const char* patterns, const std::string& module) const {
    if (json_.contains(patterns) && json_[patterns].is_object())
      for (const auto& [pattern, value] : json_[patterns].items())
        if (value.is_number() && is_module(module, pattern)) return value.get<double>();
    return json_[key].get<double>();
  }

  Json json_;
};

/// Convolutions have their channels after the rows, librt's at the end.
Array moved_channels(const Array& array, bool to_end) {
  const size_t rank = array.dims.size();
  if (rank < 3) return array;
  Array result = array;
  const auto rows = static_cast<size_t>(array.dims[0]);
  const auto channels = static_cast<size_t>(to_end ? array.dims[1] : array.dims[rank - 1]);
  size_t taps = 1;
  for (size_t axis = 1; axis < rank; ++axis) taps *= static_cast<size_t>(array.dims[axis]);
  if (channels == 0 || taps == 0) return array;
  taps /= channels;
  if (to_end)
    std::rotate(result.dims.begin() + 1, result.dims.begin() + 2, result.dims.end());
  else
    std::rotate(result.dims.begin() + 1, result.dims.end() - 1, result.dims.end());
  constexpr size_t kSize = sizeof(float);
  for (size_t row = 0; row < rows; ++row)
    for (size_t channel = 0; channel < channels; ++channel)
      for (size_t tap = 0; tap < taps; ++tap) {
        const size_t first = (row * channels + channel) * taps + tap,
                     last = (row * taps + tap) * channels + channel;
        std::memcpy(result.bytes.data() + (to_end ? last : first) * kSize,
                    array.bytes.data() + (to_end ? first : last) * kSize, kSize);
      }
  return result;
}

std::optional<Array> in_f32(const Array& array) {
  if (array.type == DType::F32) return array;
  if (array.type != DType::F16 && array.type != DType::BF16) return std::nullopt;
  Array result{.name = array.name, .type = DType::F32, .dims = array.dims, .bytes = {}};
  const size_t count = array.bytes.size() / size_of(array.type);
  result.bytes.resize(count * sizeof(float));
  convert_floats(array.bytes.data(), array.type, result.bytes.data(), DType::F32,
                 static_cast<int64_t>(count));
  return result;
}

void multiply(Array& array, float factor) {
  for (size_t at = 0; at < array.bytes.size(); at += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, array.bytes.data() + at, sizeof number);
    number *= factor;
    std::memcpy(array.bytes.data() + at, &number, sizeof number);
  }
}

Array scalar(std::string_view name, float number) {
  Array array{.name = std::string(name),
              .type = DType::F32,
              .dims = {},
              .bytes = std::vector<std::byte>(sizeof number)};
  std::memcpy(array.bytes.data(), &number, sizeof number);
  return array;
}

/// The weight of a module; empty if there is none, or several.
std::string weight_of(const std::string& module, const std::vector<std::string>& weights,
                      std::string& problem) {
  std::string found;
  for (const std::string& weight : weights) {
    if (!weight.ends_with(kWeight) || !is_module(without(weight, kWeight), module)) continue;
    if (!found.empty() && found != weight) {
      problem = text("the model has several of this name, '", found, "' and '", weight, "'");
      return {};
    }
    found = weight;
  }
  if (found.empty()) problem = "the model has no such weight";
  return found;
}

}  // namespace

bool is_peft_path(const std::string& path) {
  return path.substr(path.rfind('/') + 1) == "adapter_model.safetensors";
}

bool is_peft(const Safetensors& content) {
  return std::any_of(content.arrays.begin(), content.arrays.end(),
                     [](const Array& array) { return array.name.ends_with(kPeftA); });
}

Result<Safetensors> from_peft(const Safetensors& content, const std::string& path,
                              const std::vector<std::string>& weights) {
  RT_ASSIGN(const Config config, Config::read(config_of(path)));
  Safetensors adapter;
  adapter.metadata = content.metadata;
  std::string problems;
  std::vector<double> scales;  // of the arrays
  std::set<std::string> names;
  for (const Array& array : content.arrays) {
    const bool is_a = array.name.ends_with(kPeftA), is_b = array.name.ends_with(kPeftB);
    const auto refuse = [&](const std::string& why) { append(problems, "\n  '", array.name, "': ", why); };
    if (!is_a && !is_b) {
      refuse("is no matrix of a linear layer's or a convolution's adapter");
      continue;
    }
    std::string module = without(array.name, is_a ? kPeftA : kPeftB), problem;
    if (module.starts_with(kPrefix)) module.erase(0, kPrefix.size());
    const std::string weight = weight_of(module, weights, problem);
    const std::optional<Array> plain = in_f32(array);
    if (weight.empty() || !plain) {
      refuse(weight.empty() ? problem : text("expected f32, f16 or bf16, found ", name_of(array.type)));
      continue;
    }
    const double scale = config.scale_of(module);
    if (!(scale > 0) || !std::isfinite(scale)) {
      refuse("its rank_pattern or alpha_pattern: expected numbers above 0");
      continue;
    }
    Array made = moved_channels(*plain, true);
    made.name = weight + std::string(is_a ? kA : kB);
    if (!names.insert(made.name).second) {
      refuse(text("the file has two of '", made.name, "'"));
      continue;
    }
    adapter.arrays.push_back(std::move(made));
    scales.push_back(scale);
  }
  if (!problems.empty()) return invalid_argument(path, ": the adapter does not fit the model", problems);
  // librt has one factor; others go into B.
  const bool is_one =
      std::all_of(scales.begin(), scales.end(), [&](double scale) { return scale == scales[0]; });
  for (size_t i = 0; i < scales.size() && !is_one; ++i)
    if (adapter.arrays[i].name.ends_with(kB)) multiply(adapter.arrays[i], static_cast<float>(scales[i]));
  adapter.arrays.push_back(scalar(kScale, is_one && !scales.empty() ? static_cast<float>(scales[0]) : 1));
  return adapter;
}

Status write_peft(const std::string& path, const Safetensors& adapter) {
  Safetensors content;
  content.metadata.emplace_back("format", "pt");
  std::string problems;
  double scale = 1;
  std::map<std::string, int64_t> ranks;  // by module
  for (const Array& array : adapter.arrays) {
    if (array.name == kScale) {
      float number = 1;
      std::memcpy(&number, array.bytes.data(), std::min(sizeof number, array.bytes.size()));
      scale = number;
      continue;
    }
    const bool is_a = array.name.ends_with(kA), is_b = array.name.ends_with(kB);
    const std::string weight = is_a || is_b ? without(array.name, kA) : array.name;
    if ((!is_a && !is_b) || !weight.ends_with(kWeight) || array.dims.empty()) {
      append(problems, "\n  '", array.name, "': ",
             is_a || is_b ? "PEFT names modules, and this is the weight of none"
                          : "is no adapter, but trained whole");
      continue;
    }
    const std::string module = without(weight, kWeight);
    if (is_a) ranks[module] = array.dims[0];
    Array made = moved_channels(array, false);
    made.name = text(kPrefix, module, is_a ? kPeftA : kPeftB);
    content.arrays.push_back(std::move(made));
  }
  if (!problems.empty())
    return unsupported(path, ": PEFT has no place for what was trained", problems,
                       "\n  give the file another name, then it is in librt's own format");
  if (ranks.empty()) return invalid_argument(path, ": there is no adapter to write");
  int64_t rank = 0;
  for (const auto& [module, each] : ranks) rank = std::max(rank, each);
  Json config = {{"peft_type", "LORA"},
                 {"task_type", nullptr},
                 {"base_model_name_or_path", nullptr},
                 {"inference_mode", true},
                 {"bias", "none"},
                 {"fan_in_fan_out", false},
                 {"lora_dropout", 0.0},
                 {"r", rank},
                 {"lora_alpha", scale * static_cast<double>(rank)},
                 {"target_modules", Json::array()},
                 {"rank_pattern", Json::object()},
                 {"alpha_pattern", Json::object()}};
  for (const auto& [module, each] : ranks) {
    config["target_modules"].push_back(module);
    if (each == rank) continue;
    config["rank_pattern"][module] = each;
    config["alpha_pattern"][module] = scale * static_cast<double>(each);
  }
  RT_TRY(write_safetensors(path, content));
  const std::string bytes = config.dump(2) + "\n";
  return write_file(config_of(path), std::as_bytes(std::span(bytes)));
}

}  // namespace librt::tools
