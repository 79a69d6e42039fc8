#include "tools/rttrain/loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "tools/cli/cache_folder.h"
#include "tools/rttrain/checkpoints.h"
#include "tools/rttrain/loader.h"
#include "tools/rttrain/report.h"
#include "tools/rttrain/speed.h"
#include "tools/rttrain/steps.h"
#include "tools/rttrain/stop_rule.h"
#include "tools/rttrain/validation.h"

namespace rt::train {

volatile std::sig_atomic_t g_stop = 0;

namespace {

constexpr uint64_t kMostSteps = uint64_t{1} << 62;  // more than any run takes; sums of two do not overflow

/// The steps of a whole run: --epochs, or --steps where that is less.
uint64_t steps_of_run(const LoopOptions& options, uint64_t batches) {
  const bool fits = batches == 0 || options.epochs <= kMostSteps / batches;
  const uint64_t all = fits ? options.epochs * batches : kMostSteps;
  return options.steps > 0 ? std::min(options.steps, all) : all;
}

class Loop {
 public:
  Loop(rt::Trainer& trainer, Budget& budget, const Samples& training, const Samples* validation, RunLog& log,
       const Ranks& ranks, const LoopOptions& options)
      : trainer_(trainer),
        budget_(budget),
        training_(training),
        ranks_(ranks),
        options_(options),
        batches_(Loader::batches(training.source.size(), options.batch, options.drop_last)),
        total_steps_(steps_of_run(options, batches_)),
        schedule_(options.schedule),
        steps_(trainer, budget, training.source, ranks, options),
        report_(log, ranks.is_first(), batches_, total_steps_, options) {
    if (validation != nullptr) validation_.emplace(*validation, ranks, options);
    rule_.emplace(options, validation_ ? validation_->names() : std::vector<std::string>());
    checkpoints_.emplace(trainer, ranks, options, training.source.size(), rule_->monitor());
  }

  rt::Result<Outcome> run() {
    if (rt::Status status = open(); !status) return status;
    while (!done() && !stopping())
      if (rt::Status status = epoch(); !status) return status;
    const Outcome outcome = rule_->is_reached() ? Outcome::Reached
                            : done()            ? Outcome::Finished
                                                : Outcome::Stopped;
    if (rt::Status status = checkpoints_->finish(position_); !status) return status;
    report_.summary(rule_->monitor(), position_, rule_->best_text(position_), rule_->reason(position_));
    if (outcome == Outcome::Stopped && ranks_.is_first())
      std::fprintf(
          stderr, "rttrain: stopped after step %lu; %s\n", static_cast<unsigned long>(position_.step),
          options_.checkpoint.empty() ? "nothing saved (no --checkpoint)" : "continue with --resume");
    return outcome;
  }

  std::optional<uint64_t> saved_step() const { return checkpoints_->saved_step(); }

 private:
  // Whatever can be refused is refused here, before the first step.
  rt::Status open() {
    if (batches_ == 0)
      return bad_data("the batch size " + std::to_string(options_.batch) +
                      " exceeds the number of samples, " + std::to_string(training_.source.size()));
    if (rt::Status status = rule_->check(); !status) return status;
    if (std::string error = schedule_.set_length(total_steps_); !error.empty())
      return bad_data("--schedule: " + error);
    if (options_.resume) {
      if (rt::Status status = checkpoints_->load(position_); !status) return status;
      const std::string problem = impossible_in(position_, batches_, options_.batch, kMostSteps);
      if (!problem.empty())
        return bad_data(options_.checkpoint + ": " + problem +
                        "; it is damaged: resume from another checkpoint, or begin anew with --overwrite");
    }
    if (rt::Status status = separate_random_numbers(); !status) return status;
    if (rt::Status status = divide(); !status) return status;
    if (rt::Status status = steps_.open(shares_); !status) return status;
    if (validation_)
      if (rt::Status status = validation_->open(budget_); !status) return status;
    if (budget_.is_set() && ranks_.is_first())
      std::fprintf(stderr, "rttrain: takes %s\n", budget_.text().c_str());
    const uint64_t first = position_.epoch * batches_ + position_.batch;
    loader_.emplace(training_.source, training_.transform,
                    LoaderOptions{.batch = options_.batch,
                                  .seed = options_.seed,
                                  .shuffle = options_.shuffle,
                                  .drop_last = options_.drop_last,
                                  .workers = options_.workers,
                                  .prefetch = options_.prefetch,
                                  .first = first,
                                  .end = std::max(first, total_steps_),
                                  .rank = ranks_.rank(),
                                  .shares = shares_,
                                  .slice = options_.ordered_sums ? options_.micro_batch : 0});
    return {};
  }

