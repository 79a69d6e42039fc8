#include "tools/rtrun/results.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/cli/exit_code.h"
#include "tools/data/compare.h"
#include "tools/data/npy.h"
#include "tools/data/public_status.h"
#include "tools/onnx/array_file.h"
#include "tools/rtrun/top_scores.h"

namespace rt::run {
namespace {

using librt::tools::Array;
using Json = nlohmann::ordered_json;

constexpr int64_t kDefaultTop = 5;  ///< with --label-names alone
constexpr size_t kMostJsonValues = 4096;

rt::Status refused(std::string message) {
  return {rt::Code::InvalidArgument, std::move(message)};
}

/// Whether an output's last axis can be that of classes.
bool has_classes(const Array& array) {
  return librt::is_float(array.type) && !array.dims.empty() && array.dims.back() > 0;
}

/// Compares; lines on stdout, or entries of the JSON. Returns the exit code.
int compare_all(const Options& options, const std::vector<Array>& outputs,
                const std::vector<Expected>& expected, Json& json) {
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

void print_values(const Array& array) {
  std::printf("%s %s", array.name.c_str(), librt::tools::describe(array).c_str());
  const size_t count = array.bytes.size() / librt::size_of(array.type);
  constexpr size_t kShown = 16;
  for (size_t i = 0; i < std::min(count, kShown); ++i)
    std::printf(" %.6g", librt::tools::element_of(array, i));
  std::printf(count > kShown ? " ... (%zu more)\n" : "\n", count - std::min(count, kShown));
}

Json top_json(const Array& output, int64_t count, const std::vector<std::string>& names) {
  Json rows = Json::array();
  const bool named = names.size() == static_cast<size_t>(output.dims.back());
  for (const auto& row : top_scores(output, static_cast<size_t>(count))) {
    Json scores = Json::array();
    for (const Score& score : row) {
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
  const auto rows = top_scores(output, static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.size() > 1) std::printf("  row %zu\n", i);
    for (const Score& score : rows[i])
      std::printf("  %10.6g  %zu%s%s\n", score.value, score.index, named ? " " : "",
                  named ? names[score.index].c_str() : "");
  }
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

Json output_json(const Array& output) {
  Json entry = {{"name", output.name}, {"type", librt::name_of(output.type)}, {"shape", output.dims}};
  const size_t count = output.bytes.size() / librt::size_of(output.type);
  for (size_t i = 0; count <= kMostJsonValues && i < count; ++i)
    entry["values"].push_back(librt::tools::element_of(output, i));
  return entry;
}

/// All but the comparison.
Json results_json(const rt::Session& session, const Options& options, const Results& results, int64_t top) {
  Json json;
  const rt::DeviceInfo device = session.device();
  json["device"] = {{"backend", device.backend}, {"name", device.name}, {"reason", session.device_reason()}};
  for (const Array& output : results.outputs) {
    json["outputs"].push_back(output_json(output));
    if (top > 0 && has_classes(output))
      json["outputs"].back()["top"] = top_json(output, top, results.label_names);
  }
  const Times& times = results.times;
  json["seconds"] = {{"load", times.load}, {"session", times.session}, {"first_run", times.first_run}};
  if (options.repeat > 0) json["seconds"]["median"] = times.median;
  return json;
}

}  // namespace

rt::Result<std::vector<Expected>> read_expected(const Options& options,
                                                const std::vector<rt::TensorSpec>& outputs) {
  std::vector<Expected> expected;
  auto add = [&](size_t index, const std::string& path) -> rt::Status {
    auto array = librt::tools::read_array(path);
    if (!array) return as_public(array.status());
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
    auto assignment = split_assignment(text);
    if (!assignment) return assignment.status();
    size_t index = outputs.size();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].name == assignment->first) index = i;
    if (index == outputs.size()) return refused("there is no output '" + assignment->first + "'");
    if (rt::Status status = add(index, assignment->second); !status) return status;
  }
  if (!options.inputs.test_data.empty() && expected.empty())
    return refused(options.inputs.test_data + ": holds no output_I.pb to compare with");
  return expected;
}

rt::Status save_outputs(const Options& options, const std::vector<Array>& outputs) {
  for (const std::string& text : options.save) {
    auto assignment = split_assignment(text);
    if (!assignment) return assignment.status();
    const Array* found = nullptr;
    for (const Array& output : outputs)
      if (output.name == assignment->first) found = &output;
    if (found == nullptr) return refused("there is no output '" + assignment->first + "'");
    if (const auto status = librt::tools::write_npy(assignment->second, *found); !status.ok())
      return as_public(status);
  }
  return {};
}

rt::Result<std::vector<std::string>> read_names(const Options& options, const std::vector<Array>& outputs) {
  if (options.label_names.empty()) return std::vector<std::string>();
  auto names = read_label_names(options.label_names);
  if (!names) return names;
  std::string found;
  for (const Array& output : outputs) {
    if (!has_classes(output)) continue;
    if (output.dims.back() == static_cast<int64_t>(names->size())) return names;
    found += (found.empty() ? "" : ", ") + output.name + " has " + std::to_string(output.dims.back());
  }
  return refused(options.label_names + ": expected a name for each class of an output (" + found +
                 "), found " + std::to_string(names->size()));
}

int show(const rt::Session& session, const Options& options, const Results& results) {
  const int64_t top = options.top_k > 0 ? options.top_k : results.label_names.empty() ? 0 : kDefaultTop;
  Json json;
  if (options.json) json = results_json(session, options, results, top);
  const int code = compare_all(options, results.outputs, results.expected, json);
  if (options.json) std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  if (options.json || options.quiet) return code;
  print_run(session, results.times, options.repeat);
  for (const Array& output : results.outputs)
    if (top > 0 && has_classes(output))
      print_top(output, top, results.label_names);
    else if (results.expected.empty())
      print_values(output);
  return code;
}

}  // namespace rt::run
