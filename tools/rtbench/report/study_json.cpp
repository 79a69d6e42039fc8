#include "tools/rtbench/report/study_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/rtbench/report/study_fields.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// --- writing ---

template <class T>
ordered_json to_json(const T& value);

struct Writer {
  ordered_json& object;
  template <class T>
  void operator()(const char* name, const T& value) {
    object[name] = to_json(value);
  }
};

template <class T>
ordered_json list_to_json(const std::vector<T>& values) {
  ordered_json list = ordered_json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

using Version = std::pair<std::string, std::string>;

template <class T>
ordered_json to_json(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json();
  } else if constexpr (std::is_enum_v<T>) {
    return kEnumNames<T>[static_cast<size_t>(value)];
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (IsOptional<T>::value) {
    return value ? to_json(*value) : ordered_json();
  } else if constexpr (IsVector<T>::value) {
    return list_to_json(value);
  } else if constexpr (std::is_same_v<T, Version>) {
    return {{"name", value.first}, {"version", value.second}};
  } else {
    ordered_json object = ordered_json::object();
    visit_fields(Writer{object}, value);
    return object;
  }
}

// --- reading ---

/// What is wrong in the document, first problem only: others follow from it.
struct Problem {
  std::string text;
};

std::string found_text(const json& value) {
  if (value.is_object() || value.is_array()) return value.type_name();
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

[[noreturn]] void refuse(const std::string& path, const std::string& expected, const json& found) {
  throw Problem{(path.empty() ? "/" : path) + ": expected " + expected + ", found " + found_text(found)};
}

template <class T>
void read(const json& value, const std::string& path, T& out);

/// Reads the fields of one object and counts them, so that unknown ones are noticed.
struct FieldReader {
  const json& object;
  const std::string& path;
  size_t& count;
  template <class T>
  void operator()(const char* name, T& out) {
    const auto found = object.find(name);
    if (found == object.end()) throw Problem{(path.empty() ? "/" : path) + ": \"" + name + "\" is missing"};
    ++count;
    read(*found, path + "/" + name, out);
  }
};

struct NameCollector {
  std::vector<std::string>& names;
  template <class T>
  void operator()(const char* name, const T&) {
    names.emplace_back(name);
  }
};

/// extra: fields that were read before.
template <class T>
void read_object(const json& value, const std::string& path, T& out, const std::vector<std::string>& extra) {
  if (!value.is_object()) refuse(path, "an object", value);
  size_t count = extra.size();
  visit_fields(FieldReader{value, path, count}, out);
  if (count == value.size()) return;
  std::vector<std::string> names = extra;
  visit_fields(NameCollector{names}, out);
  for (const auto& item : value.items())
    if (std::find(names.begin(), names.end(), item.key()) == names.end())
      throw Problem{(path.empty() ? "/" : path) + ": unknown field \"" + printable(item.key().substr(0, 60)) +
                    "\"; version " + std::to_string(kStudySchemaVersion) + " of the schema has none"};
}

template <class T>
void read_number(const json& value, const std::string& path, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) refuse(path, "true or false", value);
    out = value.get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    if (value.is_null()) {
      out = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (!value.is_number()) refuse(path, "a number", value);
    out = value.get<double>();
    if (!std::isfinite(out)) refuse(path, "a finite number", value);
  } else if constexpr (std::is_unsigned_v<T>) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<T>::max())
      refuse(path, "an integer of at least 0", value);
    out = static_cast<T>(value.get<uint64_t>());
  } else {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() &&
         value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max())) ||
        (!value.is_number_unsigned() && value.get<int64_t>() < std::numeric_limits<T>::min()))
      refuse(path, "an integer", value);
    out = static_cast<T>(value.get<int64_t>());
  }
}

