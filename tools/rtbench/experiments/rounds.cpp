#include "tools/rtbench/experiments/rounds.h"

#include <algorithm>

#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr size_t kRounds = 5;
constexpr size_t kLeastRounds = 3;

void set_up(Workplace& workplace, Racer& racer, int64_t batch) {
  racer.timing = {};
  if (!racer.error.empty()) return;
  if (racer.runner == nullptr) {
    auto opened = SessionRunner::open(racer.model, racer.device->info, racer.options, workplace.stop());
    if (!opened) {
      racer.error = opened.status().message();
      return;
    }
    racer.runner = std::move(*opened);
  }
  if (rt::Status status = racer.runner->set_batch(batch, nullptr); !status) {
    racer.error = status.message();
    racer.runner.reset();
    return;
  }
  racer.memory_bytes = racer.runner->memory_bytes();
}

}  // namespace

void race(Workplace& workplace, const std::vector<Racer*>& racers, int64_t batch, double seconds) {
  std::vector<Rounds> rounds(racers.size());
  const double begun = workplace.budget().spent();
  for (Racer* racer : racers)
    if (!workplace.stop().requested()) set_up(workplace, *racer, batch);
  for (size_t round = 0; round < kRounds; ++round) {
    const double left = seconds - (workplace.budget().spent() - begun);
    if (round >= kLeastRounds && left <= 0) break;
    const double each =
        std::max(0.0, left) / static_cast<double>((kRounds - round) * std::max<size_t>(racers.size(), 1));
    for (size_t i = 0; i < racers.size(); ++i) {
      Racer& racer = *racers[i];
      if (racer.runner == nullptr || workplace.stop().requested()) continue;
      std::vector<double>& times = rounds[i].emplace_back();
      if (rt::Status status = racer.runner->run(each, 1, times); !status && !workplace.stop().requested()) {
        racer.error = status.message();
        racer.runner.reset();
      }
      if (times.empty()) rounds[i].pop_back();
    }
  }
  for (size_t i = 0; i < racers.size(); ++i)
    if (!rounds[i].empty()) racers[i]->timing = summarize(rounds[i]);
}

std::string faster_text(const Racer& a, const Racer& b, const std::string& at) {
  if (overlap(a.timing.interval, b.timing.interval))
    return "At " + at + " " + a.device->id + " and " + b.device->id + " are too close to call.";
  const Racer& fast = a.timing.median_ms < b.timing.median_ms ? a : b;
  const Racer& slow = &fast == &a ? b : a;
  return "At " + at + " " + fast.device->id + " is " +
         words::times_text(slow.timing.median_ms / fast.timing.median_ms,
                           ratio(slow.timing.interval, fast.timing.interval)) +
         " as fast as " + slow.device->id + ".";
}

Cell time_cell(const Timing& timing) {
  if (timing.runs == 0) return Cell::nothing();
  return Cell::of(timing.median_ms, timing.interval);
}

Cell rate_cell(const Timing& timing, double amount) {
  if (timing.runs == 0 || timing.median_ms <= 0) return Cell::nothing();
  return Cell::of(1e3 * amount / timing.median_ms,
                  {1e3 * amount / timing.interval.high, 1e3 * amount / timing.interval.low});
}

}  // namespace librt::bench
