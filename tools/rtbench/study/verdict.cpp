#include "tools/rtbench/study/verdict.h"

#include <algorithm>

#include "tools/rtbench/price.h"
#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/study/budget.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using namespace words;  // NOLINT: functions that make text

using About = Sentence::About;

// A series at one of its points.
struct Contender {
  const Series* series = nullptr;
  const Point* point = nullptr;
};

// Of each device that has any, the best by `better`; the best device first.
template <class Choose, class Better>
std::vector<Contender> best_of_devices(const Study& study, Mode mode, Choose choose, Better better) {
  std::vector<Contender> best;
  for (const Series& series : study.series) {
    if (series.mode != mode) continue;
    const Contender candidate{&series, choose(series)};
    if (candidate.point == nullptr) continue;
    const auto same = std::find_if(best.begin(), best.end(), [&](const Contender& other) {
      return other.series->device == series.device;
    });
    if (same == best.end())
      best.push_back(candidate);
    else if (better(*candidate.point, *same->point))
      *same = candidate;
  }
  std::sort(best.begin(), best.end(),
            [&](const Contender& a, const Contender& b) { return better(*a.point, *b.point); });
  return best;
}

// How often the slower one's time the faster one's is, or its rate.
std::string margin(const Contender& fast, const Contender& slow) {
  return times_text(fast.point->samples_per_second / slow.point->samples_per_second,
                    ratio(fast.point->samples_interval, slow.point->samples_interval));
}

class Verdict {
 public:
  explicit Verdict(const Study& study) : study_(study) {}

  void cautions();
  void latency(Mode mode);
  void throughput(Mode mode);
  void batches(Mode mode);
  void crossovers(Mode mode);
  void precisions(Mode mode);
  void energy(Mode mode);
  void cost(Mode mode);
  void cost_by_batch(Mode mode);
  void targets();
  std::vector<Sentence> take() { return std::move(sentences_); }

 private:
  void say(About about, Mode mode, bool too_close, std::string text) {
    sentences_.push_back({about, mode, too_close, std::move(text)});
  }
  std::string side(const Series& series) const { return side_text(study_, series); }

  const Study& study_;
  std::vector<Sentence> sentences_;
};

void Verdict::cautions() {
  for (const Series& series : study_.series)
    if (series.difference && series.difference->relative > series.difference->allowed)
      say(About::Caution, series.mode, false,
          format("Wrong results: %s of %s differ from those of %s by %.2g of the largest; %.2g is allowed.",
                 series.mode == Mode::Train ? "training outputs" : "outputs", side(series).c_str(),
                 series.difference->compared_with.c_str(), series.difference->relative,
                 series.difference->allowed));
  if (study_.interrupted)
    say(About::Caution, Mode::Infer, false,
        "Interrupted: the verdict rests on what was measured until then.");
  size_t imprecise = 0, all = 0;
  for (const Series& series : study_.series)
    for (const Point* point : valid_points(series)) {
      ++all;
      imprecise += !point->timing.precise;
    }
  if (imprecise > 0)
    say(About::Caution, Mode::Infer, false,
        format("%zu of %zu points have intervals wider than %.0f %%: a longer --budget or a quieter machine "
               "helps.",
               imprecise, all, 100 * kWantedPrecision));
}

void Verdict::latency(Mode mode) {
  const auto first = [](const Series& series) -> const Point* {
    const auto points = valid_points(series);
    return points.empty() ? nullptr : points.front();
  };
  const auto shorter = [](const Point& a, const Point& b) { return a.timing.median_ms < b.timing.median_ms; };
  const auto best = best_of_devices(study_, mode, first, shorter);
  if (best.empty()) return;
  const char* run = mode == Mode::Train ? "training step" : "inference";
  const Contender& fast = best[0];
  std::string text = format("Shortest %s, at batch %lld: %s with %s", run,
                            static_cast<long long>(fast.point->batch), side(*fast.series).c_str(),
                            time_text(fast.point->timing.median_ms, fast.point->timing.interval).c_str());
  bool too_close = false;
  if (best.size() > 1) {
    const Contender& next = best[1];
    too_close = overlap(fast.point->timing.interval, next.point->timing.interval);
    if (too_close)
      text += "; " + side(*next.series) + " with " +
              time_text(next.point->timing.median_ms, next.point->timing.interval) + " is too close to call";
    else
      text += "; " + side(*next.series) + " takes " +
              times_text(next.point->timing.median_ms / fast.point->timing.median_ms,
                         ratio(next.point->timing.interval, fast.point->timing.interval)) +
              " as long";
  }
  say(About::Latency, mode, too_close, text + ".");
}

