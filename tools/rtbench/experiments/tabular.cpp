// A table with 20 columns: a network as small as such data needs, trained and asked.
#include "tools/rtbench/experiments/cpu_against_gpu.h"
#include "tools/rtbench/experiments/rounds.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/samples.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kSamples = 10000, kFeatures = 20, kEpochs = 20, kValidation = 1000, kBatch = 64;
constexpr int64_t kInferBatches[] = {1, 100, 10000};

void train(Workplace& workplace, const std::string& model, double seconds) {
  ExperimentResult& result = workplace.result();
  const std::string training = workplace.file("training.csv"), validation = workplace.file("validation.csv");
  const uint64_t seed = workplace.options().seed;
  Status written = write_table(training, {0, kSamples}, kFeatures, seed);
  if (written.ok()) written = write_table(validation, {kSamples, kValidation}, kFeatures, seed);
  if (!written.ok()) return workplace.omit("training", written.message());
  Table table{"Training: 10,000 rows, batch 64, 20 epochs",
              {{"device", ""}, {"20 epochs", "s"}, {"samples/s", "1/s"}, {"loss", ""}, {"accuracy", "%"}},
              {}};
  CpuAgainstGpu fastest;
  size_t left = workplace.devices().size();
  for (const WorkDevice& device : workplace.devices()) {
    const auto run = workplace.try_train(
        device.id + ", training",
        {.model = model,
         .data = {"--data", training, "--validate", validation, "--label-column", "label", "--standardize"},
         .samples = kSamples,
         .batch = kBatch,
         .epochs = kEpochs,
         .options = {"--lr", "0.003"}},
        device, seconds / static_cast<double>(left--));
    if (!run) continue;
    const Cell total = run->total_seconds();
    fastest.add(device, total);
    table.rows.push_back({Cell::of(device.id), total, run->samples_per_second(),
                          Cell::maybe(run->last("training loss")), Cell::maybe(run->last("accuracy"), 100)});
  }
  if (fastest.has_both())
    result.findings.push_back(fastest.speedup() > 1
                                  ? words::format("Training is %.2f times as fast on %s as on the CPU.",
                                                  fastest.speedup(), fastest.gpu()->device->id.c_str())
                                  : "Training is fastest on the CPU: steps this small are mostly launches.");
  result.tables.push_back(std::move(table));
}

void ask(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  std::string error;
  const auto model = open_model("zoo:tabular", Mode::Infer, error);
  if (!model) return workplace.omit("inference", error);
  std::vector<Racer> racers;
  for (const WorkDevice& device : workplace.devices())
    racers.push_back({.device = &device, .model = *model, .options = workplace.measure_options()});
  std::vector<Racer*> all;
  for (Racer& racer : racers) all.push_back(&racer);
  Table table{"Inference", {{"device", ""}, {"rows", ""}, {"time", "ms"}, {"rows/s", "1/s"}}, {}};
  size_t left = std::size(kInferBatches);
  for (const int64_t batch : kInferBatches) {
    const std::string what = std::to_string(batch) + " rows";
    if (workplace.is_over()) {
      workplace.omit_rest("inference, " + what);
      continue;
    }
    workplace.progress().step(what);
    race(workplace, all, batch, std::min(workplace.share(left--), 1.5 * static_cast<double>(all.size())));
    const Racer *cpu = nullptr, *gpu = nullptr;
    for (const Racer& racer : racers) {
      if (racer.timing.runs == 0) continue;
      table.rows.push_back({Cell::of(racer.device->id), Cell::of(static_cast<double>(batch)),
                            time_cell(racer.timing), rate_cell(racer.timing, static_cast<double>(batch))});
      const Racer*& best = racer.device->is_gpu() ? gpu : cpu;
      if (best == nullptr || racer.timing.median_ms < best->timing.median_ms) best = &racer;
    }
    if (cpu != nullptr && gpu != nullptr) result.findings.push_back(faster_text(*cpu, *gpu, what));
  }
  for (const Racer& racer : racers)
    if (!racer.error.empty()) workplace.omit("inference on " + racer.device->id, racer.error);
  result.tables.push_back(std::move(table));
}

}  // namespace

void run_tabular(Workplace& workplace) {
  const std::string file = workplace.file("tabular.rt");
  std::string problem;
  workplace.result().method = {
      "zoo:tabular, a perceptron 20-64-32-3. Generated tables: 20 columns of different scales, three classes "
      "that are not linear; 1,000 other rows validate."};
  workplace.progress().begin("tabular", workplace.devices().size() + std::size(kInferBatches));
  if (workplace.compile("zoo:tabular", {"--train", "--optimizer", "adam"}, file, problem))
    train(workplace, file, workplace.budget().left() * 0.7);
  else
    workplace.omit("training", problem);
  ask(workplace);
}

}  // namespace librt::bench
