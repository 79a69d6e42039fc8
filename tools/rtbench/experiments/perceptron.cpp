// The perceptron that articles compare CPU and GPU with: 1000-512-256-2, 10,000 samples, Adam, 10 epochs.
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/samples.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kSamples = 10000, kFeatures = 1000, kEpochs = 10, kValidation = 1000;
/// The usual one, and one that has work for a GPU.
constexpr int64_t kBatches[] = {32, 512};

struct Trained {
  const WorkDevice* device;
  int64_t batch;
  TrainingRun run;
};

const Trained* best_of(const std::vector<Trained>& all, bool gpu, int64_t batch) {
  const Trained* best = nullptr;
  for (const Trained& one : all) {
    if (one.device->is_gpu() != gpu || one.batch != batch || !one.run.total_seconds().number) continue;
    if (best == nullptr || *one.run.total_seconds().number < *best->run.total_seconds().number) best = &one;
  }
  return best;
}

void conclude(Workplace& workplace, const std::vector<Trained>& all) {
  ExperimentResult& result = workplace.result();
  for (const int64_t batch : kBatches) {
    const Trained *cpu = best_of(all, false, batch), *gpu = best_of(all, true, batch);
    if (cpu == nullptr || gpu == nullptr) continue;
    const double ratio = *cpu->run.total_seconds().number / *gpu->run.total_seconds().number;
    result.findings.push_back(
        words::format("At batch %ld %s trains %.2f times as fast as %s.", static_cast<long>(batch),
                      (ratio >= 1 ? gpu : cpu)->device->id.c_str(), ratio >= 1 ? ratio : 1 / ratio,
                      (ratio >= 1 ? cpu : gpu)->device->id.c_str()));
  }
  for (const WorkDevice& device : workplace.devices()) {
    std::optional<double> small, large;
    for (const Trained& one : all)
      if (one.device == &device) (one.batch == kBatches[0] ? small : large) = one.run.total_seconds().number;
    if (small && large)
      result.findings.push_back(words::format("On %s batch %ld takes %.2f of the time of batch %ld.",
                                              device.id.c_str(), static_cast<long>(kBatches[1]),
                                              *large / *small, static_cast<long>(kBatches[0])));
  }
}

}  // namespace

void run_perceptron(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  const std::string model = workplace.file("mlp.rt"), training = workplace.file("training.npz"),
                    validation = workplace.file("validation.npz");
  std::string problem;
  const uint64_t seed = workplace.options().seed;
  Status written = write_planes(training, {0, kSamples}, kFeatures, seed);
  if (written.ok()) written = write_planes(validation, {kSamples, kValidation}, kFeatures, seed);
  if (!written.ok()) return workplace.omit("the data", written.message());
  if (!workplace.compile("zoo:mlp", {"--train", "--optimizer", "adam"}, model, problem))
    return workplace.omit("all", problem);
  result.method = {
      "Generated samples: 1000 numbers in [-1,1), labelled by the side of a plane; 1,000 others validate.",
      "Seconds are those of the epochs, without start and validation; the first one includes choosing "
      "kernels."};
  const size_t rows = std::size(kBatches) * workplace.devices().size();
  workplace.progress().begin("perceptron", rows);
  std::vector<Trained> all;
  Table table{"",
              {{"device", ""},
               {"batch", ""},
               {"10 epochs", "s"},
               {"first epoch", "s"},
               {"samples/s", "1/s"},
               {"loss", ""},
               {"accuracy", "%"}},
              {}};
  for (const int64_t batch : kBatches)
    for (const WorkDevice& device : workplace.devices()) {
      const std::string what = device.id + ", batch " + std::to_string(batch);
      if (workplace.is_over()) {
        workplace.omit_rest(what);
        continue;
      }
      workplace.progress().step(what);
      Trained& one = all.emplace_back(Trained{&device, batch, {}});
      one.run = workplace.train({.model = model,
                                 .data = {"--data", training, "--validate", validation},
                                 .samples = kSamples,
                                 .batch = batch,
                                 .epochs = kEpochs,
                                 .options = {"--lr", "0.001"}},
                                device, workplace.share(rows - all.size() + 1));
      if (!one.run.error.empty()) {
        workplace.omit(what, one.run.error);
        continue;
      }
      table.rows.push_back({Cell::of(device.id), Cell::of(static_cast<double>(batch)),
                            one.run.total_seconds(),
                            one.run.epochs.empty() ? Cell::nothing() : Cell::of(one.run.epochs[0].seconds),
                            one.run.samples_per_second(), Cell::maybe(one.run.last("training loss")),
                            Cell::maybe(one.run.last("accuracy"), 100)});
    }
  result.tables.push_back(std::move(table));
  conclude(workplace, all);
}

}  // namespace librt::bench
