#include "tools/rtbench/report/store.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/cache_file.h"
#include "runtime/core/environment.h"
#include "tools/rtbench/report/study_json.h"

namespace librt::bench {
namespace {

namespace fs = std::filesystem;

/// Characters that are safe in a file's name; others, and a dot at the beginning, become '_'.
std::string file_name(const std::string& text) {
  constexpr size_t kMost = 60;
  std::string name = text.substr(0, kMost);
  for (char& byte : name) {
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
    if (!plain) byte = '_';
  }
  if (name.empty() || name[0] == '.') name = "_" + name;
  return name;
}

std::string stem_of(const Study& study) {
  std::string time;
  for (const char byte : study.started)
    if (byte != '-' && byte != ':') time += byte;
  return file_name(time) + "-" + file_name(study.model.name) + "-" + file_name(study.model.hash.substr(0, 8));
}

}  // namespace

std::string study_folder(const std::string& asked) {
  if (!asked.empty()) {
    std::error_code error;
    const fs::path path = fs::absolute(asked, error);
    return error ? std::string() : path.lexically_normal().string();
  }
  if (const char* xdg = environment("XDG_DATA_HOME"); xdg != nullptr && *xdg == '/')
    return std::string(xdg) + "/librt/studies";
  if (const char* home = environment("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.local/share/librt/studies";
  return {};
}

Result<std::string> save_study(const std::string& folder, const Study& study) {
  const std::string stem = folder + (folder.ends_with('/') ? "" : "/") + stem_of(study);
  // Two studies may begin in the same second.
  std::string path = stem + ".json";
  std::error_code error;
  for (int copy = 2; fs::exists(fs::symlink_status(path, error)) && copy < 1000; ++copy)
    path = stem + "-" + std::to_string(copy) + ".json";
  RT_TRY(write_cache_file(path, study_json(study)));
  return path;
}

Result<StoredStudies> stored_studies(const std::string& folder) {
  StoredStudies stored;
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (const std::string name = at->path().filename().string();
        name.ends_with(".json") && !name.starts_with('.'))
      paths.push_back(at->path().string());
  if (error && error != std::errc::no_such_file_or_directory)
    return Status::make(Code::Io, folder, ": cannot be listed: ", error.message());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const auto text = read_cache_file(path);
    if (!text.ok()) {
      stored.unusable.push_back(text.status().message());
      continue;
    }
    auto study = parse_study(*text);
    if (study.ok())
      stored.studies.push_back({path, std::move(*study)});
    else
      stored.unusable.push_back(path + ": " + study.status().message());
  }
  std::stable_sort(
      stored.studies.begin(), stored.studies.end(),
      [](const StoredStudy& a, const StoredStudy& b) { return a.study.started < b.study.started; });
  return stored;
}

}  // namespace librt::bench
