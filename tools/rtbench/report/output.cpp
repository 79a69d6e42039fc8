#include "tools/rtbench/report/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>

#include "tools/cli/exit_code.h"
#include "tools/data/file.h"
#include "tools/rtbench/report/html.h"
#include "tools/rtbench/report/markdown.h"
#include "tools/rtbench/report/store.h"
#include "tools/rtbench/report/study_json.h"

namespace librt::bench {
namespace {

constexpr const char* kStdout = "-";

struct File {
  const char* option;
  const std::string& path;
};

Status write(const std::string& path, const std::string& text) {
  if (path == kStdout) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
  RT_TRY(tools::write_file(path, std::as_bytes(std::span(text))));
  std::fprintf(stderr, "rtbench: wrote %s\n", path.c_str());
  return {};
}

// A file is written beside its place first, and then renamed.
std::string problem_of_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? std::filesystem::path(".") : folder;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return "there is no folder " + folder.string();
  if (access(path.c_str(), W_OK | X_OK) == 0) return {};
  return "the folder " + path.string() + " cannot be written: " + std::strerror(errno);
}

std::string problem_of_file(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::directory) return "expected a file, found the folder " + path;
  // A device or a pipe is written where it is, all others beside it first.
  if (kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular &&
      kind != std::filesystem::file_type::none)
    return {};
  return problem_of_folder(std::filesystem::path(path).parent_path());
}

// A folder that studies are kept in is made, with those above it.
std::string problem_of_store(const std::string& path) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::absolute(path, error).lexically_normal();
  if (at.filename().empty()) at = at.parent_path();
  while (at.has_relative_path() && !std::filesystem::exists(at, error)) at = at.parent_path();
  if (std::filesystem::is_directory(at, error)) return problem_of_folder(at);
  return "expected a folder, found the file " + at.string();
}

}  // namespace

bool uses_stdout(const ReportOptions& options) {
  return options.json || options.html == kStdout || options.markdown == kStdout || options.csv == kStdout;
}

std::string problem_of(const ReportOptions& options) {
  const File files[] = {{"--html", options.html}, {"--markdown", options.markdown}, {"--csv", options.csv}};
  int on_stdout = options.json ? 1 : 0;
  for (const File& file : files) {
    on_stdout += file.path == kStdout ? 1 : 0;
    if (file.path.empty() || file.path == kStdout) continue;
    if (const std::string problem = problem_of_file(file.path); !problem.empty())
      return std::string(file.option) + ": " + problem;
  }
  if (on_stdout > 1) return "--html -, --markdown -, --csv - and --json all go to stdout; choose one";
  if (!options.html.empty())
    if (const auto html = study_html(Study{}); !html.ok()) return html.status().message();
  if (!options.save.empty())
    if (const std::string problem = problem_of_store(options.save); !problem.empty())
      return "--save: " + problem;
  if (options.no_save && !options.save.empty()) return "--save and --no-save exclude each other";
  return {};
}

int write_reports(const Study& study, const ReportOptions& options) {
  int code = tools::kFine;
  const auto note = [&code](const Status& status) {
    if (!status.ok()) code = std::max(code, tools::report_failure("rtbench", status));
  };
  if (options.json) note(write(kStdout, study_json(study)));
  if (!options.markdown.empty()) note(write(options.markdown, study_markdown(study)));
  if (!options.csv.empty()) note(write(options.csv, study_csv(study)));
  if (!options.html.empty()) {
    const auto html = study_html(study);
    note(html.ok() ? write(options.html, *html) : html.status());
  }
  if (options.no_save) return code;
  const std::string folder = study_folder(options.save);
  if (folder.empty()) {
    std::fprintf(stderr,
                 "rtbench: the study is not kept: neither XDG_DATA_HOME nor HOME is an absolute path\n");
    return code;
  }
  const auto saved = save_study(folder, study);
  if (saved.ok())
    std::fprintf(stderr, "rtbench: kept as %s\n", saved->c_str());
  else if (options.save.empty())
    std::fprintf(stderr, "rtbench: the study is not kept: %s\n", saved.status().message().c_str());
  else
    note(saved.status());
  return code;
}

}  // namespace librt::bench
