// Transfers during compute or one after the other; recorded work replayed or launched anew.
#include <algorithm>
#include <chrono>

#include "tools/rtbench/experiments/rounds.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/prepare.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRounds = 5, kLeastRuns = 6;

/// A way to run the same batch again and again, with inputs that come from the host each time.
enum class Way : uint8_t { InTurn, Overlapped };

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Load {
  std::string network, what;
  int64_t batch;
};

// Little compute for its inputs, and much.
const std::vector<Load>& loads() {
  static const std::vector<Load> all = {{"zoo:mlp", "perceptron", 1024},
                                        {"zoo:resnet18_cifar", "ResNet-18", 4}};
  return all;
}

// Times from the end of one run to the end of the next.
rt::Status run_way(Way way, rt::Session& session, const std::vector<rt::Tensor>& inputs, double seconds,
                   const StopRequest& stop, std::vector<double>& times) {
  const Clock::time_point begin = Clock::now();
  if (way == Way::Overlapped) {
    if (rt::Status status = feed(session, inputs); !status) return status;
    if (rt::Status status = session.submit(); !status) return status;
  }
  rt::Status status;
  Clock::time_point last = Clock::now();
  for (size_t runs = 0; status.ok() && (runs < kLeastRuns || ms_since(begin) < 1000 * seconds); ++runs) {
    if (stop.requested()) break;
    status = feed(session, inputs);
    if (!status) break;
    if (way == Way::InTurn) {
      status = session.run();
    } else {
      status = session.submit();
      if (status.ok()) status = session.wait();
    }
    times.push_back(ms_since(last));
    last = Clock::now();
  }
  if (way == Way::Overlapped) {
    const rt::Status ended = session.wait();
    if (status.ok()) status = ended;
  }
  return status;
}

struct Compared {
  Timing in_turn, overlapped;
  double bytes = 0;  ///< of inputs in a run
};

rt::Status compare(Workplace& workplace, const WorkDevice& device, const Load& load, double seconds,
                   Compared& compared) {
  std::string error;
  const auto model = open_model(load.network, Mode::Infer, error);
  if (!model) return rt::Status(rt::Code::InvalidArgument, error);
  const MeasureOptions options = workplace.measure_options();
  auto loaded = bench::load(*model, options.load);
  if (!loaded) return loaded.status();
  const auto inputs = make_inputs(*model, *loaded, load.batch, options);
  if (!inputs) return inputs.status();
  for (const rt::Tensor& input : *inputs) compared.bytes += static_cast<double>(input.bytes());
  auto session = open_session(*loaded, session_options(*model, device.info, options), options);
  if (!session) return session.status();
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    if (rt::Status status = feed(*session, *inputs); !status) return status;
    if (rt::Status status = session->run(); !status) return status;
  }
  Rounds in_turn, overlapped;
  const double each = seconds / (2 * kRounds);
  for (size_t round = 0; round < kRounds && !workplace.is_over(); ++round) {
    if (rt::Status status =
            run_way(Way::InTurn, *session, *inputs, each, workplace.stop(), in_turn.emplace_back());
        !status)
      return status;
    if (rt::Status status =
            run_way(Way::Overlapped, *session, *inputs, each, workplace.stop(), overlapped.emplace_back());
        !status)
      return status;
  }
  std::erase_if(in_turn, [](const auto& times) { return times.empty(); });
  std::erase_if(overlapped, [](const auto& times) { return times.empty(); });
  if (!in_turn.empty()) compared.in_turn = summarize(in_turn);
  if (!overlapped.empty()) compared.overlapped = summarize(overlapped);
  return {};
}

void overlap_of(Workplace& workplace, const WorkDevice& device, const Load& load, double seconds,
                Table& table) {
  const std::string what = device.id + ", " + load.what;
  if (!device.info.asynchronous)
    return workplace.omit(what + ", overlapped",
                          "the device computes in the host's memory: there are no transfers");
  Compared compared;
  if (rt::Status status = compare(workplace, device, load, seconds, compared); !status)
    return workplace.omit(what, status.message());
  if (compared.in_turn.runs == 0 || compared.overlapped.runs == 0) return workplace.omit_rest(what);
  table.rows.push_back({Cell::of(device.id), Cell::of(load.what), Cell::of(static_cast<double>(load.batch)),
                        Cell::of(compared.bytes), time_cell(compared.in_turn), time_cell(compared.overlapped),
                        Cell::of(100 * compared.overlapped.median_ms / compared.in_turn.median_ms)});
  const std::string begin = what + ": ";
  workplace.result().findings.push_back(
      overlap(compared.in_turn.interval, compared.overlapped.interval)
          ? begin + "whether transfers overlap with compute is too close to call."
          : begin + "with transfers during compute a run takes " +
                words::times_text(compared.overlapped.median_ms / compared.in_turn.median_ms,
                                  ratio(compared.overlapped.interval, compared.in_turn.interval)) +
                " the time.");
}

