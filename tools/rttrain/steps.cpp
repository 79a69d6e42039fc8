#include "tools/rttrain/steps.h"

#include <algorithm>

namespace rt::train {

Steps::Steps(rt::Trainer& trainer, Budget& budget, const Source& source, const Ranks& ranks,
             const LoopOptions& options)
    : trainer_(trainer),
      budget_(budget),
      columns_(source.columns()),
      ranks_(ranks),
      options_(options),
      last_(options.drop_last ? 0 : source.size() % options.batch) {}

rt::Status Steps::open(const Shares& shares) {
  if (rt::Status status = check_parts(); !status) return status;
  if (rt::Status status = options_.micro_batch > 0 ? open_accumulation() : open_whole(shares); !status)
    return status;
  // On an asynchronous device the next batch is transferred during compute: a step, or a micro-batch, is
  // started before the previous one has finished. Not with a budget, which does not count the additional
  // memory; nor with collectives in host memory, which run within the steps.
  const bool ranks_meet_on_device = ranks_.count() == 1 || !trainer_.session().collectives().first.empty();
  if (trainer_.session().device().asynchronous && ranks_meet_on_device && !budget_.is_set()) ahead_ = 2;
  most_ = accumulate_ ? 1 : ahead_;
  return {};
}

// Every rank needs samples in every step.
rt::Status Steps::check_parts() const {
  const size_t least = last_ > 0 ? last_ : options_.batch;
  if (least >= ranks_.count()) return {};
  return bad_data("a batch of " + std::to_string(least) + " samples cannot be cut into parts for " +
                  std::to_string(ranks_.count()) + " ranks; use another --batch" +
                  (last_ > 0 ? ", or --drop-last" : ""));
}

// The last, smaller batch has its own plan.
rt::Status Steps::open_whole(const Shares& shares) {
  for (const size_t samples : {last_, options_.batch})
    if (samples > 0)
      if (rt::Status status = budget_.prepare("train_step", trainer_.session(), columns_,
                                              shares.part_of(ranks_.rank(), samples));
          !status)
        return status;
  return {};
}

size_t Steps::part_of(size_t own, size_t all) const {
  return equal_part(options_.ordered_sums ? all : own, options_.micro_batch);
}

// Micro-batches of the last batch may be smaller; all ranks have equally many of equal size.
rt::Status Steps::open_accumulation() {
  const size_t ranks = ranks_.count();
  if (options_.batch % (options_.micro_batch * ranks) != 0)
    return bad_data("--micro-batch " + std::to_string(options_.micro_batch) +
                    (ranks > 1 ? " times " + std::to_string(ranks) + " ranks" : "") +
                    ": expected a divisor of --batch " + std::to_string(options_.batch));
  // In order, the size of the parts must not depend on the number of ranks.
  const size_t unit = options_.ordered_sums && last_ > 0 ? part_of(last_, last_) : 1;
  if (last_ % (unit * ranks) != 0)
    return bad_data("--micro-batch: the last batch of an epoch, " + std::to_string(last_) +
                    " samples, cannot be cut into equal parts for " + std::to_string(ranks) +
                    " ranks; use another --batch, or --drop-last");
  for (auto [entry, session] : {std::pair("accumulate", &accumulate_), std::pair("update", &update_)}) {
    auto opened = budget_.open(entry);
    if (opened.status().code() == rt::Code::OutOfMemory) return opened.status();
    if (!opened)
      return bad_data("--micro-batch needs a model compiled with rtconvert --train --accumulate: " +
                      opened.status().message());
    session->emplace(std::move(*opened));
    if (last_ > 0)
      if (rt::Status status = budget_.prepare(entry, **session, columns_, part_of(last_ / ranks, last_));
          !status)
        return status;
    if (rt::Status status = budget_.prepare(entry, **session, columns_, options_.micro_batch); !status)
      return status;
  }
  if (options_.ordered_sums) sums_.emplace(trainer_.session(), ranks_, options_.gradients);
  return {};
}

rt::Status Steps::begin(const Batch& batch, double rate) {
  Begun& begun = begun_[(oldest_ + in_flight_) % begun_.size()];
  begun = {.step = {.rate = rate, .samples = batch.all, .stop_votes = g_stop != 0 ? 1.0 : 0.0}, .loss = {}};
  if (rt::Status status = ranks_.begin_sum({&begun.step.stop_votes, 1}); !status) return status;
  ++in_flight_;
  if (!accumulate_) return submit(batch.tensors, rate);
  const auto loss = sums_ ? accumulate_in_order(batch) : accumulate(batch);
  if (!loss) return loss.status();
  if (rt::Status status = update(rate); !status) return status;
  begun.loss = *loss;
  return {};
}

rt::Result<Steps::Finished> Steps::finish() {
  Begun& begun = begun_[oldest_ % begun_.size()];
  const auto loss = begun.loss ? rt::Result<float>(*begun.loss) : trainer_.wait();
  if (!loss) return loss.status();
  if (rt::Status status = ranks_.finish_sum({&begun.step.stop_votes, 1}); !status) return status;
  begun.step.loss = static_cast<double>(*loss);
  ++oldest_;
  --in_flight_;
  return begun.step;
}

std::vector<rt::Session*> Steps::sessions() {
  if (!accumulate_) return {&trainer_.session()};
  return {&*accumulate_, &*update_};
}

rt::Status Steps::submit(const std::vector<rt::Tensor>& tensors, double rate) {
  for (size_t c = 0; c < columns_.size(); ++c)
    if (rt::Status status = trainer_.session().set_input(columns_[c].input, tensors[c]); !status)
      return status;
  if (rt::Status status = trainer_.set_learning_rate(static_cast<float>(rate)); !status) return status;
  return trainer_.submit();
}

rt::Status Steps::submit_part(const std::vector<rt::Tensor>& tensors, size_t part, size_t parts,
                              size_t samples) {
  for (size_t c = 0; c < columns_.size(); ++c) {
    std::vector<int64_t> dims(tensors[c].dims().begin(), tensors[c].dims().end());
    dims[0] = static_cast<int64_t>(samples);
    const size_t bytes = tensors[c].bytes() / parts;
    // const_cast is safe: set_input() only copies from it.
    auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(tensors[c].data())) + part * bytes;
    const rt::Tensor piece = rt::Tensor::borrow(tensors[c].dtype(), dims, data);
    if (rt::Status status = accumulate_->set_input(columns_[c].input, piece); !status) return status;
  }
  return accumulate_->submit();
}