  // Decides which part of a batch each rank gets.
  rt::Status divide() {
    std::vector<double> weights = options_.share.weights;
    if (options_.share.is_measured && ranks_.count() > 1) {
      auto speeds = measure_speeds(trainer_, training_.source.columns(), ranks_, options_.batch);
      if (!speeds) return speeds.status();
      weights = std::move(*speeds);
    }
    shares_ = weights.empty() ? Shares(ranks_.count()) : Shares(std::move(weights));
    if (options_.share.is_equal() || ranks_.count() == 1) return {};
    const auto devices = ranks_.gather(trainer_.session().device().backend);
    if (!devices) return devices.status();
    if (!ranks_.is_first()) return {};
    std::string parts;
    for (size_t rank = 0; rank < ranks_.count(); ++rank)
      parts += (rank > 0 ? ", " : "") + std::to_string(shares_.part_of(rank, options_.batch)) + " on rank " +
               std::to_string(rank) + " (" + (*devices)[rank] + ")";
    std::fprintf(stderr, "rttrain: of a batch of %zu samples: %s%s\n", options_.batch, parts.c_str(),
                 options_.share.is_measured ? ", by measured speed" : "");
    return {};
  }

  // The random counter is a state that starts equal on all ranks; the offset keeps their streams apart.
  rt::Status separate_random_numbers() {
    constexpr const char* kCounter = "random.counter";
    if (ranks_.is_first()) return {};
    auto counter = trainer_.session().read_state(kCounter);
    if (!counter) return counter.status().code() == rt::Code::NotFound ? rt::Status() : counter.status();
    counter->values<int64_t>()[0] += static_cast<int64_t>(ranks_.rank()) << 40;
    return trainer_.session().write_state(kCounter, *counter);
  }

  bool out_of_steps(uint64_t step) const { return options_.steps > 0 && step >= options_.steps; }
  bool done() const {
    return position_.epoch >= options_.epochs || rule_->is_reached() ||
           rule_->is_out_of_patience(position_) || out_of_steps(position_.step);
  }

  // A signal reaches ranks at different times, so they agree in finish_step().
  bool stopping() const { return ranks_.count() > 1 ? agreed_to_stop_ : g_stop != 0; }

  // A checkpoint holds the step after which it was requested, so no later step may have started.
  bool may_begin() const {
    const size_t begun = steps_.in_flight();
    const uint64_t batch = position_.batch + begun, step = position_.step + begun;
    const bool saves_first =
        begun > 0 && options_.checkpoint_every > 0 && step % options_.checkpoint_every == 0;
    return steps_.may_begin() && batch < batches_ && !out_of_steps(step) && !stopping() && !saves_first;
  }

  rt::Status begin_step() {
    const auto batch = loader_->next();
    if (!batch) return batch.status();
    const uint64_t number = position_.step + steps_.in_flight();
    return with_checkpoint(
        steps_.begin(**batch, schedule_.learning_rate(static_cast<double>(options_.learning_rate), number)));
  }

  // Of an error that the user's limits are the reason for.
  rt::Status with_checkpoint(rt::Status status) const {
    if (status.code() != rt::Code::LimitExceeded) return status;
    return {status.code(),
            "after step " + std::to_string(position_.step) + ": " + status.message() + checkpoints_->text()};
  }