void Verdict::throughput(Mode mode) {
  const auto faster = [](const Point& a, const Point& b) {
    return a.samples_per_second > b.samples_per_second;
  };
  const auto best = best_of_devices(study_, mode, best_point, faster);
  if (best.empty()) return;
  const Contender& fast = best[0];
  std::string text =
      format("Most %s: %s at batch %lld with %s samples/s",
             mode == Mode::Train ? "samples trained" : "samples inferred", side(*fast.series).c_str(),
             static_cast<long long>(fast.point->batch), number_text(fast.point->samples_per_second).c_str());
  bool too_close = false;
  if (best.size() > 1) {
    const Contender& next = best[1];
    too_close = compare(*fast.point, *next.point) == 0;
    text += too_close ? "; " + side(*next.series) +
                            format(" with %s at batch %lld is too close to call",
                                   number_text(next.point->samples_per_second).c_str(),
                                   static_cast<long long>(next.point->batch))
                      : ", " + margin(fast, next) + " as many as " + side(*next.series) +
                            format(" at batch %lld", static_cast<long long>(next.point->batch));
  }
  say(About::Throughput, mode, too_close, text + ".");
}

void Verdict::batches(Mode mode) {
  const auto faster = [](const Point& a, const Point& b) {
    return a.samples_per_second > b.samples_per_second;
  };
  for (const Contender& best : best_of_devices(study_, mode, best_point, faster)) {
    if (!best.series->knee) continue;
    const Knee& knee = *best.series->knee;
    say(About::Batch, mode, false,
        format("%s of %s: batch %lld %s (%s).", mode == Mode::Train ? "Training" : "Inference",
               side(*best.series).c_str(), static_cast<long long>(knee.batch),
               knee.reached ? "is enough" : "is the best measured; larger ones may be better",
               knee.why.c_str()));
  }
}

void Verdict::crossovers(Mode mode) {
  for (const Crossover& crossover : study_.crossovers) {
    const Series &below = study_.series[crossover.below], &above = study_.series[crossover.above];
    if (below.mode != mode) continue;
    const std::string low = study_.devices[below.device].id, high = study_.devices[above.device].id;
    const std::string where = below.precision + " " + mode_text(mode) + ": ";
    switch (crossover.kind) {
      case Crossover::Kind::Crosses:
        say(About::Crossover, mode, crossover.first_above > crossover.last_below + 1 && !crossover.resolved,
            where + format("%s is faster up to batch %lld, %s from batch %lld on; they cross at about %s%s.",
                           low.c_str(), static_cast<long long>(crossover.last_below), high.c_str(),
                           static_cast<long long>(crossover.first_above),
                           number_text(crossover.estimate).c_str(),
                           crossover.resolved ? "" : ", and between it is open"));
        break;
      case Crossover::Kind::AlwaysFaster:
        say(About::Crossover, mode, false,
            where + format("%s is faster than %s at every batch measured, by at least %s times.", low.c_str(),
                           high.c_str(), number_text(crossover.least_margin).c_str()));
        break;
      case Crossover::Kind::TooClose:
        say(About::Crossover, mode, true,
            where + low + " and " + high + " are too close to call at every batch.");
    }
  }
}

// At the batch where fp32 is best: that precision over fp32.
void Verdict::precisions(Mode mode) {
  for (const Series& real : study_.series) {
    if (real.mode != mode || real.precision != "fp32") continue;
    const Point* best = best_point(real);
    if (best == nullptr) continue;
    for (const Series& lower : study_.series) {
      if (&lower == &real || lower.mode != mode || lower.device != real.device) continue;
      const Point* other = point_at(lower, best->batch);
      const Point* base = best;
      if (other == nullptr) {  // the largest batch of both
        for (const Point* point : valid_points(lower))
          if (const Point* same = point_at(real, point->batch)) {
            other = point;
            base = same;
          }
        if (other == nullptr) continue;
      }
      const int order = compare(*other, *base);
      const Contender a{&lower, other}, b{&real, base};
      std::string text =
          format("On %s at batch %lld, %s in %s is ", study_.devices[real.device].id.c_str(),
                 static_cast<long long>(other->batch), mode_text(mode), lower.precision.c_str());
      if (order == 0)
        text += "too close to fp32 to call";
      else
        text += (order > 0 ? margin(a, b) + " as fast as fp32"
                           : "slower than fp32, which is " + margin(b, a) + " as fast");
      if (!lower.only_stored.empty()) text += ", and only stored, not computed, in it";
      if (lower.difference)
        text += format("; outputs differ by %.1e of the largest", lower.difference->relative);
      say(About::Precision, mode, order == 0, text + ".");
    }
  }
}

void Verdict::energy(Mode mode) {
  const auto least = [](const Series& series) -> const Point* {
    const Point* best = nullptr;
    for (const Point* point : valid_points(series))
      if (point->energy.joules_per_sample &&
          (best == nullptr || *point->energy.joules_per_sample < *best->energy.joules_per_sample))
        best = point;
    return best;
  };
  const auto less = [](const Point& a, const Point& b) {
    return *a.energy.joules_per_sample < *b.energy.joules_per_sample;
  };
  const auto best = best_of_devices(study_, mode, least, less);
  if (best.empty()) return;
  std::string text = format("Least energy, %s: %s at batch %lld with %s J for a sample", mode_text(mode),
                            side(*best[0].series).c_str(), static_cast<long long>(best[0].point->batch),
                            number_text(*best[0].point->energy.joules_per_sample).c_str());
  if (best.size() > 1)
    text += format(
        "; %s takes %s times as much", side(*best[1].series).c_str(),
        number_text(*best[1].point->energy.joules_per_sample / *best[0].point->energy.joules_per_sample)
            .c_str());
  say(About::Energy, mode, false, text + ".");
}

