// Training by several processes: what the second and the fourth bring, and what communication costs.
#include <algorithm>
#include <cmath>
#include <future>

#include "tools/cli/find_program.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/samples.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kSamples = 4096, kFeatures = 1000, kBatch = 256, kEpochs = 6;
constexpr int kRanks[] = {1, 2, 4};

struct Files {
  std::string data, together, alone;  ///< models with and without collectives
};

/// Several ranks with equal parts of a batch, and as many processes that do not know of each other.
struct Scale {
  int ranks = 1;
  Cell rate;                         ///< samples per second of all ranks
  std::optional<double> loss;        ///< of the last epoch
  std::optional<double> alone_rate;  ///< samples per second of all processes without communication
};

/// The threads of a rank: the CPU's divided by the most ranks, so that a rank is the same in every row.
int threads_of_rank(const Workplace& workplace) {
  return std::max(1, workplace.threads() / kRanks[std::size(kRanks) - 1]);
}

TrainingPlan plan_of(const Workplace& workplace, const std::string& model, const std::string& data,
                     int64_t batch) {
  return {
      .model = model,
      .data = {"--data", data},
      .samples = kSamples,
      .batch = batch,
      .epochs = kEpochs,
      .options = {"--lr", "0.001", "--drop-last", "--threads", std::to_string(threads_of_rank(workplace))}};
}

std::vector<std::string> device_arguments(const Workplace& workplace, const WorkDevice& device) {
  return {"--backend", device.info.backend,
          "--device",  std::to_string(device.info.index),
          "--seed",    std::to_string(workplace.options().seed)};
}

// Open MPI would refuse more ranks than cores, and would bind each to one; MPICH does neither.
std::vector<std::string> launcher(int ranks) {
  return {"env",
          "OMPI_MCA_rmaps_base_oversubscribe=1",
          "OMPI_MCA_hwloc_base_binding_policy=none",
          "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",  // Open MPI 5
          "PRTE_MCA_hwloc_default_binding_policy=none",
          "mpirun",
          "-n",
          std::to_string(ranks)};
}

// rttrain: "of a batch of 256 samples: 171 on rank 0 (cpu), 85 on rank 1 (cuda), ...".
std::string parts_text(const std::string& messages) {
  constexpr std::string_view kBegin = " samples: ";
  const size_t at = messages.find("rttrain: of a batch of "), begin = messages.find(kBegin, at);
  if (at == std::string::npos || begin == std::string::npos) return {};
  const size_t from = begin + kBegin.size();
  return messages.substr(from, std::min(messages.find('\n', from), messages.find(", by", from)) - from);
}

// As many processes as there are ranks, each with a rank's part of the batch, for as many steps. The slowest
// one counts, as it does for ranks.
std::optional<double> rate_alone(Workplace& workplace, const WorkDevice& device, const Files& files,
                                 int ranks, double seconds) {
  TrainingPlan plan = plan_of(workplace, files.alone, files.data, kBatch / ranks);
  plan.options.insert(plan.options.end(), {"--steps", std::to_string(kEpochs * kSamples / kBatch)});
  plan.samples = kSamples / ranks;  // of the steps
  const ChildTime time = workplace.child_time(seconds);
  std::vector<std::future<TrainingRun>> processes;
  for (int rank = 0; rank < ranks; ++rank)
    processes.push_back(std::async(std::launch::async, [&, rank] {
      return run_training(plan, device_arguments(workplace, device),
                          workplace.file("alone" + std::to_string(rank) + ".log"), time, workplace.stop());
    }));
  std::optional<double> slowest;
  bool failed = false;
  for (auto& process : processes) {
    const TrainingRun run = process.get();
    // Whole epochs of the smaller batch are longer than those of the ranks: only records compare.
    std::vector<double> times = run.sample_seconds;
    if (!run.error.empty() || times.empty()) {
      failed = true;
      continue;
    }
    std::sort(times.begin(), times.end());
    const double rate = 1 / quantile(times, 0.5);
    slowest = slowest ? std::min(*slowest, rate) : rate;
  }
  return failed || !slowest ? std::nullopt : std::optional(*slowest * ranks);
}

