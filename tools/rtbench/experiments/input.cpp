// How much of the training's time is spent waiting for data, by what prepares them.
#include <algorithm>

#include "tools/rtbench/experiments/jpeg_folder.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kPictures = 960, kBatch = 32, kEpochs = 4;
/// Pictures for this many batches are written even if that takes more than its share of the budget.
constexpr int64_t kLeastBatches = 3;
constexpr double kPicturesShare = 0.2;
constexpr int kWidth = 320, kHeight = 240, kClasses = 10;

struct Pipeline {
  int workers = 0, prefetch = 1;
  bool cache = false;
};

std::vector<Pipeline> pipelines(int threads) {
  std::vector<Pipeline> all = {{0, 1, false}, {1, 1, false}, {1, 4, false}, {2, 4, false}};
  if (threads > 2) all.push_back({threads, std::max(4, threads), false});
  all.push_back({0, 1, true});
  all.push_back({2, 4, true});
  return all;
}

struct Measured {
  Pipeline pipeline;
  double waiting = 0;  ///< share of the epochs after the first
  double rate = 0;
};

struct Waiting {
  double share = 0, rate = 0;
};

// Of the epochs after the first.
Waiting waiting_of(const TrainingRun& run) {
  double seconds = 0, waited = 0;
  for (size_t i = 1; i < run.epochs.size(); ++i) {
    seconds += run.epochs[i].seconds;
    waited += run.epochs[i].waited_seconds;
  }
  return {waited / seconds,
          static_cast<double>(run.samples) * static_cast<double>(run.epochs.size() - 1) / seconds};
}

std::string pipeline_text(const Pipeline& pipeline) {
  return std::to_string(pipeline.workers) + " workers" + (pipeline.cache ? " and the cache" : "");
}

void conclude(Workplace& workplace, const WorkDevice& device, const std::vector<Measured>& all) {
  if (all.size() < 2) return;
  const Measured& first = all.front();
  const auto best =
      std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.rate < b.rate; });
  workplace.result().findings.push_back(words::format(
      "On %s training without workers waits %.0f %% of the time; with %s %.0f %%, and is %.2f times as fast.",
      device.id.c_str(), 100 * first.waiting, pipeline_text(best->pipeline).c_str(), 100 * best->waiting,
      best->rate / first.rate));
}

}  // namespace

void run_input(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  const std::string model = workplace.file("lenet5.rt"), folder = workplace.file("pictures");
  workplace.progress().begin("input", 0);
  workplace.progress().step("pictures");
  const double until = kPicturesShare * workplace.budget().left();
  const double begun = workplace.budget().spent();
  const auto written = write_jpeg_folder(
      folder, kPictures, kClasses, kWidth, kHeight, workplace.options().seed, [&](int64_t count) {
        const bool has_enough = count >= kLeastBatches * kBatch;
        return !workplace.is_over() && (!has_enough || workplace.budget().spent() - begun < until);
      });
  if (!written.ok()) return workplace.omit("all", written.status().message());
  if (workplace.is_over()) return workplace.omit_rest("all");
  const int64_t pictures = *written - *written % kBatch;
  std::string problem;
  if (!workplace.compile("zoo:lenet5", {"--train", "--optimizer", "adam"}, model, problem))
    return workplace.omit("all", problem);
  result.method = {
      words::format("LeNet-5, which is quick, on %ld JPEG pictures of 320x240", static_cast<long>(*written)) +
      (*written < kPictures
           ? words::format(" (of %ld: the budget allowed no more)", static_cast<long>(kPictures))
           : std::string()) +
      ", decoded and resized to 28x28; batch 32. The "
      "first epoch is cold; the other columns are the 3 epochs after it, in which a cache holds all "
      "pictures. On the CPU workers and training share the cores."};
  Table table{"",
              {{"device", ""},
               {"workers", ""},
               {"prefetch", ""},
               {"cache", ""},
               {"first epoch", "s"},
               {"samples/s", "1/s"},
               {"waiting", "%"}},
              {}};
  const std::vector<Pipeline> wanted = pipelines(workplace.threads());
  size_t left = wanted.size() * workplace.devices().size();
  for (const WorkDevice& device : workplace.devices()) {
    std::vector<Measured> all;
    for (const Pipeline& pipeline : wanted) {
      const std::string what =
          device.id + ", " + pipeline_text(pipeline) + ", prefetch " + std::to_string(pipeline.prefetch);
      const size_t parts = left--;
      if (workplace.is_over()) {
        workplace.omit_rest(what);
        continue;
      }
      workplace.progress().step(what);
      const TrainingRun run = workplace.train(
          {.model = model,
           .data = {"--data", folder, "--scale", "0.00392157", "--workers", std::to_string(pipeline.workers),
                    "--prefetch", std::to_string(pipeline.prefetch), "--cache",
                    pipeline.cache ? "512MiB" : "0"},
           .samples = pictures,
           .batch = kBatch,
           .epochs = kEpochs,
           .options = {"--lr", "0.001", "--drop-last"}},
          device, workplace.share(parts));
      // Without a cache the first epoch is like the others.
      const bool is_part = run.epochs.size() < 2 && !pipeline.cache && !run.sample_seconds.empty();
      if (!run.error.empty() || (run.epochs.size() < 2 && !is_part)) {
        workplace.omit(what,
                       run.error.empty() ? "the budget: it did not get beyond its first epoch" : run.error);
        continue;
      }
      const Waiting waiting =
          is_part ? Waiting{run.waited_share, *run.samples_per_second().number} : waiting_of(run);
      all.push_back({pipeline, waiting.share, waiting.rate});
      Cell rate = Cell::of(waiting.rate), share = Cell::of(100 * waiting.share);
      rate.estimated = share.estimated = is_part;
      table.rows.push_back(
          {Cell::of(device.id), Cell::of(static_cast<double>(pipeline.workers)),
           Cell::of(static_cast<double>(pipeline.prefetch)), Cell::of(pipeline.cache ? "512 MiB" : "none"),
           run.epochs.empty() ? Cell::nothing() : Cell::of(run.epochs[0].seconds), rate, share});
    }
    conclude(workplace, device, all);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace librt::bench
