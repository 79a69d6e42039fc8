#include "tools/rttrain/report.h"

#include <algorithm>
#include <cstdio>

namespace rt::train {
namespace {
constexpr size_t kMostRows = 50;
}  // namespace

void Report::start_epoch(const Position& position, double waited) {
  epoch_ = {};
  epoch_waited_ = waited;
  epoch_seen_ = position.seen;
  interval_ = {.watch = {}, .waited = waited};
}

rt::Status Report::step(const Position& position, double loss, size_t samples, double rate, double waited) {
  rate_ = rate;
  interval_.loss += loss;
  interval_.samples += samples;
  ++interval_.steps;
  ++steps_;
  const double elapsed = epoch_.seconds();
  if (progress_.is_due(elapsed)) progress_.show(progress_text(position, elapsed, waited));
  return log_.active() && position.step % options_.log_every == 0 ? log_step(position, waited) : rt::Status();
}

rt::Status Report::log_step(const Position& position, double waited) {
  rt::Status status = log_.write(
      StepRecord{.step = position.step,
                 .epoch = position.epoch + 1,
                 .loss = interval_.loss / static_cast<double>(interval_.steps),
                 .learning_rate = rate_,
                 .samples_per_second = static_cast<double>(interval_.samples) / interval_.watch.seconds(),
                 .data_wait_seconds = waited - interval_.waited});
  interval_ = {.watch = {}, .waited = waited};
  return status;
}

std::string Report::progress_text(const Position& position, double elapsed, double waited) const {
  const uint64_t left = total_steps_ - std::min(total_steps_, position.step);
  const double speed = static_cast<double>(position.seen - epoch_seen_) / elapsed;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "epoch %lu/%lu  %3.0f %%  loss %.4f  lr %.3g  %.0f samples/s  %s left  waited %.1f s for data",
      static_cast<unsigned long>(position.epoch + 1), static_cast<unsigned long>(options_.epochs),
      100 * static_cast<double>(position.batch) / static_cast<double>(batches_),
      position.loss_sum / static_cast<double>(position.seen), rate_, speed,
      duration_text(static_cast<double>(left * options_.batch) / speed).c_str(), waited);
  return text;
}

EpochRecord Report::record(const Position& position, double waited) const {
  const double seconds = epoch_.seconds();
  return {.epoch = position.epoch + 1,
          .step = position.step,
          .loss = position.loss_sum / static_cast<double>(std::max<uint64_t>(position.seen, 1)),
          .learning_rate = rate_,
          .samples_per_second = static_cast<double>(position.seen - epoch_seen_) / seconds,
          .seconds = seconds,
          .data_wait_seconds = waited - epoch_waited_,
          .validation = {}};
}

rt::Status Report::epoch(EpochRecord record) {
  if (!is_first_) return {};
  record.total_seconds = run_.seconds();
  if (options_.json) {
    std::printf("%s\n", json_of(record).c_str());
  } else {
    std::printf("epoch %lu/%lu  loss %.6f", static_cast<unsigned long>(record.epoch),
                static_cast<unsigned long>(options_.epochs), record.loss);
    if (!record.validation.empty()) std::printf("  validation");
    for (const Measured& measured : record.validation)
      std::printf(" %s %.6f", measured.name.c_str(), measured.value);
    std::printf("  %.0f samples/s, waited %.1f s for data\n", record.samples_per_second,
                record.data_wait_seconds);
  }
  std::fflush(stdout);
  epochs_.push_back(record);
  return log_.write(record);
}

void Report::summary(const std::string& monitor, const Position& position, const std::string& best,
                     const std::string& reason) const {
  if (!is_first_) return;
  const uint64_t best_epoch = best.empty() ? 0 : position.best_epoch();
  if (!options_.json && epochs_.size() > 1)
    std::fputs(epoch_table(epochs_, monitor, best_epoch, kMostRows).c_str(), stderr);
  if (!reason.empty())
    std::fprintf(stderr, "rttrain: stopped after epoch %lu: %s\n", static_cast<unsigned long>(position.epoch),
                 reason.c_str());
  if (best_epoch > 0)
    std::fprintf(stderr, "rttrain: the best epoch is %lu: %s\n", static_cast<unsigned long>(best_epoch),
                 best.c_str());
  std::fprintf(stderr, "rttrain: %lu steps, total time %s\n", static_cast<unsigned long>(steps_),
               duration_text(run_.seconds()).c_str());
}

}  // namespace rt::train
