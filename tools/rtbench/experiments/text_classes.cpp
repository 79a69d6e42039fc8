// Text classification, which an article trains in 198.2 s on a CPU and in 14.4 s on a GPU.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/core/environment.h"
#include "tools/rtbench/experiments/cpu_against_gpu.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/samples.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kGenerated = 5000, kEpochs = 3, kBatch = 32;
constexpr double kHeldBack = 0.2;
constexpr double kArticleCpu = 198.2, kArticleGpu = 14.4;

struct Texts {
  std::string path, what;
  int64_t count = 0;
};

int64_t lines_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  int64_t lines = 0;
  for (std::string line; std::getline(file, line);) lines += line.empty() ? 0 : 1;
  return lines;
}

// --data, else the SMS Spam Collection in the folder of test data, else generated messages.
bool find_texts(Workplace& workplace, Texts& texts) {
  texts.path = workplace.options().data;
  texts.what = "the messages of --data";
  if (const char* shared = environment("RT_SHARED_DATA"); texts.path.empty() && shared != nullptr) {
    const std::string path = std::string(shared) + "/data/datasets/sms_spam/sms.tsv";
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) texts.path = path;
    texts.what = "the SMS Spam Collection";
  }
  if (texts.path.empty()) {
    texts.path = workplace.file("messages.tsv");
    texts.what = "generated messages (--data FILE.tsv has others: label, tab, text)";
    if (const Status written = write_messages(texts.path, {0, kGenerated}, workplace.options().seed);
        !written.ok()) {
      workplace.omit("all", written.message());
      return false;
    }
  }
  texts.count = lines_of(texts.path);
  return true;
}

void conclude(Workplace& workplace, const CpuAgainstGpu& fastest) {
  ExperimentResult& result = workplace.result();
  const auto seconds = [](const CpuAgainstGpu::Best& best) {
    return words::format("%s%s s (%s)", best.seconds.estimated ? "~" : "",
                         words::number_text(*best.seconds.number).c_str(), best.device->id.c_str());
  };
  std::string here = fastest.cpu() ? seconds(*fastest.cpu()) : std::string("no CPU");
  here += " against " + (fastest.gpu() ? seconds(*fastest.gpu()) : std::string("no GPU here"));
  if (fastest.has_both()) {
    here += words::format(": %.2f times", fastest.speedup());
    result.findings.push_back(fastest.text());
  }
  result.comparisons.push_back({"training of a text classifier, CPU against GPU",
                                words::format("%.1f s against %.1f s: %.1f times", kArticleCpu, kArticleGpu,
                                              kArticleCpu / kArticleGpu),
                                here});
}

}  // namespace

void run_text(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  Texts texts;
  if (!find_texts(workplace, texts)) return;
  const std::string model = workplace.file("text.rt");
  std::string problem;
  if (!workplace.compile(
          "zoo:text_classifier",
          {"--train", "--optimizer", "adamw", "--weight-decay", "0.01", "--dim", "sequence=160"}, model,
          problem))
    return workplace.omit("all", problem);
  result.method = {
      "zoo:text_classifier, convolutions over 160 bytes, AdamW, batch 32, 3 epochs of " + texts.what +
      words::format(", %ld of them, of which a fifth validates. Neither network nor data are the article's.",
                    static_cast<long>(texts.count))};
  workplace.progress().begin("text", workplace.devices().size());
  Table table{
      "", {{"device", ""}, {"3 epochs", "s"}, {"samples/s", "1/s"}, {"loss", ""}, {"accuracy", "%"}}, {}};
  CpuAgainstGpu fastest;
  size_t left = workplace.devices().size();
  for (const WorkDevice& device : workplace.devices()) {
    const auto training = static_cast<int64_t>(static_cast<double>(texts.count) * (1 - kHeldBack));
    const auto run = workplace.try_train(
        device.id,
        {.model = model,
         .data = {"--data", texts.path, "--no-header", "--label-column", "0", "--text-column", "1",
                  "--validate-fraction", words::format("%g", kHeldBack)},
         .samples = training,
         .batch = kBatch,
         .epochs = kEpochs,
         .options = {"--lr", "0.002"}},
        device, workplace.share(left--));
    if (!run) continue;
    fastest.add(device, run->total_seconds());
    table.rows.push_back({Cell::of(device.id), run->total_seconds(), run->samples_per_second(),
                          Cell::maybe(run->last("training loss")), Cell::maybe(run->last("accuracy"), 100)});
  }
  result.tables.push_back(std::move(table));
  conclude(workplace, fastest);
}

}  // namespace librt::bench
