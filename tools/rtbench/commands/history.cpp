// rtbench history: the studies that are kept.
#include <cstdio>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/rtbench/commands/commands.h"
#include "tools/rtbench/report/labels.h"
#include "tools/rtbench/report/store.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

std::string devices_of(const Study& study) {
  std::string text;
  for (const StudyDevice& device : study.devices) text += (text.empty() ? "" : ", ") + device_label(device);
  return text.empty() ? "-" : text;
}

void print(const StoredStudy& stored) {
  const Study& study = stored.study;
  std::printf("%s  %s  %s  %s\n", printable(study.started).c_str(), printable(study.model.name).c_str(),
              printable(study.model.hash.substr(0, 12)).c_str(), printable(devices_of(study)).c_str());
  for (const std::string& warning : study.machine.warnings)
    std::printf("    (%s)\n", printable(warning).c_str());
  for (const Sentence& sentence : study.verdict)
    if (sentence.about != Sentence::About::Caution) std::printf("    %s\n", printable(sentence.text).c_str());
  std::printf("    %s\n", printable(stored.path).c_str());
}

}  // namespace

int history_command(int argc, char** argv) {
  tools::CommandLine app(
      "Lists the stored studies, oldest first: when, which model (name and hash of the compiled file), which "
      "devices, the verdict, and the file, which `rtbench compare` reads.");
  std::string folder, model;
  app.add_option("--save", folder, "The folder, if `rtbench study --save DIR` was given one");
  app.add_option("--model", model, "Only studies of the model with this name, or this beginning of its hash");
  app.set_up_help({.program = "rtbench history",
                   .examples = {"rtbench history", "rtbench history --model resnet18"},
                   .notes = {kStoreHelp}});
  if (const auto code = app.parse(argc, argv)) return *code;
  const std::string path = study_folder(folder);
  if (path.empty()) {
    std::fprintf(stderr,
                 "rtbench: history: neither XDG_DATA_HOME nor HOME is an absolute path; give --save DIR\n");
    return tools::kBadInput;
  }
  const auto stored = stored_studies(path);
  if (!stored.ok()) return tools::report_failure("rtbench", stored.status());
  size_t shown = 0;
  for (const StoredStudy& entry : stored->studies) {
    if (!model.empty() && entry.study.model.name != model && !entry.study.model.hash.starts_with(model))
      continue;
    print(entry);
    ++shown;
  }
  for (const std::string& problem : stored->unusable)
    std::fprintf(stderr, "rtbench: left out: %s\n", printable(problem).c_str());
  if (shown == 0)
    std::printf("no studies%s%s in %s\n", model.empty() ? "" : " of ", printable(model).c_str(),
                printable(path).c_str());
  return tools::kFine;
}

}  // namespace librt::bench