rt::Result<float> Steps::wait_part() {
  if (rt::Status status = accumulate_->wait(); !status) return status;
  const auto loss = accumulate_->output("loss");
  if (!loss) return loss.status();
  return loss->values<float>()[0];
}

rt::Result<float> Steps::accumulate(const Batch& batch) {
  const size_t micro = part_of(batch.samples, batch.all), parts = batch.samples / micro;
  float sum = 0;
  for (size_t begun = 0, done = 0; done < parts;) {
    if (begun < parts && begun < done + ahead_) {
      if (rt::Status status = submit_part(batch.tensors, begun++, parts, micro); !status) return status;
      continue;
    }
    const auto loss = wait_part();
    if (!loss) return loss.status();
    sum += *loss;
    ++done;
  }
  return sum / static_cast<float>(parts);
}

rt::Result<float> Steps::accumulate_in_order(const Batch& batch) {
  const size_t micro = part_of(batch.samples, batch.all), parts = batch.samples / micro;
  for (size_t part = 0; part < parts; ++part) {
    if (rt::Status status = sums_->start(); !status) return status;
    if (rt::Status status = submit_part(batch.tensors, part, parts, micro); !status) return status;
    const auto loss = wait_part();
    if (!loss) return loss.status();
    if (rt::Status status = sums_->add(*loss); !status) return status;
  }
  return sums_->finish();
}

rt::Status Steps::update(double rate) {
  const rt::Tensor learning_rate = rt::Tensor::of<float>({}, std::vector<float>{static_cast<float>(rate)});
  if (rt::Status status = update_->set_input("learning_rate", learning_rate); !status) return status;
  return update_->run();
}

}  // namespace rt::train