TrainingRun train_together(Workplace& workplace, const WorkDevice& device, const Files& files, int ranks,
                           double seconds) {
  TrainingPlan plan = plan_of(workplace, files.together, files.data, kBatch);
  if (ranks > 1) plan.launcher = launcher(ranks);
  return workplace.train(plan, device_arguments(workplace, device), workplace.file("ranks.log"), seconds);
}

void conclude(Workplace& workplace, const WorkDevice& device, const std::vector<Scale>& all) {
  std::vector<std::string>& findings = workplace.result().findings;
  double worst = 0;
  for (const Scale& scale : all) {
    if (scale.ranks == 1 || all.front().ranks != 1 || !scale.rate.number || !all.front().rate.number)
      continue;
    const double speedup = *scale.rate.number / *all.front().rate.number;
    findings.push_back(words::format("%d ranks on %s train %.2f times as fast as one: efficiency %.0f %%.",
                                     scale.ranks, device.id.c_str(), speedup, 100 * speedup / scale.ranks));
    if (scale.loss && all.front().loss)
      worst = std::max(worst, std::fabs(*scale.loss / *all.front().loss - 1));
  }
  if (all.size() > 1 && worst > 0)
    findings.push_back(words::format(
        "Losses of the last epoch differ by at most %.1e between one rank and several.", worst));
  else if (all.size() > 1)
    findings.emplace_back("Losses of the last epoch are equal on one rank and on several.");
}

// Unequal devices: a rank on the CPU and one on a GPU share each batch, equally or by their measured speed.
void share_with(Workplace& workplace, const WorkDevice& cpu, const WorkDevice& gpu, const Files& files,
                size_t pairs_left, Table& table) {
  struct Split {
    const char* what;
    bool on_cpu, on_gpu;
    const char* share;
  };
  static constexpr Split kSplits[] = {{"CPU alone", true, false, "equal"},
                                      {"GPU alone", false, true, "equal"},
                                      {"both, equal shares", true, true, "equal"},
                                      {"both, --share auto", true, true, "auto"}};
  size_t left = std::size(kSplits) * pairs_left;
  std::optional<double> alone, equal, measured, loss, loss_together;
  for (const Split& split : kSplits) {
    const std::string what = cpu.id + " and " + gpu.id + ", " + split.what;
    const double seconds = workplace.share(left--);
    if (workplace.is_over()) {
      workplace.omit_rest(what);
      continue;
    }
    workplace.progress().step(what);
    TrainingPlan plan = plan_of(workplace, files.together, files.data, kBatch);
    plan.options.insert(plan.options.end(), {"--share", split.share});
    const auto first = device_arguments(workplace, split.on_cpu ? cpu : gpu);
    if (split.on_cpu && split.on_gpu) {
      plan.launcher = launcher(1);
      plan.second = device_arguments(workplace, gpu);
    }
    const TrainingRun run = workplace.train(plan, first, workplace.file("share.log"), seconds);
    if (!run.error.empty()) {
      workplace.omit(what, run.error);
      continue;
    }
    const Cell rate = run.samples_per_second();
    table.rows.push_back({Cell::of(cpu.id + " and " + gpu.id), Cell::of(split.what),
                          Cell::of(parts_text(run.messages)), rate, Cell::maybe(run.last("training loss"))});
    const bool is_auto = std::string_view(split.share) == "auto";
    if (!split.on_cpu || !split.on_gpu)
      alone = std::max(alone.value_or(0), rate.number.value_or(0));
    else
      (is_auto ? measured : equal) = rate.number;
    if (run.is_complete()) (split.on_cpu && split.on_gpu ? loss_together : loss) = run.last("training loss");
  }
  if (alone && equal && measured && *alone > 0 && *equal > 0)
    workplace.result().findings.push_back(
        words::format("%s and %s by measured speed train %.2f times as fast as in equal shares, and %.2f "
                      "times as fast as the faster one alone.",
                      cpu.id.c_str(), gpu.id.c_str(), *measured / *equal, *measured / *alone));
  if (loss && loss_together)
    workplace.result().findings.push_back(
        words::format("The loss of both together differs by %.1e from that of one.",
                      std::fabs(*loss_together / *loss - 1)));
}

