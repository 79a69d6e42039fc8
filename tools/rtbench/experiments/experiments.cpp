#include <algorithm>
#include <array>

#include "tools/compiler/zoo/zoo.h"
#include "tools/data/nearest_name.h"
#include "tools/rtbench/experiments/experiment.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr const char* kPrograms = "rtconvert, rttrain";

const std::array kExperiments = {
    Experiment{"perceptron",
               "perceptron 1000-512-256-2, 10,000 samples, Adam, 10 epochs: seconds by device",
               kPrograms,
               90,
               {},
               run_perceptron},
    Experiment{
        "text", "training of a text classifier on the CPU against GPUs", kPrograms, 90, {"data"}, run_text},
    Experiment{"resnet50",
               "ResNet-50: images a second, fp32 and mixed precision, and an epoch of ImageNet's size",
               "",
               120,
               {"precision", "mode", "largest-batch"},
               run_resnet50},
    Experiment{"mixed-precision",
               "training in fp32, fp16 and bf16: time, memory, accuracy",
               kPrograms,
               90,
               {"precision"},
               run_mixed_precision},
    Experiment{"batch",
               "the batch from which throughput no longer grows, and how much of the device is used",
               "",
               90,
               {"precision", "mode", "largest-batch"},
               run_batch},
    Experiment{
        "input", "time spent waiting for data, by workers, prefetch and cache", kPrograms, 60, {}, run_input},
    Experiment{"memory",
               "memory against time: micro-batches, recomputation, optimizer states",
               kPrograms,
               120,
               {},
               run_memory},
    Experiment{"transfer",
               "transfers during compute or in turn; recorded work replayed or launched anew",
               "a GPU",
               60,
               {},
               run_transfer},
    Experiment{"scaling",
               "1, 2 and 4 processes: efficiency, share of communication",
               "rtconvert, rttrain, mpirun",
               90,
               {},
               run_scaling},
    Experiment{"matmul",
               "matmuls from 32 to 4096: GFLOP/s, and from which size a GPU wins",
               "",
               60,
               {"precision"},
               run_matmul},
    Experiment{"tabular",
               "a perceptron for tables: training and latency, where a GPU adds little",
               kPrograms,
               60,
               {},
               run_tabular},
};

}  // namespace

std::span<const Experiment> experiments() {
  return kExperiments;
}

const Experiment* find_experiment(std::string_view name) {
  const auto found = std::find_if(kExperiments.begin(), kExperiments.end(),
                                  [&](const Experiment& e) { return e.name == name; });
  return found == kExperiments.end() ? nullptr : &*found;
}

std::string experiments_text() {
  std::vector<std::vector<std::string>> rows = {{"experiment", "shows", "needs", "budget"}};
  for (const Experiment& experiment : kExperiments)
    rows.push_back({std::string(experiment.name), std::string(experiment.summary),
                    experiment.needs.empty() ? "-" : std::string(experiment.needs),
                    words::format("%.0f s", experiment.seconds)});
  return words::columns(rows, 3) +
         "\nEach measures on the CPU and on every GPU, or on those of --backend, and ends when its work is "
         "done, or its budget is spent; --budget sets another.\n";
}

std::span<const std::string_view> common_options() {
  static constexpr std::string_view kCommon[] = {"backend",   "budget", "threads", "seed",
                                                 "no-tuning", "json",   "markdown"};
  return kCommon;
}

std::string nearest_question(const std::string& name) {
  tools::NearestName nearest(name);
  for (const Experiment& experiment : kExperiments) nearest.consider(experiment.name);
  for (const compiler::ZooEntry& entry : compiler::zoo()) nearest.consider("zoo:" + std::string(entry.name));
  return nearest.question();
}

rt::Result<ExperimentResult> run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                                            StopRequest& stop) {
  Workplace workplace(experiment, options, stop);
  if (rt::Status status = workplace.open(); !status) return status;
  experiment.run(workplace);
  return workplace.finish();
}

}  // namespace librt::bench