void Verdict::cost(Mode mode) {
  const auto cheapest = [](const Series& series) -> const Point* {
    const Point* best = nullptr;
    for (const Point* point : valid_points(series))
      if (point->cost.per_million_samples &&
          (best == nullptr || *point->cost.per_million_samples < *best->cost.per_million_samples))
        best = point;
    return best;
  };
  const auto less = [](const Point& a, const Point& b) {
    return *a.cost.per_million_samples < *b.cost.per_million_samples;
  };
  const auto best = best_of_devices(study_, mode, cheapest, less);
  if (best.empty()) return;
  std::string text =
      format("Cheapest, %s at full load: %s at batch %lld with %s for a million samples", mode_text(mode),
             side(*best[0].series).c_str(), static_cast<long long>(best[0].point->batch),
             number_text(*best[0].point->cost.per_million_samples).c_str());
  bool too_close = false;
  if (best.size() > 1) {
    too_close = compare(*best[0].point, *best[1].point) == 0 &&
                *best[1].point->cost.per_million_samples < 1.02 * *best[0].point->cost.per_million_samples;
    text += format("; %s costs %s", side(*best[1].series).c_str(),
                   number_text(*best[1].point->cost.per_million_samples).c_str());
    if (too_close) text += ", too close to call";
  }
  say(About::Cost, mode, too_close, text + ".");
  for (const LoadCrossover& load : study_.load_crossovers)
    if (study_.series[load.below].mode == mode)
      say(About::Cost, mode, false,
          format("At a load of up to %s samples/s %s costs less, above it %s.",
                 number_text(load.samples_per_second).c_str(), side(study_.series[load.below]).c_str(),
                 side(study_.series[load.above]).c_str()));
}

// Devices at the same batch: a batch that is given by the use, such as requests one at a time.
void Verdict::cost_by_batch(Mode mode) {
  const auto costs = [](const Series& series) {
    std::vector<std::pair<int64_t, double>> all;
    for (const Point* point : valid_points(series))
      if (point->cost.per_million_samples) all.emplace_back(point->batch, *point->cost.per_million_samples);
    return all;
  };
  for (const Crossover& crossover : study_.crossovers) {
    const Series &below = study_.series[crossover.below], &above = study_.series[crossover.above];
    if (below.mode != mode) continue;
    for (const auto& [first, other] : {std::pair(&below, &above), std::pair(&above, &below)}) {
      const auto batch = cheaper_from(costs(*first), costs(*other));
      if (!batch) continue;
      say(About::Cost, mode, false,
          format("%s %s: a sample costs less on %s than on %s from batch %lld on.", first->precision.c_str(),
                 mode_text(mode), study_.devices[other->device].id.c_str(),
                 study_.devices[first->device].id.c_str(), static_cast<long long>(*batch)));
    }
  }
}

void Verdict::targets() {
  for (const TimeToTarget& target : study_.targets) {
    const std::string device = study_.devices[target.device].id + " in " + target.precision;
    if (target.reached) {
      std::string text =
          format("%s reaches %s %s in %s, after %lld epochs", device.c_str(), target.metric.c_str(),
                 number_text(target.wanted).c_str(), duration_text(target.seconds.value_or(0)).c_str(),
                 static_cast<long long>(target.epochs));
      if (target.waiting_seconds && target.seconds && *target.waiting_seconds > 0.05 * *target.seconds)
        text += format("; %.0f %% of the time it waited for data",
                       100 * *target.waiting_seconds / *target.seconds);
      if (target.total_joules) text += "; " + number_text(*target.total_joules) + " J";
      if (target.total_cost) text += "; it costs " + number_text(*target.total_cost);
      say(About::Target, Mode::Train, false, text + ".");
    } else if (!target.metric.empty()) {
      say(About::Target, Mode::Train, false,
          device + " does not reach " + target.metric + " " + number_text(target.wanted) + ": " +
              target.reason + (target.best ? "; the best was " + number_text(*target.best) : "") + ".");
    }
  }
}

}  // namespace

std::string side_text(const Study& study, const Series& series) {
  return study.devices[series.device].id + " in " + series.precision;
}

std::vector<Sentence> verdict_of(const Study& study) {
  Verdict verdict(study);
  verdict.cautions();
  for (const Mode mode : {Mode::Infer, Mode::Train}) {
    verdict.latency(mode);
    verdict.throughput(mode);
    verdict.batches(mode);
    verdict.crossovers(mode);
    verdict.precisions(mode);
    verdict.energy(mode);
    verdict.cost(mode);
    verdict.cost_by_batch(mode);
  }
  verdict.targets();
  return verdict.take();
}

}  // namespace librt::bench
