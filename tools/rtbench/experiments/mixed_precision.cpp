// fp32 against 16-bit precisions in training: the time of a step, its memory, and what the trained net knows.
#include <map>

#include "tools/rtbench/experiments/rounds.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/samples.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kSamples = 6000, kValidation = 2000, kEpochs = 3, kBatch = 64, kClasses = 10;
/// Noise around the classes' pictures, at which LeNet-5 errs now and then.
constexpr double kNoise = 4;

struct Typed {
  std::string precision;
  std::string file;
  std::string error;
};

// fp16 gets dynamic loss scaling from rtconvert; bf16 has the range of fp32 and needs none.
std::vector<Typed> compile_all(Workplace& workplace) {
  std::vector<Typed> all;
  const auto& wanted = workplace.options().precisions;
  for (const std::string& precision :
       wanted.empty() ? std::vector<std::string>{"fp32", "fp16", "bf16"} : wanted) {
    Typed& one = all.emplace_back(Typed{precision, workplace.file("lenet5-" + precision + ".rt"), {}});
    workplace.progress().step("compiling in " + precision);
    if (precision != "fp32" && precision != "fp16" && precision != "bf16")
      one.error = "training is in fp32, fp16 or bf16";
    else if (!workplace.is_over())
      workplace.compile("zoo:lenet5", {"--train", "--optimizer", "adam", "--precision", precision}, one.file,
                        one.error);
    else
      one.error = "the budget was spent";
    if (!one.error.empty()) workplace.omit(precision, one.error);
  }
  return all;
}

struct Row {
  const Typed* typed;
  const WorkDevice* device;
  Racer racer;
  TrainingRun run;
};

void time_steps(Workplace& workplace, std::vector<Row>& rows) {
  std::vector<Racer*> racers;
  for (Row& row : rows) racers.push_back(&row.racer);
  workplace.progress().step("steps");
  race(workplace, racers, kBatch,
       std::min(workplace.budget().left() / 4, 3.0 * static_cast<double>(rows.size())));
  for (Row& row : rows) {
    const std::string what = row.device->id + " in " + row.typed->precision;
    if (!row.racer.error.empty()) workplace.omit("steps on " + what, row.racer.error);
    if (row.racer.runner != nullptr && !row.racer.runner->only_stored().empty())
      workplace.omit(what + ", computing in it", "it only stores in it: " + row.racer.runner->only_stored());
    row.racer.runner.reset();
  }
}

void train_all(Workplace& workplace, std::vector<Row>& rows) {
  const std::string training = workplace.file("training.npz"), validation = workplace.file("validation.npz");
  const uint64_t seed = workplace.options().seed;
  Status written = write_pictures(training, {0, kSamples}, 28, kClasses, kNoise, seed);
  if (written.ok()) written = write_pictures(validation, {kSamples, kValidation}, 28, kClasses, kNoise, seed);
  if (!written.ok()) return workplace.omit("trainings", written.message());
  size_t left = rows.size();
  for (Row& row : rows) {
    const std::string what = "training on " + row.device->id + " in " + row.typed->precision;
    const size_t parts = left--;
    if (workplace.is_over()) {
      workplace.omit_rest(what);
      row.run.error = "left out";
      continue;
    }
    workplace.progress().step(what);
    row.run = workplace.train({.model = row.typed->file,
                               .data = {"--data", training, "--validate", validation},
                               .samples = kSamples,
                               .batch = kBatch,
                               .epochs = kEpochs,
                               .options = {"--lr", "0.001"}},
                              *row.device, workplace.share(parts));
    if (!row.run.error.empty()) workplace.omit(what, row.run.error);
  }
}

void conclude(Workplace& workplace, const std::vector<Row>& rows) {
  for (const Row& row : rows)
    for (const Row& full : rows) {
      if (full.device != row.device || full.typed->precision != "fp32" || &row == &full) continue;
      if (row.racer.timing.runs == 0 || full.racer.timing.runs == 0) continue;
      const Timing &timing = row.racer.timing, &other = full.racer.timing;
      const std::string begin = "On " + row.device->id + " a step in " + row.typed->precision;
      std::string text = begin + " and in fp32 are too close to call";
      if (!overlap(timing.interval, other.interval))
        text = begin + " takes " +
               words::times_text(timing.median_ms / other.median_ms, ratio(timing.interval, other.interval)) +
               " the time of fp32";
      text += words::format(", with %.2f times the memory", static_cast<double>(row.racer.memory_bytes) /
                                                                static_cast<double>(full.racer.memory_bytes));
      const auto accuracy = row.run.last("accuracy"), best = full.run.last("accuracy");
      if (accuracy && best && row.run.is_complete() && full.run.is_complete())
        text += words::format("; accuracy %.1f %% against %.1f %%", 100 * *accuracy, 100 * *best);
      workplace.result().findings.push_back(text + ".");
    }
}

}  // namespace

void run_mixed_precision(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  result.method = {
      "LeNet-5, Adam, batch 64, 3 epochs of 6,000 generated pictures of 10 classes under noise; 2,000 others "
      "validate. fp16 with dynamic loss scaling. Weights, optimizer and loss stay in fp32; a step's memory "
      "is states, weights and working memory."};
  workplace.progress().begin("mixed-precision", 0);
  const std::vector<Typed> typed = compile_all(workplace);
  std::vector<Row> rows;
  for (const WorkDevice& device : workplace.devices())
    for (const Typed& one : typed) {
      if (!one.error.empty()) continue;
      std::string error;
      auto model = open_model(one.file, Mode::Train, error);
      if (!model) {
        workplace.omit(one.precision, error);
        continue;
      }
      if (one.precision != "fp32") model->precision = one.precision;
      rows.push_back(
          {.typed = &one,
           .device = &device,
           .racer = {.device = &device, .model = std::move(*model), .options = workplace.measure_options()},
           .run = {}});
    }
  time_steps(workplace, rows);
  train_all(workplace, rows);
  Table table{"",
              {{"device", ""},
               {"precision", ""},
               {"step", "ms"},
               {"memory", "bytes"},
               {"3 epochs", "s"},
               {"loss", ""},
               {"accuracy", "%"}},
              {}};
  for (const Row& row : rows)
    table.rows.push_back(
        {Cell::of(row.device->id), Cell::of(row.typed->precision), time_cell(row.racer.timing),
         row.racer.timing.runs > 0 ? Cell::of(static_cast<double>(row.racer.memory_bytes)) : Cell::nothing(),
         row.run.total_seconds(), Cell::maybe(row.run.last("training loss")),
         Cell::maybe(row.run.last("accuracy"), 100)});
  result.tables.push_back(std::move(table));
  conclude(workplace, rows);
}

}  // namespace librt::bench