  // The files of the cache folder that a session which has run could not use.
  void report_cache(rt::Session& session) const {
    if (!ranks_.is_first()) return;
    librt::tools::report_unused("rttrain", session.device_reason());
    if (const auto plan = session.plan_text()) librt::tools::report_unused("rttrain", *plan);
  }

  rt::Status finish_step() {
    const auto step = steps_.finish();
    if (!step) return with_checkpoint(step.status());
    if (!cache_is_reported_)
      for (rt::Session* session : steps_.sessions()) report_cache(*session);
    cache_is_reported_ = true;
    agreed_to_stop_ = agreed_to_stop_ || step->stop_votes > 0;
    ++position_.batch;
    ++position_.step;
    checkpoints_->note_progress();
    if (!std::isfinite(step->loss) && !options_.allow_nonfinite)
      return bad_data(
          "the loss of step " + std::to_string(position_.step) + " is " + std::to_string(step->loss) +
          ", expected a finite number; lower --lr, or go on with --allow-nonfinite" + checkpoints_->text());
    position_.loss_sum += step->loss * static_cast<double>(step->samples);
    position_.seen += step->samples;
    return report_.step(position_, step->loss, step->samples, step->rate, loader_->waited());
  }

  rt::Status epoch() {
    report_.start_epoch(position_, loader_->waited());
    while (may_begin() || steps_.in_flight() > 0) {
      if (may_begin()) {
        if (rt::Status status = begin_step(); !status) return status;
        if (may_begin()) continue;
      }
      if (rt::Status status = finish_step(); !status) return status;
      if (options_.checkpoint_every > 0 && position_.step % options_.checkpoint_every == 0)
        if (rt::Status status = checkpoints_->save(options_.checkpoint, position_); !status) return status;
    }
    report_.end_steps();
    const bool whole = position_.batch >= batches_;
    if (!whole && !out_of_steps(position_.step)) return {};  // stopped by a signal
    EpochRecord record = report_.record(position_, loader_->waited());
    if (validation_) {
      auto measured = validation_->run();
      if (!measured) return with_checkpoint(measured.status());
      report_cache(validation_->session());
      if (stopping()) return {};  // the epoch ends, with its validation, when the run is resumed
      record.validation = std::move(*measured);
    }
    if (rt::Status status = report_.epoch(record); !status) return status;
    return whole ? end_epoch(record) : rt::Status();
  }

  rt::Status end_epoch(const EpochRecord& record) {
    ++position_.epoch;
    position_.batch = 0;
    position_.seen = 0;
    position_.loss_sum = 0;
    checkpoints_->note_progress();
    if (rule_->judge(record, position_) && !options_.best.empty())
      if (rt::Status status = checkpoints_->save(options_.best, position_); !status) return status;
    return options_.checkpoint.empty() ? rt::Status() : checkpoints_->save(options_.checkpoint, position_);
  }

  rt::Trainer& trainer_;
  Budget& budget_;
  const Samples& training_;
  const Ranks& ranks_;
  const LoopOptions& options_;
  const uint64_t batches_;      ///< of an epoch
  const uint64_t total_steps_;  ///< of the run
  librt::tools::Schedule schedule_;
  Steps steps_;
  Shares shares_;
  std::optional<Validation> validation_;
  std::optional<StopRule> rule_;
  std::optional<Checkpoints> checkpoints_;
  std::optional<Loader> loader_;
  Report report_;
  Position position_;
  bool agreed_to_stop_ = false, cache_is_reported_ = false;
};

}  // namespace

rt::Result<Outcome> run_training(rt::Trainer& trainer, Budget& budget, const Samples& training,
                                 const Samples* validation, RunLog& log, const Ranks& ranks,
                                 const LoopOptions& options, std::optional<uint64_t>& saved_step) {
  Loop loop(trainer, budget, training, validation, log, ranks, options);
  rt::Result<Outcome> outcome = loop.run();
  if (loop.saved_step()) saved_step = loop.saved_step();
  if (!outcome) ranks.abandon();
  return outcome;
}

}  // namespace rt::train