const char* what_is_replayed(const WorkDevice& device) {
  return device.info.backend == "vulkan" ? "command buffer" : "graph";
}

// Batch 1: launches are seen best where kernels are short.
void replay_of(Workplace& workplace, const WorkDevice& device, const Load& load, double seconds,
               Table& table) {
  const std::string what = device.id + ", " + load.what + ", replayed or launched anew";
  if (!device.is_gpu())
    return workplace.omit(what, "the CPU computes within a run: nothing is recorded that could be replayed");
  std::string error;
  const auto model = open_model(load.network, Mode::Infer, error);
  if (!model) return workplace.omit(what, error);
  Racer replayed{.device = &device, .model = *model, .options = workplace.measure_options()};
  Racer anew = {.device = &device, .model = *model, .options = replayed.options};
  anew.options.no_replay = true;
  race(workplace, {&replayed, &anew}, 1, seconds);
  for (const Racer* racer : {&replayed, &anew})
    if (!racer->error.empty()) return workplace.omit(what, racer->error);
  if (replayed.timing.runs == 0 || anew.timing.runs == 0) return workplace.omit_rest(what);
  table.rows.push_back({Cell::of(device.id), Cell::of(load.what), Cell::of(what_is_replayed(device)),
                        time_cell(replayed.timing), time_cell(anew.timing),
                        Cell::of(100 * replayed.timing.median_ms / anew.timing.median_ms)});
  const std::string begin = device.id + ", " + load.what + ": ";
  workplace.result().findings.push_back(
      overlap(replayed.timing.interval, anew.timing.interval)
          ? begin + "whether replaying a " + what_is_replayed(device) + " pays is too close to call."
          : begin + "with a replayed " + what_is_replayed(device) + " a run takes " +
                words::times_text(replayed.timing.median_ms / anew.timing.median_ms,
                                  ratio(replayed.timing.interval, anew.timing.interval)) +
                " the time of one that is launched anew.");
}

}  // namespace

void run_transfer(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  result.method = {
      "Inference with inputs that the host gives anew for each run. In turn: a run ends before the next "
      "one's "
      "inputs are given. Overlapped: two runs are in flight, so that the next inputs are transferred during "
      "compute.",
      "Replayed: the work of a run is recorded once, as a CUDA graph or a Vulkan command buffer. Anew: CUDA "
      "launches kernel by kernel, Vulkan records a new command buffer for each run. Batch 1."};
  Table overlapped{"Transfers",
                   {{"device", ""},
                    {"model", ""},
                    {"batch", ""},
                    {"inputs", "bytes"},
                    {"in turn", "ms"},
                    {"overlapped", "ms"},
                    {"of it", "%"}},
                   {}};
  Table replayed{
      "Recorded work",
      {{"device", ""}, {"model", ""}, {"recorded", ""}, {"replayed", "ms"}, {"anew", "ms"}, {"of it", "%"}},
      {}};
  struct Part {
    void (*measure)(Workplace&, const WorkDevice&, const Load&, double seconds, Table&);
    Table& table;
    const char* what;
  };
  const Part parts[] = {{overlap_of, overlapped, ""}, {replay_of, replayed, ", replay"}};
  size_t left = std::size(parts) * loads().size() * workplace.devices().size();
  workplace.progress().begin("transfer", left);
  for (const WorkDevice& device : workplace.devices()) {
    for (const Part& part : parts)
      for (const Load& load : loads()) {
        const std::string step = device.id + ", " + load.what + part.what;
        workplace.progress().step(step);
        const double seconds = std::min(10.0, workplace.share(left--));
        if (workplace.is_over())
          workplace.omit_rest(step);
        else
          part.measure(workplace, device, load, seconds, part.table);
      }
  }
  if (!overlapped.rows.empty()) result.tables.push_back(std::move(overlapped));
  if (!replayed.rows.empty()) result.tables.push_back(std::move(replayed));
  if (workplace.gpus().empty())
    result.findings.emplace_back(
        "No GPU was measured, and on the CPU there is nothing to transfer: nothing follows.");
}

}  // namespace librt::bench
