// Memory against time in training: fewer samples at once, values computed again, smaller optimizer states.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/data/file.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/samples.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kBatch = 16, kSequence = 128;
constexpr const char* kNoLimit = "1024GiB";

struct Variant {
  std::string what;
  std::vector<std::string> compile, train;
  double budget = 0;  ///< above 0: compiled for this share of the plain memory
};

/// A network in all its variants, of which the first one is plain.
struct Subject {
  std::string name, network;
  std::vector<std::string> compile;
  int64_t steps;
  Status (*write)(const std::string& path, uint64_t seed);
  std::string file;  ///< of the data
  std::vector<Variant> variants;
};

Status write_text_file(const std::string& path, uint64_t seed) {
  return write_messages(path, {0, 2000}, seed);
}

Status write_picture_file(const std::string& path, uint64_t seed) {
  return write_pictures(path, {0, 128}, 28, 10, 1, seed);
}

// A transformer, whose samples are independent of each other, so that micro-batches change nothing, and a
// network with batch normalization, which sees whole batches only: there rtconvert --memory can but
// recompute.
const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {"transformer",
       "zoo:char_transformer",
       {"--class-axis", "-1", "--dim", "sequence=" + std::to_string(kSequence)},
       16,
       write_text_file,
       "text.txt",
       {{"plain", {}, {}},
        {"optimizer states in bf16", {"--optimizer-state", "bf16"}, {}},
        {"optimizer states in 8 bits", {"--optimizer-state", "u8"}, {}},
        {"micro-batches of 8", {"--accumulate"}, {"--micro-batch", "8"}},
        {"micro-batches of 2", {"--accumulate"}, {"--micro-batch", "2"}},
        {"--memory, 70 %", {}, {}, 0.70},
        {"--memory, 40 %", {}, {}, 0.40}}},
      {"ResNet-18, 28x28",
       "zoo:resnet18_mnist",
       {},
       6,
       write_picture_file,
       "pictures.npz",
       {{"plain", {}, {}},
        {"--memory, 90 %", {}, {}, 0.90},
        {"--memory, 80 %", {}, {}, 0.80},
        {"--memory, 70 %", {}, {}, 0.70}}},
  };
  return all;
}

struct Measured {
  const Variant* variant = nullptr;
  std::string chosen;  ///< by rtconvert --memory
  double bytes = 0;
  Cell step;  ///< milliseconds of a batch
};

// "recomputes 34 nodes (12 % more operations), micro-batches of 8, states in bf16".
std::string chosen_text(const std::string& report) {
  const auto json = nlohmann::json::parse(report, nullptr, false);
  if (!json.is_object() || !json.contains("memory")) return {};
  const auto& memory = json["memory"];
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const auto nodes = memory.value("recomputed_nodes", uint64_t{0}); nodes > 0)
    add(words::format("recomputes %lu nodes, %.1f %% more operations", static_cast<unsigned long>(nodes),
                      100 * memory.value("recomputed_flops", 0.0)));
  if (const auto micro = memory.value("micro_batch", kBatch); micro < kBatch)
    add("micro-batches of " + std::to_string(micro));
  if (const std::string state = memory.value("optimizer_state", "f32"); state != "f32")
    add("states in " + state);
  return text;
}

// Of all sessions that rttrain may open, that of a validation included.
double planned_bytes(const std::string& report) {
  const auto json = nlohmann::json::parse(report, nullptr, false);
  return json.is_object() && json.contains("memory") ? json["memory"].value("bytes", 0.0) : 0;
}

// rttrain: "takes N bytes, ..." of --memory.
double bytes_taken(const std::string& messages) {
  constexpr std::string_view kBegin = "rttrain: takes ";
  const size_t at = messages.find(kBegin);
  return at == std::string::npos ? 0 : std::strtod(messages.c_str() + at + kBegin.size(), nullptr);
}

class Curve {
 public:
  Curve(Workplace& workplace, const WorkDevice& device, const Subject& subject)
      : workplace_(workplace), device_(device), subject_(subject) {}

  /// left: trainings of this and later curves.
  void run(size_t& left) {
    for (const Variant& variant : subject_.variants) {
      const std::string what = device_.id + ", " + subject_.name + ", " + variant.what;
      const size_t parts = left--;
      if (workplace_.is_over()) {
        workplace_.omit_rest(what);
        continue;
      }
      workplace_.progress().step(what);
      std::string problem;
      if (variant.budget > 0 && plain() == nullptr)
        problem = "the plain training was not measured";
      else
        measure(variant, workplace_.share(parts), problem);
      if (!problem.empty()) workplace_.omit(what, problem);
    }
  }