void scale_on(Workplace& workplace, const WorkDevice& device, const Files& files, size_t devices_left,
              Table& table) {
  std::vector<Scale> all;
  size_t left = std::size(kRanks) * devices_left;
  for (const int ranks : kRanks) {
    const std::string what = device.id + ", " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
    const double seconds = workplace.share(left--);
    if (workplace.is_over()) {
      workplace.omit_rest(what);
      continue;
    }
    workplace.progress().step(what);
    const TrainingRun run = train_together(workplace, device, files, ranks, seconds * 0.6);
    if (!run.error.empty()) {
      workplace.omit(what, run.error);
      continue;
    }
    Scale& scale = all.emplace_back(
        Scale{.ranks = ranks, .rate = run.samples_per_second(), .loss = {}, .alone_rate = {}});
    if (run.is_complete()) scale.loss = run.last("training loss");
    if (ranks > 1 && !workplace.is_over())
      scale.alone_rate = rate_alone(workplace, device, files, ranks, seconds * 0.4);
    const bool has_one = all.front().ranks == 1 && all.front().rate.number && scale.rate.number;
    table.rows.push_back(
        {Cell::of(device.id), Cell::of(static_cast<double>(ranks)),
         Cell::of(static_cast<double>(kBatch) / ranks), scale.rate,
         has_one ? Cell::of(100 * *scale.rate.number / *all.front().rate.number / ranks) : Cell::nothing(),
         Cell::maybe(scale.alone_rate),
         scale.alone_rate && scale.rate.number
             ? Cell::of(std::max(0.0, 100 * (1 - *scale.rate.number / *scale.alone_rate)))
             : Cell::nothing(),
         Cell::maybe(scale.loss)});
  }
  conclude(workplace, device, all);
}

}  // namespace

void run_scaling(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  const Files files{workplace.file("training.npz"), workplace.file("together.rt"),
                    workplace.file("alone.rt")};
  const Status written = write_planes(files.data, {0, kSamples}, kFeatures, workplace.options().seed);
  if (!written.ok()) return workplace.omit("all", written.message());
  std::string problem;
  if (!workplace.compile("zoo:mlp", {"--train", "--optimizer", "adam", "--data-parallel"}, files.together,
                         problem) ||
      !workplace.compile("zoo:mlp", {"--train", "--optimizer", "adam"}, files.alone, problem))
    return workplace.omit("all", problem);
  const int threads = threads_of_rank(workplace), cpus = workplace.threads();
  result.method = {words::format(
      "Perceptron 1000-512-256-2, Adam, batches of 256 divided among the ranks, %d CPU %s each of %d. "
      "Communication: what as many processes do that have a rank's part of the batch and do not communicate, "
      "against what the ranks do.",
      threads, threads == 1 ? "thread" : "threads", cpus)};
  if (kRanks[std::size(kRanks) - 1] * threads > cpus)
    result.method.push_back(words::format("%d ranks share %d CPUs: they cannot be faster than %d.",
                                          kRanks[std::size(kRanks) - 1], cpus, cpus));
  Table table{"",
              {{"device", ""},
               {"ranks", ""},
               {"samples each", ""},
               {"samples/s", "1/s"},
               {"efficiency", "%"},
               {"without communication", "1/s"},
               {"communication", "%"},
               {"loss", ""}},
              {}};
  workplace.progress().begin("scaling", std::size(kRanks) * workplace.devices().size());
  const std::vector<const WorkDevice*> gpus = workplace.gpus();
  size_t left = workplace.devices().size() + (workplace.cpu() != nullptr ? gpus.size() : 0);
  for (const WorkDevice& device : workplace.devices()) scale_on(workplace, device, files, left--, table);
  result.tables.push_back(std::move(table));
  if (workplace.cpu() == nullptr || gpus.empty())
    return workplace.omit("unequal devices", "they need a CPU and a GPU: one rank on each");
  Table shares{"Unequal devices: one rank on each",
               {{"devices", ""}, {"split", ""}, {"parts", ""}, {"samples/s", "1/s"}, {"loss", ""}},
               {}};
  for (const WorkDevice* gpu : gpus) share_with(workplace, *workplace.cpu(), *gpu, files, left--, shares);
  result.tables.push_back(std::move(shares));
}

}  // namespace librt::bench
