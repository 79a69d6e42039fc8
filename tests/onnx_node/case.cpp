#include "tests/onnx_node/case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/core/element.h"
#include "runtime/core/text.h"
#include "tools/onnx/array_file.h"

namespace librt::test {

namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string shape_text(const tools::Array& array) {
  std::string out(name_of(array.type));
  out += '[';
  for (size_t i = 0; i < array.dims.size(); ++i) out += text(i == 0 ? "" : ",", array.dims[i]);
  return out + "]";
}

template <class Field>
Case node_case(const Field& field) {
  Case row{.name = field("case"), .op = field("op"), .tier = std::stoi(field("tier"))};
  if (field("const_inputs") != "-") row.baked = split(field("const_inputs"), ',');
  row.shape_only = field("check") == "shape";
  if (field("rtol") != "-" && !field("rtol").empty()) row.relative = std::stod(field("rtol"));
  if (field("atol") != "-" && !field("atol").empty()) row.absolute = std::stod(field("atol"));
  return row;
}

template <class Field>
Case model_case(const Field& field) {
  Case row{.name = field("kind") + "/" + field("model"), .op = field("ops"), .tier = 1};
  constexpr std::string_view kTolerance = "rtol ";
  if (const size_t at = field("note").find(kTolerance); at != std::string::npos)
    row.relative = std::stod(field("note").substr(at + kTolerance.size()));
  return row;
}

}  // namespace

std::vector<Case> read_cases(const std::string& path, std::string& error) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    error = path + ": cannot be read";
    return {};
  }
  std::map<std::string, size_t> columns;
  for (const std::string& title : split(line, '\t')) columns.emplace(title, columns.size());
  std::vector<Case> cases;
  while (std::getline(file, line)) {
    std::vector<std::string> fields = split(line, '\t');
    fields.resize(columns.size());
    const auto field = [&](const char* title) -> const std::string& { return fields[columns.at(title)]; };
    cases.push_back(columns.contains("case") ? node_case(field) : model_case(field));
  }
  return cases;
}

std::optional<std::vector<std::optional<tools::Array>>> read_tensors(const std::string& folder,
                                                                     const std::string& stem,
                                                                     std::string& error) {
  std::vector<std::optional<tools::Array>> tensors;
  std::error_code ignored;
  int last = -1;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem + "_") && name.ends_with(".pb"))
      last = std::max(last, std::stoi(name.substr(stem.size() + 1)));
  }
  for (int i = 0; i <= last; ++i) {
    const std::string path = text(folder, "/", stem, "_", i, ".pb");
    tensors.emplace_back();
    if (!std::filesystem::exists(path, ignored)) continue;
    auto array = tools::read_array(path);
    if (!array) error = array.status().message();
    if (!array) return std::nullopt;
    tensors.back() = std::move(*array);
  }
  return tensors;
}

std::string difference(const tools::Array& got, const tools::Array& want, const Case& rules) {
  if (got.type != want.type || got.dims != want.dims)
    return text("expected ", shape_text(want), ", found ", shape_text(got));
  if (rules.shape_only) return {};
  const auto dtype = want.type;
  const auto count = static_cast<int64_t>(want.bytes.size() / size_of(want.type));
  for (int64_t i = 0; i < count; ++i) {
    if (!is_float(dtype)) {
      const int64_t a = load_integer(got.bytes.data(), dtype, i);
      const int64_t b = load_integer(want.bytes.data(), dtype, i);
      if (a != b) return text("element ", i, " of ", count, ": expected ", b, ", found ", a);
      continue;
    }
    const double a = load_element(got.bytes.data(), dtype, i);
    const double b = load_element(want.bytes.data(), dtype, i);
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                      std::abs(a - b) <= rules.absolute + rules.relative * std::abs(b);
    if (!same) return text("element ", i, " of ", count, ": expected ", b, ", found ", a);
  }
  return {};
}

std::map<std::string, std::string> read_skips(const std::string& path, std::string& error) {
  std::map<std::string, std::string> skips;
  std::ifstream file(path);
  if (!file) error = path + ": cannot be read";
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t tab = line.find('\t');
    if (tab == std::string::npos || tab + 1 >= line.size())
      error = path + ": a skip without a reason: " + line;
    skips[line.substr(0, tab)] = tab == std::string::npos ? "" : line.substr(tab + 1);
  }
  return skips;
}

}  // namespace librt::test