  void add_rows(Table& table) const {
    const Measured* first = plain();
    for (const Measured& one : all_) {
      const auto share = [](double value, double of) {
        return of > 0 ? Cell::of(100 * value / of) : Cell::nothing();
      };
      table.rows.push_back(
          {Cell::of(device_.id), Cell::of(subject_.name), Cell::of(one.variant->what), Cell::of(one.chosen),
           Cell::of(one.bytes), one.step, first == nullptr ? Cell::nothing() : share(one.bytes, first->bytes),
           first == nullptr || !one.step.number ? Cell::nothing()
                                                : share(*one.step.number, *first->step.number)});
    }
  }

  void conclude() const {
    const Measured* first = plain();
    if (first == nullptr || all_.size() < 2) return;
    const Measured& least = *std::min_element(all_.begin(), all_.end(),
                                              [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    if (&least == first) return;
    workplace_.result().findings.push_back(
        words::format("%s on %s: the least memory is %s, %.0f %% of plain, at %.2f times the time: %s%s%s.",
                      subject_.name.c_str(), device_.id.c_str(),
                      words::bytes_text(static_cast<uint64_t>(least.bytes)).c_str(),
                      100 * least.bytes / first->bytes, *least.step.number / *first->step.number,
                      least.variant->what.c_str(), least.chosen.empty() ? "" : ": ", least.chosen.c_str()));
  }

 private:
  const Measured* plain() const {
    return !all_.empty() && all_[0].variant == &subject_.variants[0] ? &all_[0] : nullptr;
  }

  void measure(const Variant& variant, double seconds, std::string& problem) {
    const std::string model = workplace_.file("net.rt");
    std::vector<std::string> compile = {"--train", "--optimizer", "adam"};
    compile.insert(compile.end(), subject_.compile.begin(), subject_.compile.end());
    compile.insert(compile.end(), variant.compile.begin(), variant.compile.end());
    std::vector<std::string> train = variant.train;
    const bool is_first = &variant == &subject_.variants.front();
    const bool plans = variant.budget > 0 || (is_first && subject_.variants.back().budget > 0);
    if (plans) {
      const std::string bytes = variant.budget > 0
                                    ? std::to_string(static_cast<uint64_t>(variant.budget * planned_))
                                    : std::string(kNoLimit);
      compile.insert(compile.end(), {"--memory", bytes, "--batch", std::to_string(kBatch), "--memory-backend",
                                     device_.info.backend});
    } else {
      train.insert(train.end(), {"--memory", kNoLimit});  // so that the plan is printed
    }
    std::string report;
    if (!workplace_.compile(subject_.network, compile, model, problem, &report)) return;
    if (plans && is_first) planned_ = planned_bytes(report);
    train.insert(train.end(), {"--steps", std::to_string(subject_.steps), "--lr", "0.001"});
    const TrainingRun run = workplace_.train({.model = model,
                                              .data = {"--data", workplace_.file(subject_.file)},
                                              .samples = subject_.steps * kBatch,
                                              .batch = kBatch,
                                              .epochs = 1,
                                              .options = train},
                                             device_, seconds);
    problem = run.error;
    if (!problem.empty()) return;
    const Cell rate = run.samples_per_second();
    if (!rate.number) {
      problem = "no step was timed";
      return;
    }
    constexpr double kBatchMs = 1e3 * static_cast<double>(kBatch);
    Cell step = Cell::of(kBatchMs / *rate.number);
    if (rate.interval)
      step.interval = Interval{kBatchMs / rate.interval->high, kBatchMs / rate.interval->low};
    all_.push_back({&variant, variant.budget > 0 ? chosen_text(report) : std::string(),
                    bytes_taken(run.messages), step});
  }

  Workplace& workplace_;
  const WorkDevice& device_;
  const Subject& subject_;
  std::vector<Measured> all_;
  double planned_ = 0;  ///< bytes of the plain training, by rtconvert
};

}  // namespace

void run_memory(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  result.method = {
      "Adam, batch 16, some steps each: zoo:char_transformer on 128 bytes, and ResNet-18 on 28x28. Memory as "
      "planned: weights, optimizer states, working memory and copies of inputs of all sessions. With "
      "--memory rtconvert chooses what costs least, for shares of what it plans for the plain training with "
      "a validation. Recomputed values and micro-batches change no result, smaller states do."};
  Table table{"",
              {{"device", ""},
               {"network", ""},
               {"training", ""},
               {"chosen", ""},
               {"memory", "bytes"},
               {"step", "ms"},
               {"of plain", "%"},
               {"time", "%"}},
              {}};
  size_t left = 0;
  for (const Subject& subject : subjects()) left += subject.variants.size() * workplace.devices().size();
  workplace.progress().begin("memory", left);
  for (const Subject& subject : subjects()) {
    const Status written = subject.write(workplace.file(subject.file), workplace.options().seed);
    if (!written.ok()) return workplace.omit(subject.name, written.message());
    for (const WorkDevice& device : workplace.devices()) {
      Curve curve(workplace, device, subject);
      curve.run(left);
      curve.add_rows(table);
      curve.conclude();
    }
  }
  result.tables.push_back(std::move(table));
}

}  // namespace librt::bench