template <class T>
void read(const json& value, const std::string& path, T& out) {
  if constexpr (std::is_arithmetic_v<T>) {
    read_number(value, path, out);
  } else if constexpr (std::is_enum_v<T>) {
    std::string names;
    for (size_t i = 0; i < kEnumCount<T>; ++i) {
      if (value.is_string() && value.get_ref<const std::string&>() == kEnumNames<T>[i]) {
        out = static_cast<T>(i);
        return;
      }
      names += (i > 0 ? ", " : "") + std::string(kEnumNames<T>[i]);
    }
    refuse(path, "one of " + names, value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) refuse(path, "a text", value);
    out = value.get<std::string>();
  } else if constexpr (IsOptional<T>::value) {
    if (value.is_null()) {
      out.reset();
      return;
    }
    read(value, path, out.emplace());
  } else if constexpr (IsVector<T>::value) {
    if (!value.is_array()) refuse(path, "a list", value);
    out.resize(value.size());
    for (size_t i = 0; i < value.size(); ++i) read(value[i], path + "/" + std::to_string(i), out[i]);
  } else if constexpr (std::is_same_v<T, Version>) {
    if (!value.is_object() || value.size() != 2 || !value.contains("name") || !value.contains("version"))
      refuse(path, "an object with \"name\" and \"version\"", value);
    read(value["name"], path + "/name", out.first);
    read(value["version"], path + "/version", out.second);
  } else {
    read_object(value, path, out, {});
  }
}

void check_index(const std::string& path, size_t index, size_t count, const char* of) {
  if (index >= count)
    throw Problem{path + ": expected an index into the " + std::to_string(count) + " " + of + ", found " +
                  std::to_string(index)};
}

template <class Pair>
void check_pairs(const Study& study, const char* name, const std::vector<Pair>& pairs) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string path = std::string("/") + name + "/" + std::to_string(i);
    check_index(path + "/below", pairs[i].below, study.series.size(), "series");
    check_index(path + "/above", pairs[i].above, study.series.size(), "series");
  }
}

void check_points(const Study& study, const char* name, const std::vector<PointRef>& points) {
  for (size_t i = 0; i < points.size(); ++i) {
    const std::string path = std::string("/") + name + "/" + std::to_string(i);
    check_index(path + "/series", points[i].series, study.series.size(), "series");
    check_index(path + "/point", points[i].point, study.series[points[i].series].points.size(), "points");
  }
}

void check_indices(const Study& study) {
  for (size_t i = 0; i < study.series.size(); ++i)
    check_index("/series/" + std::to_string(i) + "/device", study.series[i].device, study.devices.size(),
                "devices");
  for (size_t i = 0; i < study.targets.size(); ++i)
    check_index("/targets/" + std::to_string(i) + "/device", study.targets[i].device, study.devices.size(),
                "devices");
  check_pairs(study, "crossovers", study.crossovers);
  check_pairs(study, "load_crossovers", study.load_crossovers);
  check_points(study, "pareto_infer", study.pareto_infer);
  check_points(study, "pareto_train", study.pareto_train);
}

void check_version(const json& document) {
  if (!document.is_object()) refuse("", "an object", document);
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema != kStudySchema)
    throw Problem{std::string("expected the result of a study (rtbench study --json), found JSON without "
                              "\"schema\": \"") +
                  kStudySchema + "\""};
  const auto version = document.find("schema_version");
  if (version == document.end()) throw Problem{"/: \"schema_version\" is missing"};
  if (*version != kStudySchemaVersion)
    refuse("/schema_version", std::to_string(kStudySchemaVersion) + ", which this rtbench reads and writes",
           *version);
}

}  // namespace

std::string study_json(const Study& study, int indent) {
  ordered_json document = {{"schema", kStudySchema}, {"schema_version", kStudySchemaVersion}};
  visit_fields(Writer{document}, study);
  return document.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Study> parse_study(std::string_view text) {
  try {
    const json document = json::parse(text);
    check_version(document);
    Study study;
    read_object(document, "", study, {"schema", "schema_version"});
    check_indices(study);
    return study;
  } catch (const json::parse_error& error) {
    return Status::make(Code::InvalidArgument,
                        "expected the result of a study in JSON; reading ended at byte ", error.byte);
  } catch (const json::out_of_range&) {
    return Status::make(Code::InvalidArgument,
                        "expected the result of a study in JSON; it has a number that is too large");
  } catch (const Problem& problem) {
    return Status::make(Code::InvalidArgument, problem.text);
  }
}

}  // namespace librt::bench
