#include "tools/rtbench/experiments/rounds.h"

#include <algorithm>

#include "tools/rtbench/experiments/time_plan.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr size_t kRounds = 5;
constexpr size_t kLeastRounds = 3;

// A run, planning included, ends when the budget does, or soon after.
uint64_t time_limit_ms(double left) {
  constexpr double kMost = 1e9;
  return static_cast<uint64_t>(1000 * std::min(kMost, left + grace_of(left)));
}

void set_up(Workplace& workplace, Racer& racer, int64_t batch) {
  if (racer.runner == nullptr) {
    racer.options.time_limit_ms = time_limit_ms(workplace.budget().left());
    auto opened = SessionRunner::open(racer.model, racer.device->info, racer.options, workplace.stop());
    if (!opened) {
      racer.error = opened.status().message();
      return;
    }
    racer.runner = std::move(*opened);
  }
  if (rt::Status status = racer.runner->set_batch(batch, nullptr); !status) {
    racer.error = status.code() == rt::Code::LimitExceeded && workplace.is_over()
                      ? "the budget was spent in its first run"
                      : status.message();
    racer.runner.reset();
    return;
  }
  racer.memory_bytes = racer.runner->memory_bytes();
}

// The sessions that can be prepared in the time.
std::vector<bool> set_up_all(Workplace& workplace, const std::vector<Racer*>& racers, int64_t batch,
                             double seconds) {
  std::vector<bool> ready(racers.size());
  double spent = 0, longest = 0;
  for (size_t i = 0; i < racers.size(); ++i) {
    Racer& racer = *racers[i];
    racer.timing = {};
    if (!racer.error.empty() || workplace.stop().requested()) continue;
    if (i > 0 && !may_prepare(longest, spent, seconds, workplace.budget().left())) {
      racer.error = "the budget was spent";
      continue;
    }
    const double begun = workplace.budget().spent();
    set_up(workplace, racer, batch);
    const double took = workplace.budget().spent() - begun;
    spent += took;
    longest = std::max(longest, took);
    ready[i] = racer.runner != nullptr;
  }
  return ready;
}

// Of a round of one run each, warm-up included, in seconds.
double round_seconds(const std::vector<Racer*>& racers, const std::vector<bool>& ready) {
  double seconds = 0;
  for (size_t i = 0; i < racers.size(); ++i) {
    if (!ready[i] || racers[i]->runner == nullptr) continue;
    const double last = racers[i]->runner->last_ms();
    seconds += 1e-3 * last * (last < kShortRunMs ? 3 : 1);
  }
  return seconds;
}

}  // namespace

void race(Workplace& workplace, const std::vector<Racer*>& racers, int64_t batch, double seconds) {
  std::vector<Rounds> rounds(racers.size());
  const std::vector<bool> ready = set_up_all(workplace, racers, batch, seconds);
  std::vector<double> first(racers.size());
  for (size_t i = 0; i < racers.size(); ++i)
    if (ready[i]) first[i] = racers[i]->runner->last_ms();
  const double begun = workplace.budget().spent();
  for (size_t round = 0; round < kRounds; ++round) {
    const double left = seconds - (workplace.budget().spent() - begun);
    if (round >= kLeastRounds && left <= 0) break;
    if (round > 0 && !fits(round_seconds(racers, ready), workplace.budget().left())) break;
    const double each =
        std::max(0.0, left) / static_cast<double>((kRounds - round) * std::max<size_t>(racers.size(), 1));
    for (size_t i = 0; i < racers.size(); ++i) {
      Racer& racer = *racers[i];
      if (!ready[i] || racer.runner == nullptr || workplace.stop().requested()) continue;
      if (round == 0 && first[i] > 1000 * (workplace.budget().left() + kOverrunSeconds)) {
        racer.error = "the budget was spent";
        racer.runner.reset();
        continue;
      }
      std::vector<double>& times = rounds[i].emplace_back();
      if (rt::Status status = racer.runner->run(each, 1, times); !status && !workplace.stop().requested()) {
        racer.error = status.message();
        racer.runner.reset();
      }
      if (times.empty()) rounds[i].pop_back();
    }
  }
  for (size_t i = 0; i < racers.size(); ++i) {
    // Of a single run nothing could be said about how much runs differ.
    if (rounds[i].size() == 1 && rounds[i].front().size() == 1) rounds[i].push_back({first[i]});
    if (!rounds[i].empty()) racers[i]->timing = summarize(rounds[i]);
  }
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
