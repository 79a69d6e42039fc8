// The perceptron that articles compare CPU and GPU with: 1000-512-256-2, 10,000 samples, Adam, 10 epochs.
#include "tools/rtbench/experiments/cpu_against_gpu.h"
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
  Cell seconds;  ///< of all epochs
};

void conclude(Workplace& workplace, const std::vector<Trained>& all) {
  ExperimentResult& result = workplace.result();
  for (const int64_t batch : kBatches) {
    CpuAgainstGpu fastest;
    for (const Trained& one : all)
      if (one.batch == batch) fastest.add(*one.device, one.seconds);
    if (fastest.has_both())
      result.findings.push_back("At batch " + std::to_string(batch) + " " + fastest.text());
  }
  for (const WorkDevice& device : workplace.devices()) {
    std::optional<double> small, large;
    for (const Trained& one : all)
      if (one.device == &device) (one.batch == kBatches[0] ? small : large) = one.seconds.number;
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
  size_t left = std::size(kBatches) * workplace.devices().size();
  workplace.progress().begin("perceptron", left);
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
      const auto run = workplace.try_train(device.id + ", batch " + std::to_string(batch),
                                           {.model = model,
                                            .data = {"--data", training, "--validate", validation},
                                            .samples = kSamples,
                                            .batch = batch,
                                            .epochs = kEpochs,
                                            .options = {"--lr", "0.001"}},
                                           device, workplace.share(left--));
      if (!run) continue;
      all.push_back({&device, batch, run->total_seconds()});
      table.rows.push_back({Cell::of(device.id), Cell::of(static_cast<double>(batch)), all.back().seconds,
                            run->epochs.empty() ? Cell::nothing() : Cell::of(run->epochs[0].seconds),
                            run->samples_per_second(), Cell::maybe(run->last("training loss")),
                            Cell::maybe(run->last("accuracy"), 100)});
    }
  result.tables.push_back(std::move(table));
  conclude(workplace, all);
}

}  // namespace librt::bench
