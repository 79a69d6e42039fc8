#include "tools/rtbench/report/output.h"

#include <algorithm>
#include <cstdio>
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
    const std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
    std::error_code error;
    if (!folder.empty() && !std::filesystem::is_directory(folder, error))
      return std::string(file.option) + ": there is no folder " + folder.string();
    if (std::filesystem::is_directory(file.path, error))
      return std::string(file.option) + ": expected a file, found the folder " + file.path;
  }
  if (on_stdout > 1) return "--html -, --markdown -, --csv - and --json all go to stdout; choose one";
  if (!options.html.empty())
    if (const auto html = study_html(Study{}); !html.ok()) return html.status().message();
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
